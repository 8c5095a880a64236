"""Axes whose ticks a reader can read off, and a program read back: plain numbers, or bytes with their unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from harness.units import bytes_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Text = Callable[[float], str]
_STEPS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))
FEWEST_TICKS = 3
"""With two of them nobody could see that an axis is logarithmic; small panels say it in words only."""


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


def log_axis(
    axes: Axes, side: str, low: float, high: float, name: str, text: Text = number_text, most: int = 8
) -> None:
    """Make an axis logarithmic from `low` to `high`, with two to `most` ticks on round numbers."""
    (axes.set_xscale if side == "x" else axes.set_yscale)("log")
    (axes.set_xlim if side == "x" else axes.set_ylim)(low, high)
    _ticks(axes, side, log_ticks(low, high, most), text)
    (axes.set_xlabel if side == "x" else axes.set_ylabel)(f"{name} (log scale)")


def plain_axis(axes: Axes, side: str, low: float, high: float, name: str, text: Text = number_text) -> None:
    """A linear axis with ticks on round numbers."""
    from matplotlib.ticker import MaxNLocator

    (axes.set_xlim if side == "x" else axes.set_ylim)(low, high)
    ticks = [tick for tick in MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if low <= tick <= high]
    _ticks(axes, side, ticks, text)
    (axes.set_xlabel if side == "x" else axes.set_ylabel)(name)


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers between the two, evenly spread.

    >>> log_ticks(0.002, 30)
    [0.01, 0.1, 1.0, 10.0]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in _STEPS:
        ticks = [round(step * 10.0**decade, 12) for decade in decades for step in steps]
        found = [tick for tick in ticks if low <= tick <= high]
        if len(found) >= min(FEWEST_TICKS, most):
            break
    return found[:: max(1, math.ceil(len(found) / most))]


def _ticks(axes: Axes, side: str, ticks: Sequence[float], text: Text) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    axis: Axis = axes.xaxis if side == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([text(tick) for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def log_range(
    values: Iterable[float], left: float = 1.35, right: float = 1.35, least: float = 2.0
) -> tuple[float, float]:
    """From a little below the smallest value to a little above the largest; at least a factor of `least` in all."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = min(known) / left, max(known) * right
    if high < least * low:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(least), middle * math.sqrt(least)
    return low, high
