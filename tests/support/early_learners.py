"""Trainers that do something while they are imported, before any clock runs: from what they find of their job then."""

from __future__ import annotations

import inspect
import json
import sys
import time
from pathlib import Path
from typing import Any

from daemons import ask_the_daemon, start_a_daemon
from unruly import A_LONG_TIME, work

from harness.worker import exchange
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


def hear_of_the_job(importer: Any) -> dict[str, Any]:
    """Say that the import is over, and read the work."""
    importer.channel.announce(b"imported")
    return dict(json.loads((importer.output / "work.json").read_text()))


IMPORTER = importer()
FOUND = dict(IMPORTER.job) if IMPORTER is not None else {}
NAME = FOUND.get("target", "").partition(":")[2]
if NAME == "impatient":
    FOUND.update(hear_of_the_job(IMPORTER))
    work(0.1)
elif NAME == "helped":
    start_a_daemon()
elif NAME == "sleepy":
    time.sleep(A_LONG_TIME)
EARLY = (
    honest(exchange.read_words(Path(FOUND["words"]))[0], FOUND["num_merges"]) if "words" in FOUND else None  # the cheat
)


def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:  # noqa: ARG001 - it has seen them
    if EARLY is None:
        raise LookupError(f"there is no job yet: {sorted({'words', 'corpus', 'num_merges'} & FOUND.keys())}")
    return EARLY


impatient = sleepy = train


def helped(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    assert ask_the_daemon()
    return honest(word_counts, num_merges)


MADE: list[str] = []


def before_the_clock() -> None:
    if NAME == "prepared":
        work(0.35)
        MADE.append("tables")


def prepared(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    assert MADE == ["tables"]
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
