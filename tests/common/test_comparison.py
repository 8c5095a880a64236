"""Comparisons hold what they promise: of times whose truth is known, in any order, either way round."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.common.comparison import (
    CONFIDENCE,
    FEWEST_BLOCKS,
    MARGIN,
    MOST_PRESSURE,
    Sample,
    compare,
    interval,
    interval_ranks,
    sample_of,
    spread,
)

Times = Sequence[float]
SECONDS = st.floats(0.01, 100)


def samples(seconds: Times, *, threads: int = 1, pressure: Times = (), run: str = "run") -> list[Sample]:
    """A sample a block; the CPU time is the wall time, and nothing is known of the pressure unless it is given."""
    return [
        Sample(run, block, wall, wall, threads, pressure[block] if pressure else None)
        for block, wall in enumerate(seconds)
    ]


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_the_order_of_blocks_says_nothing(times: list[tuple[float, float]], order: random.Random) -> None:
    ours, theirs = (samples(arm) for arm in zip(*times, strict=True))
    expected = compare(ours, theirs)
    order.shuffle(ours)
    order.shuffle(theirs)
    assert compare(ours, theirs) == expected


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=40))
def test_the_other_way_round_is_the_inverse(times: list[tuple[float, float]]) -> None:
    ours, theirs = (samples(arm) for arm in zip(*times, strict=True))
    there, back = compare(ours, theirs), compare(theirs, ours)
    assert there is not None
    assert back is not None
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert (there.low is None) == (back.low is None) == (len(times) < FEWEST_BLOCKS)
    if there.low is not None and there.high is not None and back.low is not None and back.high is not None:
        assert there.low == pytest.approx(1 / back.high)
        assert there.high == pytest.approx(1 / back.low)
        assert there.low <= there.ratio * (1 + 1e-12)
        assert there.ratio <= there.high * (1 + 1e-12)


@given(st.lists(SECONDS, min_size=FEWEST_BLOCKS, max_size=40))
def test_a_time_does_not_differ_from_itself(seconds: list[float]) -> None:
    same = compare(samples(seconds), samples(seconds))
    assert same is not None
    assert (same.ratio, same.low, same.high, same.different) == (1, 1, 1, False)


@given(st.lists(SECONDS, min_size=FEWEST_BLOCKS, max_size=40), st.floats(1.02, 10))
def test_what_disturbs_both_samples_of_a_block_cancels(seconds: list[float], factor: float) -> None:
    compared = compare(samples([factor * second for second in seconds]), samples(seconds))
    assert compared is not None
    assert compared.ratio == pytest.approx(factor)
    assert compared.different is True


@pytest.mark.parametrize("blocks", [6, 10, 20, 30])
@pytest.mark.parametrize("noise", ["normal", "heavy", "skewed"])
def test_the_interval_holds_the_truth_as_often_as_it_says(blocks: int, noise: str) -> None:
    """Coverage is at least the confidence whatever the noise, less five standard errors of that many draws."""
    draw = random.Random(f"{blocks} {noise}")
    noises: dict[str, Callable[[], float]] = {
        "normal": lambda: draw.gauss(0, 0.03),
        "heavy": lambda: 0.03 * math.tan(math.pi * (draw.random() - 0.5)),
        "skewed": lambda: 0.03 * (draw.expovariate(1) - math.log(2)),
    }
    one = noises[noise]
    draws = 2000
    held = 0
    for _ in range(draws):
        low, high = interval([one() for _ in range(blocks)])
        assert low is not None
        assert high is not None
        held += low <= 0 <= high
    assert held / draws > CONFIDENCE - 5 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / draws)


@pytest.mark.parametrize("number", range(FEWEST_BLOCKS, 200, 7))
def test_the_ranks_leave_out_no_more_than_the_confidence_allows(number: int) -> None:
    ranks = interval_ranks(number)
    assert ranks is not None
    low, high = ranks
    assert low + high == number - 1
    outside = sum(math.comb(number, heads) for heads in range(low + 1)) / 2**number
    assert 2 * outside <= 1 - CONFIDENCE
    assert 2 * (outside + math.comb(number, low + 1) / 2**number) > 1 - CONFIDENCE


def test_too_few_blocks_have_a_ratio_and_no_interval() -> None:
    compared = compare(samples([2.0] * (FEWEST_BLOCKS - 1)), samples([1.0] * (FEWEST_BLOCKS - 1)))
    assert compared is not None
    assert compared.ratio == pytest.approx(2)
    assert (compared.low, compared.high, compared.different) == (None, None, None)
    assert compare(samples([1.0]), []) is None


def test_only_samples_of_the_same_block_of_the_same_run_are_paired() -> None:
    compared = compare(
        [*samples([2.0, 4.0]), *samples([100.0], run="other")],
        [*samples([1.0]), *samples([50.0], run="other")],
    )
    assert compared is not None
    assert compared.blocks == 2
    assert compared.ratio == pytest.approx(2)


def test_a_difference_within_the_margin_is_none() -> None:
    seconds = [1.0 + block / 100 for block in range(20)]
    for factor, different in ((1 + MARGIN / 2, False), (1 + 2 * MARGIN, True)):
        compared = compare(samples([factor * second for second in seconds]), samples(seconds))
        assert compared is not None
        assert compared.low is not None
        assert compared.low > 1
        assert compared.different is different


def test_one_thread_is_compared_by_cpu_time_and_more_by_wall_time() -> None:
    waited = [Sample("run", block, wall_seconds=2.0, cpu_seconds=1.0) for block in range(6)]
    plain = [Sample("run", block, wall_seconds=1.0, cpu_seconds=1.0) for block in range(6)]
    by_cpu = compare(waited, plain)
    assert by_cpu is not None
    assert (by_cpu.clock, by_cpu.ratio) == ("CPU", 1)
    wide = [Sample("run", block, wall_seconds=1.0, cpu_seconds=1.9, threads=2) for block in range(6)]
    hidden = [Sample("run", block, wall_seconds=1.0, cpu_seconds=1.9) for block in range(6)]
    unknown = [Sample("run", block, wall_seconds=1.0) for block in range(6)]
    for other in (wide, hidden, unknown):
        by_wall = compare(waited, other)
        assert by_wall is not None
        assert by_wall.clock == "wall"
        assert by_wall.ratio == pytest.approx(2)


def test_wall_times_under_pressure_are_left_out_and_cpu_times_are_not() -> None:
    pressure = [0.0] * 6 + [MOST_PRESSURE * 1.5] * 4
    calm, busy = [1.0] * 6, [3.0] * 4
    by_wall = compare(samples(calm + busy, threads=2, pressure=pressure), samples([1.0] * 10, threads=2))
    assert by_wall is not None
    assert (by_wall.blocks, by_wall.left_out, by_wall.ratio, by_wall.different) == (6, 4, 1, False)
    by_cpu = compare(samples(calm + busy, pressure=pressure), samples([1.0] * 10))
    assert by_cpu is not None
    assert (by_cpu.blocks, by_cpu.left_out) == (10, 0)
    never_calm = compare(samples([3.0] * 8, threads=2, pressure=[0.5] * 8), samples([1.0] * 8, threads=2))
    assert never_calm is not None
    assert (never_calm.blocks, never_calm.left_out, never_calm.different) == (0, 8, None)
    assert never_calm.ratio == pytest.approx(3)


def test_a_sample_takes_the_shares_of_what_disturbed_it_from_the_whole_process() -> None:
    record = {
        "run_id": "r",
        "block": 3,
        "threads": 2,
        "seconds": {"read": 0.125, "count": 0.25, "update": 0.625, "total": 1.0},
        "cpu_seconds": 1.5,
        "witness": {"wall_seconds": 2.0, "cpu_seconds": 1.6},
        "disturbance": {"psi_cpu_seconds": 0.5, "steal_seconds": None},
    }
    assert sample_of(record) == Sample("r", 3, 1.0, 1.5, 2, pressure=0.25, steal=None)
    assert sample_of({"seconds": {"total": None}}) is None
    assert sample_of({"seconds": {"total": 1.0}, "disturbance": None}) == Sample("None", 0, 1.0)


def test_spread_is_the_range_by_the_median() -> None:
    assert spread([2.0, 1.0, 4.0]) == pytest.approx(1.5)
    assert spread([2.0]) is None
