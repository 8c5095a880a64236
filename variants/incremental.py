"""Incremental: keep the pair counts, and an index from each pair to the words that hold it, between
merges.

Part 2 of the series. Against naive, a merge touches only the words that contain its pair: all their
old pairs are subtracted, the word is rewritten, all its new pairs are added. Finding the maximum
still looks at every pair, and with the updates gone that is now nearly all the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, Pair, TieBreak, WordCounts
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair

PairToWords = dict[Pair, set[int]]
FindMaximum = Callable[[PairCounts, Sequence[Any], Meter], Pair]


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
) -> list[Merge]:
    """Learn merges by updating the counts of the words that change."""
    return learn(word_counts, num_merges, meter, tie_break, min_count, most_frequent_pair)


def learn(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter,
    tie_break: TieBreak,
    min_count: int,
    find_maximum: FindMaximum,
) -> list[Merge]:
    """The stage with its maximum left open, for the stage that changes only that."""
    vocabulary = Vocabulary(tie_break.key)
    meter.follow(vocabulary.merges)

    words = [list(word) for word in word_counts]
    weights = list(word_counts.values())
    pair_counts = count_pairs(words, weights, meter)
    pair_to_words = index_words(words)
    meter.lap("init")

    while pair_counts and len(vocabulary.merges) < num_merges:
        pair = find_maximum(pair_counts, vocabulary.keys, meter)
        meter.lap("max")
        if pair_counts[pair] < min_count:
            break

        new_token = vocabulary.add(pair)
        affected = list(pair_to_words[pair])
        visited = 0
        for index in affected:
            old = words[index]
            new = words[index] = merge_pair(old, pair, new_token)
            subtract_pairs(old, index, weights[index], pair_counts, pair_to_words)
            add_pairs(new, index, weights[index], pair_counts, pair_to_words)
            visited += len(old) + len(new)
        meter.tally("words_rewritten", len(affected))
        meter.tally("positions_visited", visited)
        meter.tally("pair_updates", visited - 2 * len(affected))
        meter.lap("update")
    return vocabulary.merges


def index_words(words: Sequence[Sequence[int]]) -> PairToWords:
    """Map each pair to the indices of the words that hold it."""
    pair_to_words: PairToWords = {}
    for index, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pair_to_words.setdefault(pair, set()).add(index)
    return pair_to_words


def subtract_pairs(
    word: Sequence[int],
    index: int,
    weight: int,
    pair_counts: PairCounts,
    pair_to_words: PairToWords,
) -> None:
    """Take a word out of the counts and the index; a pair that is nowhere left is forgotten."""
    for pair in zip(word, word[1:]):
        pair_counts[pair] -= weight
        if pair_counts[pair]:
            pair_to_words[pair].discard(index)
        else:
            del pair_counts[pair], pair_to_words[pair]


def add_pairs(
    word: Sequence[int],
    index: int,
    weight: int,
    pair_counts: PairCounts,
    pair_to_words: PairToWords,
) -> None:
    """Put a word, rewritten, back into the counts and the index."""
    for pair in zip(word, word[1:]):
        pair_counts[pair] = pair_counts.get(pair, 0) + weight
        pair_to_words.setdefault(pair, set()).add(index)
