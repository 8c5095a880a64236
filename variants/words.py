"""The steps that two or more stages share, each as plain as it can be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from variants.contract import Merge, Meter, Pair

PairCounts = dict[Pair, int]


class Vocabulary:
    """What training has learned so far: the bytes of every token, the tie-break's key of each, and
    the merges.

    `key` is the tie-break's `key`, or its `reversed_key` where a min-heap does the choosing.
    """

    def __init__(self, key: Callable[[int, bytes], Any]) -> None:
        self.key = key
        self.tokens: list[bytes] = [bytes((byte,)) for byte in range(256)]
        self.keys: list[Any] = [key(*numbered) for numbered in enumerate(self.tokens)]
        self.merges: list[Merge] = []

    def add(self, pair: Pair) -> int:
        """Learn the merge of `pair` and return the new token's id."""
        left, right = self.tokens[pair[0]], self.tokens[pair[1]]
        self.merges.append((left, right))
        self.tokens.append(left + right)
        self.keys.append(self.key(len(self.tokens) - 1, left + right))
        return len(self.tokens) - 1


def count_pairs(words: Sequence[Sequence[int]], weights: Sequence[int], meter: Meter) -> PairCounts:
    """Count every adjacent pair of every word, overlaps included: `aaa` holds (a, a) twice."""
    counts: PairCounts = {}
    for word, weight in zip(words, weights):
        for pair in zip(word, word[1:]):
            counts[pair] = counts.get(pair, 0) + weight
    positions = sum(map(len, words))
    meter.tally("positions_visited", positions)
    meter.tally("pair_updates", positions - len(words))
    return counts


def most_frequent_pair(pair_counts: Mapping[Pair, int], keys: Sequence[Any], meter: Meter) -> Pair:
    """The pair with the greatest (count, (left key, right key)), found by looking at every pair."""
    meter.tally("pairs_scanned", len(pair_counts))
    return max(pair_counts, key=lambda pair: (pair_counts[pair], keys[pair[0]], keys[pair[1]]))


def merge_pair(word: Sequence[int], pair: Pair, new_token: int) -> list[int]:
    """Replace `pair` by `new_token` left to right, greedily, without overlap.

    >>> merge_pair([97, 97, 97], (97, 97), 256)
    [256, 97]
    """
    left, right = pair
    merged = []
    position, last = 0, len(word) - 1
    while position <= last:
        if position < last and word[position] == left and word[position + 1] == right:
            merged.append(new_token)
            position += 2
        else:
            merged.append(word[position])
            position += 1
    return merged
