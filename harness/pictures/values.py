"""What of a row may be drawn: a time, an estimate, a least, or nothing but what became of it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from math import exp, log, sqrt
from typing import NamedTuple

from harness.figures import merge_seconds
from harness.findings import ONE_RUN_CANNOT_TELL
from harness.record import BY_ITSELF
from harness.rows import Row

QUANTITIES = ("training", "total")
"""Seconds of which a picture may be: of everything but reading and counting, or of the whole way from the file."""

SPOKEN = {"training": "Training seconds", "total": "Total seconds"}
EXPLAINED = {
    "training": "Training is everything but reading and counting.",
    "total": "Total is the whole way from the file to the merges, reading and counting included.",
}

MEASURED, UNCONFIRMED, ESTIMATED, AT_LEAST, WRONG, NOTHING = (
    *("measured", "unconfirmed", "estimated", "at least", "wrong", "nothing"),
)


class Value(NamedTuple):
    """A figure with what it is: `low` and `high` bound it as far as its runs can tell; both None where nothing does."""

    form: str
    number: float | None = None
    low: float | None = None
    high: float | None = None


def value_of(row: Row, quantity: str) -> Value:
    """The seconds of a row that may be drawn, and how."""
    if row.status == "mismatch":
        return Value(WRONG)
    if row.status == "ok":
        seconds = seconds_of(row, quantity)
        if not seconds:
            return Value(NOTHING)
        return Value(MEASURED if row.confirmed else UNCONFIRMED, seconds, *_bounds(row, quantity, seconds))
    if quantity == "training" and by_itself(row):
        return Value(NOTHING)
    counted = _counting(row) if quantity == "training" else 0.0
    expected = row.extrapolated
    if expected.get("total_seconds") is not None:
        ends = (max(expected[f"{end}_seconds"] - counted, 1e-9) for end in ("total", "low", "high"))
        return Value(ESTIMATED, *ends)
    limit = (row.record.get("limits") or {}).get("wall_seconds")
    if row.status in ("timeout", "extrapolated") and limit:
        return Value(AT_LEAST, limit)
    return Value(NOTHING)


def seconds_of(row: Row, quantity: str) -> float | None:
    """Training is all but reading and counting; a trainer that reads the file does not tell one from the other."""
    if quantity == "total" or row.counting_only:
        return row.total
    return None if by_itself(row) else merge_seconds(row)


def by_itself(row: Row) -> bool:
    return row.record.get("counting") == BY_ITSELF


def _counting(row: Row) -> float:
    partial = row.record.get("seconds") or {}
    return sum(partial.get(phase) or 0.0 for phase in ("read", "count"))


def _bounds(row: Row, quantity: str, seconds: float) -> tuple[float, float]:
    """The least and the most of several runs; of one, how far another might be from it."""
    training = quantity == "training" and not row.counting_only
    times = [sample.training_seconds if training else sample.wall_seconds for sample in row.samples]
    runs = [seconds for seconds in times if seconds]
    if len(runs) > 1:
        return min(*runs, seconds), max(*runs, seconds)
    return seconds / (1 + ONE_RUN_CANNOT_TELL), seconds * (1 + ONE_RUN_CANNOT_TELL)


def fitted(points: Sequence[tuple[float, float]]) -> tuple[float, float | None, float]:
    """The power law through points of (size, seconds): its exponent, the error of that, and the seconds at size 1.

    Least squares of the logarithms. Two points lie on a line whatever they are, so their exponent has no error.

    >>> round(fitted([(1, 2.0), (10, 20.0), (100, 200.0)])[0], 9)
    1.0
    """
    xs, ys = [log(size) for size, _ in points], [log(seconds) for _, seconds in points]
    slope, height = statistics.linear_regression(xs, ys)
    if len(points) < 3:
        return slope, None, exp(height)
    middle = statistics.fmean(xs)
    scatter = sum((y - height - slope * x) ** 2 for x, y in zip(xs, ys, strict=True)) / (len(points) - 2)
    return slope, sqrt(scatter / sum((x - middle) ** 2 for x in xs)), exp(height)
