"""Comparisons hold what they promise: of times whose truth is known, in any order, either way
round.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.common.comparison import FEWEST_BLOCKS, Comparison, Sample, compare, sample_of

SECONDS = st.floats(0.01, 100)
ONES = [1.0] * 10


def samples(
    seconds: Sequence[float], threads: int = 1, pressure: Sequence[float] = ()
) -> list[Sample]:
    """A sample a block; the CPU time is the wall time, and the pressure is unknown unless it is
    given.
    """
    return [
        Sample("run", block, wall, wall, threads, pressure[block] if pressure else None)
        for block, wall in enumerate(seconds)
    ]


def compared(ours: list[Sample], theirs: list[Sample]) -> Comparison:
    comparison = compare(ours, theirs)
    assert comparison is not None
    return comparison


@given(
    st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_order_of_blocks_says_nothing_and_the_other_way_round_is_the_inverse(
    times: list[tuple[float, float]], order: random.Random
) -> None:
    ours, theirs = (samples(arm) for arm in zip(*times, strict=True))
    there, back = compared(ours, theirs), compared(theirs, ours)
    order.shuffle(ours)
    assert compared(ours, theirs) == there
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert (there.low is None) == (len(times) < FEWEST_BLOCKS)
    if there.low is not None and there.high is not None and back.high is not None:
        assert there.low == pytest.approx(1 / back.high)
        assert there.low <= there.ratio * (1 + 1e-12)
        assert there.ratio <= there.high * (1 + 1e-12)


@given(st.lists(SECONDS, min_size=FEWEST_BLOCKS, max_size=40), st.floats(1.02, 10))
def test_what_disturbs_both_samples_of_a_block_cancels(seconds: list[float], factor: float) -> None:
    same = compared(samples(seconds), samples(seconds))
    assert (same.ratio, same.low, same.high, same.different) == (1, 1, 1, False)
    slower = compared(samples([factor * second for second in seconds]), samples(seconds))
    assert slower.ratio == pytest.approx(factor)
    assert slower.different is True


def test_only_samples_of_the_same_block_of_the_same_run_are_paired() -> None:
    other, another = Sample("other", 0, 100.0), Sample("another", 0, 50.0)
    pairs = compared([*samples([2.0, 4.0]), other], [*samples([1.0]), another])
    assert pairs.blocks == 1
    assert pairs.ratio == pytest.approx(2)
    assert (pairs.low, pairs.high, pairs.different) == (None, None, None)  # too few for an interval
    assert compare(samples([1.0]), []) is None


@pytest.mark.parametrize(
    ("cpu", "threads", "clock", "ratio"),
    [(1.0, 1, "CPU", 1), (1.9, 2, "wall", 2), (1.9, 1, "wall", 2), (None, 1, "wall", 2)],
    ids=["one thread", "two threads", "a hidden thread", "unknown"],
)
def test_one_thread_is_compared_by_cpu_time_and_more_by_wall_time(
    cpu: float | None, threads: int, clock: str, ratio: float
) -> None:
    waited = [Sample("run", block, wall_seconds=2.0, cpu_seconds=1.0) for block in range(6)]
    by_clock = compared(waited, [Sample("run", block, 1.0, cpu, threads) for block in range(6)])
    assert by_clock.clock == clock
    assert by_clock.ratio == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("threads", "calm", "blocks", "ratio", "different"),
    [(2, 6, 6, 1, False), (1, 6, 10, 1, None), (2, 0, 0, 3, None)],
    ids=["wall time", "CPU time", "never calm"],
)
def test_wall_times_under_pressure_are_left_out_and_cpu_times_are_not(
    threads: int, calm: int, blocks: int, ratio: float, different: bool | None
) -> None:
    busy = 10 - calm
    ours = samples([1.0] * calm + [3.0] * busy, threads, [0.0] * calm + [0.3] * busy)
    comparison = compared(ours, samples(ONES, threads))
    assert (comparison.blocks, comparison.left_out) == (blocks, 10 - blocks)
    assert comparison.ratio == pytest.approx(ratio)
    assert threads == 1 or comparison.different is different


def test_sample_takes_the_shares_of_what_disturbed_it_from_the_whole_process() -> None:
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
