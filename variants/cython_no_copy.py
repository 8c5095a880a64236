"""Cython without the copy: cython_fine_grained whose update reads the window in the word itself.

Part 10 of the series (v8_v2). Against cython_fine_grained, one list less is made for each word that a merge touches;
see variants/native/_uncopied_updates.pyx.
"""

from __future__ import annotations

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts
from variants.heap import learn
from variants.native import built, loading

before_the_clock = loading("_uncopied_updates")


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    heap: str = "c",
    push: str = "all",
) -> list[Merge]:
    """Learn merges with compiled updates; `heap` and `push` are those of the heap stage."""
    indexed_words = built("_uncopied_updates").UncopiedIndexedWords
    return learn(word_counts, num_merges, meter, tie_break, min_count, heap, push, indexed_words)
