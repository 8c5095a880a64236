"""Cython round the whole loop: cython_opt with the heap and the loop over merges compiled too.

Part 10 of the series (v8_v4). Against cython_opt, Python is left once instead of once a merge, and all but nothing is
gained; see variants/native/_loop.pyx.
"""

from __future__ import annotations

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts
from variants.fine_grained import IndexedWords
from variants.native import built, loading
from variants.words import Vocabulary

before_the_clock = loading("_loop")


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
) -> list[Merge]:
    """Learn merges in a compiled loop over Python's containers."""
    loop = built("_loop")
    vocabulary = Vocabulary(tie_break.reversed_key)
    meter.follow(vocabulary.merges)
    state = IndexedWords(word_counts, meter, "words", coarse_on_repeat=False)
    loop.learn(state, vocabulary, min(num_merges, 2**62), min_count, meter)
    return vocabulary.merges
