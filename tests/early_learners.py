"""Trainers that do their work while they are imported, before any clock runs, from what they find of their job then."""

from __future__ import annotations

import inspect
import os
import sys
import time
from pathlib import Path
from typing import Any

from harness.worker import word_store
from variants.contract import Merge, WordCounts
from variants.heap import train as honest


def importer() -> Any:
    """Who imports this in a measured process, found in its frames."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if hasattr(frame.f_locals.get("self"), "job"):
            return frame.f_locals["self"]
    return None


def work(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(1000))


IMPORTER = importer()
if IMPORTER is not None and "impatient" in IMPORTER.job["target"] and IMPORTER.job["kind"] == "train":
    IMPORTER.channel.say(b"imported")  # so it is told the rest, and goes on being imported
    IMPORTER.told.wait()
    work(0.1)
FOUND = dict(IMPORTER.job) if IMPORTER is not None else {}
EARLY = (
    honest(word_store.read(Path(FOUND["words"]))[0], FOUND["num_merges"]) if "words" in FOUND else None  # the cheat
)


def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:  # noqa: ARG001 - it has seen them
    if EARLY is None:
        raise LookupError(f"there is no job yet: {sorted({'words', 'corpus', 'num_merges'} & FOUND.keys())}")
    return EARLY


impatient = train


def late(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    return honest(word_counts, num_merges)


def peeping(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    return honest(word_counts, num_merges)


class Described:
    """A trainer that works when somebody looks how it is called."""

    @property
    def __signature__(self) -> inspect.Signature:
        work(0.1)
        return inspect.signature(honest)

    def __call__(self, word_counts: WordCounts, num_merges: int, *_: Any, **__: Any) -> list[Merge]:
        return honest(word_counts, num_merges)


described = Described()


def __getattr__(name: str) -> Any:
    """Works when it is looked up."""
    if name != "looked_up":
        raise AttributeError(name)
    if FOUND.get("kind") == "train":
        work(1.0)
    return honest


def command_of_the_harness() -> str:
    """That of the guard's parent, in which the job stands in words."""
    guard = Path(f"/proc/{os.getppid()}/stat").read_text()
    return Path(f"/proc/{guard.rpartition(')')[2].split()[1]}/cmdline").read_text()


if "late" in str(FOUND.get("target")) and FOUND["kind"] == "train":
    work(1.0)  # on something that it found elsewhere
if "peeping" in str(FOUND.get("target")) and FOUND["kind"] == "train" and command_of_the_harness():
    work(0.2)
