"""A trainer whose module has something to make, once on a machine, before any clock runs."""

from __future__ import annotations

from variants.contract import Merge, WordCounts
from variants.heap import train as honest

MADE: list[str] = []


def before_the_clock() -> None:
    MADE.append("tables")


def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    if MADE != ["tables"]:
        raise LookupError(f"made {MADE} before the clock")
    return honest(word_counts, num_merges)
