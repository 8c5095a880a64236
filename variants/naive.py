"""Naive: before every merge, count every pair of every word again. The definition, written as a
program.

Part 1 of the series. With M merges and S token positions in the distinct words the work is M x S:
the reference that every other stage is compared with. The merges of all other variants must equal
these. extending.py defines how training goes on from merges that are already made.
"""

from __future__ import annotations

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts
from variants.words import Vocabulary, count_pairs, merge_pair, most_frequent_pair


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
) -> list[Merge]:
    """Learn merges by recounting.

    >>> train(WordCounts.from_items([(b"aaa", 2), (b"xy", 3)]), 10)
    [(b'a', b'a'), (b'x', b'y'), (b'aa', b'a')]
    """
    vocabulary = Vocabulary(tie_break.key)
    meter.follow(vocabulary.merges)

    words = [list(word) for word in word_counts]
    weights = list(word_counts.values())
    pair_counts = count_pairs(words, weights, meter)
    meter.lap("init")

    while pair_counts and len(vocabulary.merges) < num_merges:
        pair = most_frequent_pair(pair_counts, vocabulary.keys, meter)
        meter.lap("max")
        if pair_counts[pair] < min_count:
            break

        new_token = vocabulary.add(pair)
        words = [merge_pair(word, pair, new_token) for word in words]
        meter.tally("words_rewritten", len(words))
        pair_counts = count_pairs(words, weights, meter)
        meter.lap("update")
    return vocabulary.merges
