"""Cython with less to push: cython_no_copy that no longer collects the pairs of the windows it has rewritten.

Part 10 of the series (v8_v3). Against cython_no_copy, only pairs whose count grew go into the heap, as in heap_opt, and
the set of the others is never made; see variants/native/_grown_updates.pyx.
"""

from __future__ import annotations

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts
from variants.heap import learn
from variants.native import built, loading

before_the_clock = loading("_grown_updates")


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    heap: str = "c",
) -> list[Merge]:
    """Learn merges with compiled updates; `heap` is that of the heap stage."""
    indexed_words = built("_grown_updates").GrownIndexedWords
    return learn(word_counts, num_merges, meter, tie_break, min_count, heap, "grown", indexed_words)
