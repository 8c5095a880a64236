"""Cython: the heap stage compiled in five steps, each a separate variant.

Part 10 of the series. `fine_grained` (v8) has typed locals only, `no_copy` (v8_v2) reads the window
of a merge in place in the word, `opt` (v8_v3) no longer collects the pairs of the windows, because
only those whose count grew go into the heap, and `loop` (v8_v4) compiles the heap and the loop over
merges too. All leave the containers to Python, and gain little: variants/native/_updates.pyx.
`typed` is what part 10 names and leaves out: packed pairs, word ids, flat arrays and C++
containers, so that no Python object is touched by a merge and the GIL is free (_typed.pyx).

Without the compiled modules the variants are not available: none runs as Python under its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

from variants.contract import (
    GREATEST_BYTES,
    LARGEST_COUNT,
    NULL_METER,
    Merge,
    Meter,
    TieBreak,
    WordCounts,
)
from variants.fine_grained import IndexedWords
from variants.heap import learn
from variants.native import built, loading
from variants.words import Vocabulary

before_the_clock = loading("_updates", "_typed")


def with_updates(name: str) -> Callable[..., list[Merge]]:
    """The heap stage with one of the compiled ways of updating."""

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
        indexed_words = getattr(built("_updates"), name)
        return learn(
            word_counts, num_merges, meter, tie_break, min_count, heap, push, indexed_words
        )

    return train


fine_grained = with_updates("TypedIndexedWords")
no_copy = with_updates("UncopiedIndexedWords")


def opt(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    heap: str = "c",
) -> list[Merge]:
    """Learn merges with updates that collect no pairs; `heap` is that of the heap stage."""
    indexed_words = built("_updates").GrownIndexedWords
    return learn(word_counts, num_merges, meter, tie_break, min_count, heap, "grown", indexed_words)


def loop(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
) -> list[Merge]:
    """Learn merges in a compiled loop over Python's containers."""
    compiled = built("_updates")
    vocabulary = Vocabulary(tie_break.reversed_key)
    meter.follow(vocabulary.merges)
    state = IndexedWords(word_counts, meter, "words", coarse_on_repeat=False)
    compiled.learn(state, vocabulary, min(num_merges, 2**62), min_count, meter)
    return vocabulary.merges


def typed(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
) -> Sequence[Merge]:
    """Learn merges without a Python object in the loop. Raises ValueError beyond 2**32 words or a
    word of 4 GiB.
    """
    number = list(TieBreak).index(tie_break)
    bounds = min(max(num_merges, 0), 2**31), min(max(min_count, 1), LARGEST_COUNT)
    merges: Sequence[Merge] = built("_typed").Typed(word_counts, *bounds, number).learn(meter)
    return merges
