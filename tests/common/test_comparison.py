"""Comparisons hold what they promise: of times whose truth is known, in any order, either way
round.
"""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import changed, measured
from rows import Row, each_row

from harness.common.comparison import FEWEST_BLOCKS, Comparison, Sample, compare

SECONDS = st.floats(0.01, 100)


def samples(seconds: Sequence[float]) -> list[Sample]:
    """A sample a block; the CPU time is the wall time."""
    return [Sample("run", block, wall, wall) for block, wall in enumerate(seconds)]


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
    assert pairs.different is None  # too few for an interval
    assert compare(samples([1.0]), []) is None


@each_row(__file__, "comparison.toml")
def test_times_are_compared_by_a_clock_that_both_have(row: Row) -> None:
    ours, theirs = (
        [Sample("run", block, **row[side]) for block in range(10)] for side in ("ours", "theirs")
    )
    for block in range(row.get("calm", 10), 10):
        ours[block] = ours[block]._replace(**row["pressed"])

    comparison = compared(ours, theirs)
    left_out = row.get("left_out", 0)
    assert (comparison.clock, comparison.left_out) == (row["clock"], left_out)
    assert (comparison.blocks, comparison.low is None) == (10 - left_out, left_out == 10)
    assert comparison.ratio == pytest.approx(row["ratio"])

    idle = {"ours": ours[0].idle, "theirs": theirs[0].idle}
    known = {side: share for side, share in idle.items() if share is not None}
    assert known == pytest.approx(row.get("idle", {}))


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
    bare = changed(record, witness=None, disturbance=None).sample
    assert bare is not None
    assert (bare.pressure, bare.steal) == (None, None)
