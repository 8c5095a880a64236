"""How long the whole would take, from a part of it: pure arithmetic, with an interval as wide as the part is small.

Two ways. From the curve of a run that was stopped: the seconds a merge takes change with the number of merges made as a
power, whose exponent the curve's later part shows. From slices: the whole time grows with the size of the word table as
a power, whose exponent several slices show. An interval is meant to hold the truth nine times in ten; what it allows
for besides the scatter of the fit was chosen so that it does for the stages of the series.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

FEWEST_MERGES = 8
"""Of fewer the seconds of one merge cannot be told from those of the start."""
STEP = 1.12
"""The least ratio between two numbers of merges at which a curve is looked at."""
EARLIEST = 1 / 10
"""The part of the merges made whose seconds say nothing about those to come."""
QUANTILE = 1.645
LOOK_NOISE, SLICE_NOISE = 0.15, 0.05
"""How far one look at a curve, and the whole run of a slice, may be off, since machines are not steady."""
EXPONENT_DOUBT = 0.3
"""How far the exponent of the seconds a merge takes may drift beyond what was seen of it."""
UNKNOWN_EXPONENT = (-0.3, 0.4)
"""What is taken for it, and the doubt, before a curve has shown any."""
LEVEL_DOUBT = 0.18
"""How much faster or slower the machine may be later on, and other sizes than the power says."""
SIZE_DOUBT = 0.1
"""How far the exponent over sizes may be from that of the slices."""
SIZE_EXPONENT, EXPONENT_OF_BEGINNINGS = (1.2, 0.6), (1.6, 0.6)
"""What is taken for it, and the doubt, before slices have shown any, or beginnings, whose merges are fewer too."""
NEAR = 8
"""Beginnings so many times smaller than the largest say more of a start than of what is to come."""
HUNG_SHARE = 0.3
HUNG_MERGES = 50


MEASURED = "measured"


@dataclass(frozen=True)
class Estimate:
    """Seconds that something would take, with its interval, and from what: curve, slices, beginnings, or measured."""

    seconds: float
    low: float
    high: float
    exponent: float | None
    source: str

    @property
    def width(self) -> float:
        return self.high / self.low if self.low > 0 else math.inf

    def beyond(self, elapsed: float) -> Estimate:
        """The same, knowing that it has already taken `elapsed` seconds."""
        return replace(self, **{name: max(getattr(self, name), elapsed) for name in ("seconds", "low", "high")})


def from_curve(curve: Sequence[Mapping[str, Any]], num_merges: int) -> Estimate | None:
    """The whole of a run that was stopped; None if its curve is too short for it, or stood still at the end."""
    points = rising(curve)
    if len(points) < 2 or points[-1].merges < FEWEST_MERGES:
        return None
    done, at = points[-1].merges, points[-1].elapsed
    elapsed = max(elapsed_at(curve[-1]), at)
    if elapsed - at > max(1.0, HUNG_SHARE * elapsed, HUNG_MERGES * elapsed / done):
        return None
    seen = spread_out(points)
    coming = [
        still_to_come(rates, done, num_merges) for phase in points[-1].seconds if (rates := rates_of(seen, phase))
    ]
    if not coming:
        return None
    whole, low, high = (elapsed + math.fsum(ends) for ends in zip(*coming, strict=True))
    return Estimate(whole, low, high, None, "curve")


def still_to_come(
    rates: Sequence[tuple[float, float, float]], done: int, num_merges: int
) -> tuple[float, float, float]:
    """What one phase will take from here on, with its interval."""
    slope, doubt, level, scatter = fitted(rates, done, UNKNOWN_EXPONENT, LOOK_NOISE)
    doubt, level_doubt = math.hypot(doubt, EXPONENT_DOUBT), math.hypot(scatter, LEVEL_DOUBT)
    middle, low, high = (
        rest(level * math.exp(sign * QUANTILE * level_doubt), slope + sign * QUANTILE * doubt, done, num_merges)
        for sign in (0, -1, 1)
    )
    return middle, low, high


@dataclass(frozen=True)
class Point:
    """A number of merges made, and the seconds by then: of the call, and of each phase with what none covers."""

    merges: int
    elapsed: float
    seconds: Mapping[str, float]


def elapsed_at(point: Mapping[str, Any]) -> float:
    """The seconds since the call at a point of a curve; without the worker's own, what the phases add up to."""
    told = point.get("total")
    return float(told) if told is not None else math.fsum(point["seconds"].values())


def rising(curve: Sequence[Mapping[str, Any]]) -> list[Point]:
    """The points at which merges were added, with the seconds at which that was seen first."""
    points: list[Point] = []
    for point in curve:
        merges, elapsed = int(point["merges"]), elapsed_at(point)
        if merges > 0 and (not points or (merges > points[-1].merges and elapsed > points[-1].elapsed)):
            uncovered = elapsed - math.fsum(point["seconds"].values())
            points.append(Point(merges, elapsed, {**point["seconds"], "other": max(0.0, uncovered)}))
    return points


