"""A trainer whose module takes long to make something, once on a machine, before any clock runs."""

from __future__ import annotations

import time

from variants.contract import Merge, WordCounts
from variants.heap import train as honest

MADE: list[str] = []


def before_the_clock() -> None:
    while time.process_time() < 0.35:
        sum(range(1000))
    MADE.append("tables")


def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    if MADE != ["tables"]:
        raise LookupError(f"made {MADE} before the clock")
    return honest(word_counts, num_merges)
