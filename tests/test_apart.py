"""Times of different runs are compared with an interval that is what its definition says, or with none."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.common.comparison import (
    CONFIDENCE,
    Sample,
    arrangements_by_wins,
    compare_runs,
    rank_of_interval,
    same_blocks,
)


def samples(run: str, seconds: Sequence[float], **others: float) -> list[Sample]:
    return [Sample(run, block, wall, wall, **others) for block, wall in enumerate(seconds)]  # type: ignore[arg-type]


@pytest.mark.parametrize(("ours", "theirs"), list(itertools.product(range(1, 6), repeat=2)))
def test_orders_are_counted_as_they_are_when_each_is_looked_at(ours: int, theirs: int) -> None:
    counted = [0] * (ours * theirs + 1)
    for chosen in itertools.combinations(range(ours + theirs), ours):
        others = set(range(ours + theirs)) - set(chosen)
        counted[sum(mine < other for mine in chosen for other in others)] += 1
    assert arrangements_by_wins(ours, theirs) == counted


@pytest.mark.parametrize(("ours", "theirs"), [(4, 4), (3, 9), (10, 6), (30, 30)])
def test_the_interval_is_the_narrowest_that_keeps_its_confidence(ours: int, theirs: int) -> None:
    orders, all_orders = arrangements_by_wins(ours, theirs), math.comb(ours + theirs, ours)
    rank = rank_of_interval(ours, theirs)
    assert rank is not None
    tail = (1 - Fraction(CONFIDENCE).limit_denominator()) / 2
    assert Fraction(sum(orders[: rank + 1]), all_orders) <= tail < Fraction(sum(orders[: rank + 2]), all_orders)


def test_intervals_of_equal_runs_hold_1_as_often_as_they_say() -> None:
    chance = random.Random(4)
    held = 0
    for _ in range(1000):
        ours, theirs = ([chance.lognormvariate(0, 0.2) for _ in range(8)] for _ in range(2))
        compared = compare_runs(samples("a", ours), samples("b", theirs))
        assert compared is not None
        assert compared.low is not None
        assert compared.high is not None
        held += compared.low <= 1 <= compared.high
    assert 930 <= held < 1000  # of 950 and a little more, as ranks are whole numbers


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=8), st.lists(st.floats(0.1, 10), min_size=1, max_size=8))
def test_swapping_the_sides_turns_the_ratio_round(ours: list[float], theirs: list[float]) -> None:
    there, back = (
        compare_runs(samples("a", one), samples("b", other)) for one, other in ((ours, theirs), (theirs, ours))
    )
    assert there is not None
    assert back is not None
    assert there.ratio * back.ratio == pytest.approx(1)
    assert (there.low is None) == (back.low is None) == (rank_of_interval(len(ours), len(theirs)) is None)
    if there.low is not None and there.high is not None and back.low is not None and back.high is not None:
        assert there.low <= there.ratio * (1 + 1e-9)
        assert there.ratio <= there.high * (1 + 1e-9)
        assert there.low * back.high == pytest.approx(1)
        assert there.high * back.low == pytest.approx(1)


def test_blocks_of_one_run_are_compared_within() -> None:
    ours, theirs = samples("a", [2, 40, 6, 8, 10, 12]), samples("a", [1, 20, 3, 4, 5, 6])
    compared = compare_runs(ours, theirs)
    assert same_blocks(ours, theirs)
    assert compared is not None
    for figure in (compared.low, compared.ratio, compared.high):
        assert figure == pytest.approx(2)


def test_single_runs_have_a_ratio_and_no_interval() -> None:
    compared = compare_runs(samples("a", [3.0]), samples("b", [2.0]))
    assert not same_blocks(samples("a", [3.0]), samples("b", [2.0]))
    assert compared is not None
    assert compared.ratio == pytest.approx(1.5)
    assert (compared.low, compared.different) == (None, None)
    assert compare_runs([], samples("b", [2.0])) is None


def test_runs_that_were_pressed_are_left_out_of_wall_times() -> None:
    pressed = [Sample("a", 9, 50.0, None, 2, pressure=0.5)]
    ours = [Sample("a", block, 2.0, None, 2) for block in range(4)]
    theirs = [Sample("b", block, 1.0, None, 2) for block in range(4)]
    compared = compare_runs(ours + pressed, theirs)
    assert compared is not None
    assert compared.ratio == pytest.approx(2)
    assert (compared.left_out, compared.clock, compared.blocks) == (1, "wall", 4)
    assert compare_runs(pressed, theirs).different is None  # type: ignore[union-attr]
