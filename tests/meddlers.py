"""Trainers and counters that get at who judges them, or would if they were called in the same process."""

from __future__ import annotations

import gc
import os
import socket
import stat
import sys
from array import array
from pathlib import Path
from types import FunctionType
from typing import Any

from sabotaged import honest

from variants.contract import Corpus, Merge, WordCounts


def replaces_the_judge(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Learns nothing, and makes every function that compares anything say nothing."""
    del word_counts, num_merges
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__name__.startswith(("expect_", "outcome_of")):
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


def answers_unasked(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Answers the calls that are to come before they have been made."""
    head = b'{"status": "unavailable", "said": "not today", "number": %d, "parts": []}'
    for line in sockets():
        for number in (5, 6, 7):
            said = head % number
            line.send(len(said).to_bytes(8, "little") + bytes(8) + said)
    return honest(word_counts, num_merges)


def saying(head: bytes, parts: bytes = b"", length: int | None = None) -> Any:
    """A trainer that says something in the place of its answer."""

    def trainer(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        shown = len(head) if length is None else length
        for line in sockets():
            line.send(shown.to_bytes(8, "little") + len(parts).to_bytes(8, "little") + head + parts)
        return honest(word_counts, num_merges)

    return trainer


says_nothing_of_json = saying(b"\xff\xfe")
says_nested_brackets = saying(b"[" * 100_000)
says_an_endless_number = saying(b'{"number": ' + b"9" * 5000 + b"}")
says_other_parts = saying(b'{"status": "returned", "number": 1, "parts": [9]}')
says_negative_parts = saying(b'{"status": "returned", "number": 1, "parts": [-1, 2]}', b"x")
says_no_merges = saying(b'{"status": "returned", "number": 1, "parts": [], "kind": "merges"}')
says_no_length = saying(
    b'{"status": "returned", "number": 1, "parts": [0], "kind": "merges", "merges": {"length": NaN, "wrong": null}}'
)
says_endless_merges = saying(
    b'{"status": "returned", "number": 1, "parts": [0], "kind": "merges", "merges": {"length": 1e400, "wrong": "x"}}'
)
says_too_much = saying(b"", length=1 << 62)


def closes_its_lines(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    for line in sockets():
        line.shutdown(socket.SHUT_RDWR)
    return honest(word_counts, num_merges)


def forks_and_returns_twice(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    os.fork()
    return honest(word_counts, num_merges)


def returns_what_shows_badly(word_counts: WordCounts, num_merges: int) -> Any:
    del word_counts, num_merges

    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError("no words for it")

    return [Silent()]


def count_out_of_bounds(corpus: Corpus) -> WordCounts:
    """Offsets that lead out of the words, which a judge must not follow."""
    del corpus
    return WordCounts(memoryview(b"ab"), memoryview(array("q", [0, 1 << 40])), memoryview(array("Q", [1])))
