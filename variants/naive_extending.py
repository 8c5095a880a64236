"""Naive, going on from merges that are already made and under a veto: the definition of extending (extending.py).

Without either it learns what naive.py learns, in the same way: before every merge it counts every pair again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, Pair, TieBreak, Veto, WordCounts
from variants.extending import Refused, check_inherited, inherit
from variants.words import Vocabulary, count_pairs, merge_pair, most_frequent_pair


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
    """Learn merges by recounting, after those that are inherited.

    >>> train(WordCounts.from_items([(b"aaa", 2), (b"xy", 3)]), 10, inherited=[(b"x", b"y")])
    [(b'x', b'y'), (b'a', b'a'), (b'aa', b'a')]
    """
    check_inherited(inherited, inheriting, num_merges)
    vocabulary = Vocabulary(tie_break.key)
    meter.follow(vocabulary.merges)
    words = [list(word) for word in word_counts]
    weights = list(word_counts.values())

    def merge_everywhere(pair: Pair, new_token: int) -> None:
        words[:] = [merge_pair(word, pair, new_token) for word in words]
        meter.tally("words_rewritten", len(words))

    def make_inherited(pair: Pair, new_token: int) -> Iterable[Pair]:
        merge_everywhere(pair, new_token)
        return count_pairs(words, weights, meter)

    if inherited:
        inherit(inherited, inheriting, vocabulary, count_pairs(words, weights, meter), make_inherited)
    refused = Refused(vocabulary, veto)
    pair_counts = refused.taken_from(count_pairs(words, weights, meter))
    meter.lap("init")
    while pair_counts and len(vocabulary.merges) < num_merges:
        pair = most_frequent_pair(pair_counts, vocabulary.keys, meter)
        meter.lap("max")
        if pair_counts[pair] < min_count:
            break
        merge_everywhere(pair, vocabulary.add(pair))
        pair_counts = refused.taken_from(count_pairs(words, weights, meter))
        meter.lap("update")
    return vocabulary.merges
