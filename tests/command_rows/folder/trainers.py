"""Trainers and a word counter of a user: the first two are right, the others are not."""

from __future__ import annotations

import os
import time
from pathlib import Path

from variants.contract import Corpus, Merge, WordCounts
from variants.naive import train


def right(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    return train(word_counts, num_merges)


def second_waits(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Right, but of all calls the second never ends; calls are lines of the file that the environment names."""
    calls = Path(os.environ["CALLS"])
    with calls.open("a", encoding="utf-8") as lines:
        lines.write("called\n")
    while calls.read_text(encoding="utf-8").count("called") == 2:
        time.sleep(0.01)
    return train(word_counts, num_merges)


another = second_waits


def one_too_few(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    return train(word_counts, num_merges)[:-1]


def swapped(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    first, second, *others = train(word_counts, num_merges)
    return [second, first, *others]


def raises(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    raise ValueError(f"no idea for {len(word_counts)} words and {num_merges} merges")


def hangs(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    time.sleep(600)
    return train(word_counts, num_merges)


def loses_words(corpus: Corpus) -> WordCounts:
    return WordCounts.from_items([(corpus.path[:1].encode(), 12)])
