"""Comparisons hold what they promise: of times whose truth is known, in any order, either way
round.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import changed, measured

from harness.common.comparison import (
    FEWEST_BLOCKS,
    Comparison,
    Sample,
    compare,
    shares_of,
)

SECONDS = st.floats(0.01, 100)


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


WAITED: dict[str, Any] = {"cpu_wait_seconds": 1.0}
UNKNOWN: dict[str, Any] = {"cpu_wait_unknown": "other threads or processes did part of the work"}


@pytest.mark.parametrize(
    ("waited", "clock", "ratio"),
    [
        ({"cpu_wait_seconds": 0.25}, "net", 1.0),
        (UNKNOWN, "wall", 0.8),
        ({}, "wall", 0.8),
    ],
    ids=["known", "unknown", "of an earlier version"],
)
def test_waiting_for_a_processor_is_no_time_as_far_as_it_is_known(
    waited: dict[str, Any], clock: str, ratio: float
) -> None:
    slept = [Sample("run", block, 2.0, 0.5, **WAITED) for block in range(6)]
    theirs = [Sample("run", block, 1.25, 0.5, **waited) for block in range(6)]
    comparison = compared(slept, theirs)
    assert comparison.clock == clock
    assert comparison.ratio == pytest.approx(ratio)
    assert [slept[0].idle, theirs[0].idle] == [0.5, 0.5 if clock == "net" else None]


@pytest.mark.parametrize(
    ("cpu", "threads", "clock", "ratio"),
    [(1.0, 1, "CPU", 1), (1.9, 2, "wall", 2), (1.9, 1, "wall", 2), (None, 1, "wall", 2)],
    ids=["one thread", "two threads", "a hidden thread", "unknown"],
)
def test_samples_of_earlier_versions_keep_their_clock(
    cpu: float | None, threads: int, clock: str, ratio: float
) -> None:
    waited = [Sample("run", block, wall_seconds=2.0, cpu_seconds=1.0) for block in range(6)]
    by_clock = compared(waited, [Sample("run", block, 1.0, cpu, threads) for block in range(6)])
    assert by_clock.clock == clock
    assert by_clock.ratio == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("waited", "calm", "blocks", "ratio", "different"),
    [
        (UNKNOWN, 6, 6, 1, False),
        ({"cpu_wait_seconds": 0.0}, 6, 10, 1, False),
        ({}, 6, 10, 1, False),
        (UNKNOWN, 0, 0, 3, None),
    ],
    ids=["wall time", "net time", "CPU time", "never calm"],
)
def test_only_wall_times_under_pressure_are_left_out(
    waited: dict[str, Any], calm: int, blocks: int, ratio: float, different: bool | None
) -> None:
    walls = [1.0] * calm + [3.0 if waited is UNKNOWN else 1.0] * (10 - calm)
    pressures = [0.0] * calm + [0.3] * (10 - calm)
    ours = [
        Sample("run", block, wall, 1.0, pressure=pressure, **waited)
        for block, (wall, pressure) in enumerate(zip(walls, pressures, strict=True))
    ]
    theirs = [Sample("run", block, 1.0, 1.0, **waited) for block in range(10)]
    comparison = compared(ours, theirs)
    assert (comparison.blocks, comparison.left_out) == (blocks, 10 - blocks)
    assert comparison.ratio == pytest.approx(ratio)
    assert comparison.different is different


def test_time_that_is_neither_work_nor_pressure_was_waited_for_something_else() -> None:
    """What ended processes used is known to two ticks of a hundredth of a second."""
    assert Sample("r", 0, 1.0, 0.5, pressure=0.25, **UNKNOWN).idle == pytest.approx(0.23)
    assert Sample("r", 0, 1.0, 0.5, **UNKNOWN).idle is None
    assert Sample("r", 0, 1.0, 0.5).idle is None


def test_sample_takes_the_shares_of_what_disturbed_it_from_the_whole_process() -> None:
    record = measured(
        "heap",
        {"read": 0.125, "count": 0.25, "update": 0.625},
        run_id="2026-11-21T11:20:00Z",
        block=3,
        threads=2,
        cpu_seconds=1.5,
        cpu_wait_seconds=0.125,
        witness={"wall_seconds": 2.0, "cpu_seconds": 1.6},
        disturbance={"psi_cpu_seconds": 0.5},
    )
    expected = Sample("2026-11-21T11:20:00Z", 3, 1.0, 1.5, 2, 0.25, None, 0.125)
    assert record.sample == expected
    assert changed(record, seconds={}).sample is None
    assert shares_of(1.0, None, None) == {"pressure": None, "steal": None}
