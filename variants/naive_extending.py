"""Naive, going on from merges that are already made and under a veto: the definition of extending
(extending.py).

Without either it learns what naive.py learns, in the same way: before every merge it counts every
pair again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from variants.contract import (
    GREATEST_BYTES,
    NULL_METER,
    Merge,
    Meter,
    Pair,
    TieBreak,
    Veto,
    WordCounts,
)
from variants.extending import Refused, check_inherited, inherit
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
) -> list[Merge]:
    """Learn merges after those that are inherited, as naive.py does: every pair is counted before
    every merge.

    >>> train(WordCounts.from_items([(b"aaa", 2), (b"xy", 3)]), 10, inherited=[(b"x", b"y")])
    [(b'x', b'y'), (b'a', b'a'), (b'aa', b'a')]
    """
    check_inherited(inherited, inheriting, num_merges)
    vocabulary = Vocabulary(tie_break.key)
    tokens = vocabulary.tokens
    meter.follow(vocabulary.merges)
    # A word of weight 0 occurs nowhere, so none of its pairs is met.
    counted = {word: weight for word, weight in word_counts.items() if weight}
    words = [list(word) for word in counted]
    weights = list(counted.values())

    def make(pair: Pair) -> PairCounts:
        """Make a merge everywhere; returns the counts of the pairs that then occur."""
        new_token = vocabulary.add(pair)
        words[:] = [merge_pair(word, pair, new_token) for word in words]
        meter.tally("words_rewritten", len(words))
        return count_pairs(words, weights, meter)

    def make_inherited(merge: Merge) -> list[Merge]:
        return spelled(make((tokens.index(merge[0]), tokens.index(merge[1]))))

    def spelled(pairs: Iterable[Pair]) -> list[Merge]:
        return [(tokens[left], tokens[right]) for left, right in pairs]

    if inherited:
        inherit(inherited, inheriting, spelled(count_pairs(words, weights, meter)), make_inherited)
    refused = cache(Refused(vocabulary.merges, veto))
    pair_counts = count_pairs(words, weights, meter)
    meter.lap("init")
    while len(vocabulary.merges) < num_merges:
        if inherited or veto is not None:
            spellings = zip(pair_counts.items(), spelled(pair_counts))
            pair_counts = {
                pair: count for (pair, count), halves in spellings if not refused(*halves)
            }
        if not pair_counts:
            break
        pair = most_frequent_pair(pair_counts, vocabulary.keys, meter)
        meter.lap("max")
        if pair_counts[pair] < min_count:
            break
        pair_counts = make(pair)
        meter.lap("update")
    return vocabulary.merges
