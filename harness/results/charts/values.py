"""What of a row may be drawn, a time, an estimate, a least or nothing, and how numbers are written beside an axis."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from math import exp, log, sqrt
from typing import NamedTuple

from harness.common.units import bytes_text
from harness.records.schema import BY_ITSELF
from harness.results.fields import merge_seconds
from harness.results.notes import ONE_RUN_CANNOT_TELL
from harness.results.rows import Row
from variants.contract import COUNTING_PHASES

QUANTITIES = ("training", "total", "cpu")
"""Seconds of which a picture may be: of everything but reading and counting, of the whole way from the file, or of the
processors on that way."""

SPOKEN = {"training": "Training seconds", "total": "Total seconds", "cpu": "Processor seconds"}
EXPLAINED = {
    "training": "Training is everything but reading and counting.",
    "total": "Total is the whole way from the file to the merges, reading and counting included.",
    "cpu": "Processor seconds are those of all threads on the whole way; waiting for a processor adds nothing to them.",
}

MEASURED, UNCONFIRMED, ESTIMATED, AT_LEAST, WRONG, NOTHING = FORMS = (
    *("measured", "unconfirmed", "estimated", "at least", "wrong", "nothing"),
)
MANY = 24
"""From so many rows on, they stand closer."""
PROVED = (MEASURED, UNCONFIRMED)
"""The forms of a time that was measured to the end."""
SIGNS = {ESTIMATED: "~", AT_LEAST: ">"}
"""What stands before a number that was not measured."""


class Value(NamedTuple):
    """A figure with what it is: `low` and `high` bound it as far as its runs can tell; both None where nothing does."""

    form: str
    number: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def numbers(self) -> list[float]:
        """All that an axis has to have room for."""
        return [number for number in self[1:] if number is not None]


def value_of(row: Row, quantity: str) -> Value:
    """The seconds of a row that may be drawn, and how."""
    if row.status == "mismatch":
        return Value(WRONG)
    if row.status == "ok":
        seconds = seconds_of(row, quantity)
        if not seconds:
            return Value(NOTHING)
        return Value(MEASURED if row.confirmed else UNCONFIRMED, seconds, *_bounds(row, quantity, seconds))
    if quantity == "cpu" or (quantity == "training" and by_itself(row)):
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
    if quantity == "cpu":
        return row.cpu_seconds
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
    if quantity == "cpu":
        times = [sample.cpu_seconds for sample in row.samples]
    else:
        training = quantity == "training" and not row.counting_only
        left_out = COUNTING_PHASES if training else ()
        times = [math.fsum(spent for phase, spent in run.items() if phase not in left_out) for run in row.each]
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


def log_range(
    values: Iterable[float], left: float = 1.35, right: float = 1.35, least: float = 2.0
) -> tuple[float, float]:
    """From a little below the smallest value to a little above the largest; at least a factor of `least` in all."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = min(known) / left, max(known) * right
    if high < least * low:
        middle = sqrt(low * high)
        low, high = middle / sqrt(least), middle * sqrt(least)
    return low, high


def number_text(number: float) -> str:
    """
    >>> [number_text(number) for number in (0.001, 2.0, 1500.0, 1e-05)]
    ['0.001', '2', '1,500', '0.00001']
    """
    if number >= 1000:
        return f"{number:,.0f}"
    return f"{number:.10f}".rstrip("0").rstrip(".") if number < 0.001 else f"{number:.6g}"


def size_text(size: float) -> str:
    """
    >>> size_text(1_000_000), size_text(250_000), size_text(1500)
    ('1 MB', '250 kB', '1.5 kB')
    """
    number, unit = bytes_text(round(size)).split(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def power_text(number: float) -> str:
    """
    >>> [power_text(number) for number in (1, 200, 1000, 300_000, 10_000_000, 2e9)]
    ['1', '200', '1k', '300k', '10M', '2G']
    """
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:g}{unit}"
    return f"{number:g}"


class Unit(NamedTuple):
    """How the numbers of an axis are written: by us, and by the formats of D3 that Vega knows."""

    text: Callable[[float], str]
    d3: str


UNITS = {
    "number": Unit(number_text, ",~f"),
    "bytes": Unit(size_text, ".3~s"),
    "times": Unit(power_text, ".3~s"),
    "share": Unit("{:.0%}".format, "%"),
}
