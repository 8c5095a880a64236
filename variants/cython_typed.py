"""Cython typed through: the algorithm of heap_opt with packed pairs, word ids, flat arrays and C++ containers.

What part 10 of the series names and leaves out. Against cython_loop, no Python object is touched by a merge, and the
GIL is free; see variants/native/_typed.pyx.
"""

from __future__ import annotations

from collections.abc import Sequence

from variants.contract import GREATEST_BYTES, LARGEST_COUNT, NULL_METER, Merge, Meter, TieBreak, WordCounts
from variants.native import built, loading

BY_BYTES = (TieBreak.GREATEST_BYTES, TieBreak.SMALLEST_BYTES)

before_the_clock = loading("_typed")


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
) -> Sequence[Merge]:
    """Learn merges without a Python object in the loop. Raises ValueError beyond 2**32 words or a word of 4 GiB."""
    by_bytes = tie_break in BY_BYTES
    typed = built("_typed").Typed(
        word_counts,
        min(max(num_merges, 0), 2**31),
        by_bytes=by_bytes,
        direction=-1 if tie_break is TieBreak.SMALLEST_BYTES else 1,
        numbers=[0 if by_bytes else tie_break.key(byte, bytes((byte,))) for byte in range(256)],
        min_count=min(max(min_count, 1), LARGEST_COUNT),
    )
    merges: Sequence[Merge] = typed.learn(meter)
    return merges
