"""What a part says of the whole: right where the law is known, doubtful where little was seen, silent where nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.runs.extrapolation import Estimate, from_curve, from_slices


def curve_of(
    seconds_by: Callable[[int], float], done: int, start: float = 0.2, looks: int = 40
) -> list[dict[str, Any]]:
    """A curve as the worker keeps it: looks at equal intervals of merges, one phase and what it does not cover."""
    places = sorted({max(1, done * look // looks) for look in range(1, looks + 1)})
    return [
        {"merges": place, "seconds": {"init": start, "update": seconds_by(place)}, "total": start + seconds_by(place)}
        for place in places
    ]


def measured(seconds: float) -> Estimate:
    return Estimate(seconds, seconds, seconds, None, "measured")


@given(
    power=st.floats(0.4, 1.2),
    scale=st.floats(1e-4, 10),
    done=st.integers(50, 5000),
    further=st.floats(1.05, 30),
)
def test_the_total_of_a_curve_that_is_a_power_lies_in_the_interval(
    power: float, scale: float, done: int, further: float
) -> None:
    num_merges = math.ceil(done * further)
    estimate = from_curve(curve_of(lambda merges: scale * merges**power, done), num_merges)
    assert estimate is not None
    assert estimate.low <= 0.2 + scale * num_merges**power <= estimate.high
    assert estimate.low <= estimate.seconds <= estimate.high


@given(done=st.integers(50, 500), further=st.floats(1.1, 10))
def test_two_phases_that_change_differently_are_told_apart(done: int, further: float) -> None:
    def point(merges: int) -> dict[str, Any]:
        seconds = {"max": 0.01 * merges, "update": 0.5 * merges**0.3}
        return {"merges": merges, "seconds": seconds, "total": sum(seconds.values())}

    num_merges = math.ceil(done * further)
    estimate = from_curve([point(merges) for merges in range(5, done + 1, 5)], num_merges)
    assert estimate is not None
    assert estimate.low <= point(num_merges)["total"] <= estimate.high
    assert estimate.seconds == pytest.approx(point(num_merges)["total"], rel=0.35)


def test_the_interval_is_the_wider_the_less_was_seen() -> None:
    widths = []
    for done in (40, 200, 900):
        estimate = from_curve(curve_of(lambda merges: 0.01 * merges, done), 1000)
        assert estimate is not None
        widths.append(estimate.width)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[-1]


def test_of_few_merges_nothing_is_said() -> None:
    assert from_curve([], 100) is None
    assert from_curve(curve_of(float, 7), 100) is None
    assert from_curve(curve_of(float, 8), 100) is not None
    assert from_curve([{"merges": 50, "seconds": {"update": 1.0}, "total": 1.0}], 100) is None


def test_a_run_that_stood_still_at_the_end_is_not_extrapolated() -> None:
    curve = curve_of(lambda merges: 0.01 * merges, 100)
    assert from_curve([*curve, {**curve[-1], "total": 1.3}], 1000) is not None
    assert from_curve([*curve, {**curve[-1], "total": 20.0}], 1000) is None


def test_a_curve_without_the_workers_clock_goes_by_its_phases() -> None:
    curve = curve_of(lambda merges: 0.01 * merges, 100)
    without = [{name: point[name] for name in ("merges", "seconds")} for point in curve]
    first, second = from_curve(curve, 1000), from_curve(without, 1000)
    assert first is not None
    assert second is not None
    assert first.seconds == pytest.approx(second.seconds)


@given(power=st.floats(0.8, 2.1), scale=st.floats(1e-6, 1e-3), size=st.integers(40_000, 100_000_000))
def test_slices_show_the_power_of_the_whole(power: float, scale: float, size: int) -> None:
    slices = [(part, measured(scale * part**power)) for part in (5000, 10_000, 20_000)]
    estimate = from_slices(slices, size)
    assert estimate is not None
    assert estimate.exponent == pytest.approx(power, abs=0.3)
    assert estimate.low <= scale * size**power <= estimate.high
    assert estimate.source == "slices"


def test_one_size_shows_no_power() -> None:
    assert from_slices([], 100) is None
    assert from_slices([(10, measured(1.0)), (10, measured(1.1))], 100) is None
    assert from_slices([(10, measured(0.0)), (20, measured(1.1))], 100) is None


def test_doubt_about_a_slice_is_doubt_about_the_whole() -> None:
    sure = [(10_000, measured(1.0)), (20_000, measured(2.0))]
    doubtful = [(10_000, measured(1.0)), (20_000, Estimate(2.0, 1.0, 4.0, None, "curve"))]
    certain, uncertain = from_slices(sure, 40_000), from_slices(doubtful, 40_000)
    assert certain is not None
    assert uncertain is not None
    assert uncertain.width > certain.width


def test_what_has_already_passed_is_the_least() -> None:
    estimate = Estimate(10.0, 5.0, 20.0, None, "slices").beyond(12.0)
    assert (estimate.low, estimate.seconds, estimate.high) == (12.0, 12.0, 20.0)
