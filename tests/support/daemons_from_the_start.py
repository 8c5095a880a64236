"""A trainer whose daemon is started while it is imported, and works for it during its call."""

from __future__ import annotations

from daemons import ask_the_daemon, start_a_daemon

from variants.contract import Merge, WordCounts
from variants.heap import train as honest

start_a_daemon()


def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    assert ask_the_daemon()
    return honest(word_counts, num_merges)