def spread_out(points: Sequence[Point]) -> list[Point]:
    """Those of the later points that are some way apart, as seen from the last."""
    kept = [points[-1]]
    for point in reversed(points[:-1]):
        if point.merges < points[-1].merges * EARLIEST and len(kept) > 1:
            break
        if point.merges * STEP <= kept[-1].merges:
            kept.append(point)
    return kept[::-1]


def rates_of(seen: Sequence[Point], phase: str) -> list[tuple[float, float, float]]:
    """Between every two points the number of merges, the seconds that a merge took in the phase, and their weight."""
    rates = []
    for before, after in itertools.pairwise(seen):
        merges, spent = after.merges - before.merges, after.seconds[phase] - before.seconds.get(phase, 0.0)
        if spent > 0:
            rates.append(
                (math.sqrt(before.merges * after.merges), spent / merges, math.log(after.merges / before.merges))
            )
    return rates


def rest(level: float, slope: float, done: int, num_merges: int) -> float:
    """The seconds of the merges after `done`, if one takes `level` there and changes as the power `slope`."""
    ratio, power = num_merges / done, slope + 1
    grown = math.log(ratio) if abs(power) < 1e-9 else (ratio**power - 1) / power
    return level * done * grown


def fitted(
    samples: Sequence[tuple[float, float, float]], at: float, prior: tuple[float, float], noise: float
) -> tuple[float, float, float, float]:
    """A power law through (place, value, weight): exponent, its doubt, the value at `at`, the scatter of that.

    Least squares of the logarithms, drawn to a prior exponent where there is little to see.
    """
    total = math.fsum(weight for *_, weight in samples)
    places = [math.log(place / at) for place, *_ in samples]
    values = [math.log(value) for _, value, _ in samples]
    weights = [weight / total for *_, weight in samples]
    middle = math.fsum(w * x for w, x in zip(weights, places, strict=True))
    height = math.fsum(w * y for w, y in zip(weights, values, strict=True))
    breadth = math.fsum(w * (x - middle) ** 2 for w, x in zip(weights, places, strict=True))
    expected, before = prior
    slope, doubt = expected, before
    if breadth > 0:
        seen = (
            math.fsum(w * (x - middle) * (y - height) for w, x, y in zip(weights, places, values, strict=True))
            / breadth
        )
        spread = math.fsum(
            w * (y - height - seen * (x - middle)) ** 2 for w, x, y in zip(weights, places, values, strict=True)
        )
        freedom = max(len(samples) - 2, 1)
        error = math.sqrt((spread + noise**2) * len(samples) / freedom / len(samples) / breadth)
        share = before**2 / (before**2 + error**2)
        slope, doubt = share * seen + (1 - share) * expected, before * error / math.hypot(before, error)
    residuals = [y - height - slope * (x - middle) for x, y in zip(places, values, strict=True)]
    scatter = math.sqrt(math.fsum(w * r * r for w, r in zip(weights, residuals, strict=True)))
    return slope, doubt, math.exp(height - slope * middle), scatter / math.sqrt(len(samples))


def from_slices(
    slices: Sequence[tuple[int, Estimate]], size: int, exponent: tuple[float, float] = SIZE_EXPONENT
) -> Estimate | None:
    """The whole of a table of `size`, from what slices of it take; None without two sizes."""
    usable = [(slice_size, estimate) for slice_size, estimate in slices if estimate.seconds > 0]
    if len({slice_size for slice_size, _ in usable}) < 2:
        return None
    largest, last = max(usable, key=lambda each: each[0])
    samples = [(float(each), estimate.seconds, float(each) / estimate.width) for each, estimate in usable]
    slope, doubt, level, scatter = fitted(samples, largest, exponent, SLICE_NOISE)
    # The largest slice is the nearest to the whole: the line is drawn through it and the fit, half way.
    level = math.sqrt(level * last.seconds)
    doubt = math.hypot(doubt, SIZE_DOUBT)
    factor = size / largest
    own = math.hypot(scatter, LEVEL_DOUBT)

    def grown(base: float, sign: int) -> float:
        power = slope + math.copysign(QUANTILE * doubt, math.log(factor)) * sign
        return float(base * math.exp(sign * QUANTILE * own) * factor**power)

    lower, upper = last.low / last.seconds, last.high / last.seconds
    return Estimate(grown(level, 0), grown(level * lower, -1), grown(level * upper, 1), slope, "slices")


def from_beginnings(beginnings: Sequence[tuple[int, Estimate]], size: int) -> Estimate | None:
    """The whole of a text of `size`, from what its later beginnings take, each for the same share of the merges.

    The exponent is of size and merges at once, and not what a reader would take it for.
    """
    largest = max((each for each, _ in beginnings), default=0)
    near = [each for each in beginnings if each[0] * NEAR >= largest]
    estimate = from_slices(near, size, EXPONENT_OF_BEGINNINGS)
    return estimate and replace(estimate, exponent=None, source="beginnings")
