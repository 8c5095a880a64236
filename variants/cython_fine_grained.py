"""Cython, typed locals only: heap with the update of a merge compiled, its containers left as they are.

Part 10 of the series (v8). Against heap, one method is compiled; see variants/native/_typed_updates.pyx. Without the
compiled module the variant is not available: it never runs as Python under this name.
"""

from __future__ import annotations

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts
from variants.heap import learn
from variants.native import built, loading

before_the_clock = loading("_typed_updates")


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
    indexed_words = built("_typed_updates").TypedIndexedWords
    return learn(word_counts, num_merges, meter, tie_break, min_count, heap, push, indexed_words)
