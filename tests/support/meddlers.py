"""Trainers that get at who judges them in their own process."""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

from sabotaged import honest

from variants.contract import Merge, WordCounts


def replaces_the_judge(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Learns nothing, and makes every function that compares anything say nothing."""
    del word_counts, num_merges
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__name__.startswith("expect_"):
            found.__code__ = (lambda *_, **__: None).__code__
    for module in list(sys.modules.values()):
        if hasattr(module, "registry"):
            module.registry.definition = lambda: lambda *_, **__: []
    return []


def sockets() -> list[socket.socket]:
    """The lines that a process finds open; none of them is closed when this is forgotten."""
    numbers = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208
    there = [number for number in numbers if number > 2 and Path(f"/proc/self/fd/{number}").exists()]
    return [socket.socket(fileno=os.dup(number)) for number in there if stat.S_ISSOCK(os.fstat(number).st_mode)]


def saying(line: bytes) -> Callable[[WordCounts, int], list[Merge]]:
    """A trainer that says something in the place of an outcome."""

    def trainer(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        for each in sockets():
            each.send(line + b"\n")
        return honest(word_counts, num_merges)

    return trainer


says_nothing_of_json = saying(b"\xff\xfe")
says_nested_brackets = saying(b"[" * 100_000)
says_another_status = saying(b'{"outcome": ["check", "group", "splendid", ""]}')


def closes_its_lines(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    for line in sockets():
        line.shutdown(socket.SHUT_RDWR)
    return honest(word_counts, num_merges)


def ends_its_process(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    os._exit(7 if word_counts and num_merges else 0)
