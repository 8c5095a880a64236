"""Twice the input costs about twice the work, on eight shapes of tables.

Counted is what the trainer reports, not time: slots passed in tables of pairs, entries visited in
text, lists and queue, and bytes of tokens moved.
"""

from __future__ import annotations

import itertools

import growth
import pytest
from growing_words import MOST, SHAPES, Shape, expect_growth
from workbench import first_fast

from variants import flat
from variants.contract import Meter, WordCounts

pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

SIZES = (8_000, 16_000, 32_000, 64_000)
VISITED = ("positions_visited", "table_updates", "queue_pushes", "queue_moves", "queue_sorted")
KINDS = {"slots passed": ("probes",), "entries visited": VISITED, "bytes moved": ("token_bytes",)}


SLOW = "superwords to the end"
"""The shape that takes as long as all others."""
FAST = [shape for shape in growth.SHAPES if shape != SLOW]


@pytest.mark.parametrize("shape", first_fast([*FAST, SLOW], len(FAST)))
def test_twice_the_input_takes_at_most_2_6_times_the_work(shape: str) -> None:
    works = []
    for size in SIZES:
        _, tallies = growth.train(shape, size)
        works.append({kind: sum(tallies[name] for name in KINDS[kind]) for kind in KINDS})

    for smaller, larger in itertools.pairwise(works):
        assert sum(larger.values()) <= MOST * sum(smaller.values()), works
    # One kind alone grows by steps, as memory is doubled now and then: so over all sizes.
    for kind in KINDS:
        assert works[-1][kind] <= MOST ** (len(SIZES) - 1) * works[0][kind], (kind, works)


@pytest.mark.parametrize("shape", SHAPES)
def test_going_on_from_merges_takes_work_in_proportion(shape: Shape) -> None:
    """Bytes are not counted, as memory is doubled now and then."""

    def work(words: WordCounts) -> int:
        merges, meter = flat.train(words, 10**6), Meter()
        inherited = merges[: len(merges) // 2]
        assert flat.train(words, 10**6, meter, inherited=inherited) == merges
        return sum(meter.tallies[name] for name in (*VISITED, "probes"))

    expect_growth(shape, SIZES[0], work)
