"""Names beside the ends of lines and beside points, apart from each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.pictures.page import text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def apart(wished: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """The places nearest to those wished that are at least `step` apart and within bounds, in the same order.

    >>> apart([0.5, 0.5, 0.1], 0.1, 0.0, 1.0)
    [0.45, 0.55, 0.1]
    >>> apart([0.95, 0.99], 0.1, 0.0, 1.0)
    [0.9, 1.0]
    """
    order = sorted(range(len(wished)), key=lambda place: wished[place])
    step = min(step, (high - low) / max(1, len(order) - 1))
    # Clusters of labels that touch, each as near to what its members wish as it can be.
    clusters: list[tuple[float, list[int]]] = []
    for place in order:
        members = [place]
        start = min(max(wished[place], low), high)
        while clusters and clusters[-1][0] + step * len(clusters[-1][1]) > start + 1e-12:
            members = clusters.pop()[1] + members
            middle = sum(wished[each] - step * number for number, each in enumerate(members)) / len(members)
            start = min(max(middle, low), high - step * (len(members) - 1))
        clusters.append((start, members))
    found = [0.0] * len(order)
    for start, members in clusters:
        for number, place in enumerate(members):
            found[place] = round(start + step * number, 9)
    return found


def name_ends(
    axes: Axes,
    ends: Sequence[tuple[float, float, str, str]],
    ink: str,
    height: float,
    size: float = 7.5,
    gap: float = 0.03,
) -> None:
    """Names at the right edge of a panel `height` inches high, each with a line to its end (x, y, name, colour)."""
    to_axes = axes.transData + axes.transAxes.inverted()
    places = [tuple(to_axes.transform((x, y))) for x, y, *_ in ends]
    spread = apart([y for _, y in places], size * 1.25 / 72 / height, 0.01, 0.99)
    for (x, y), level, (*_, name, colour) in zip(places, spread, ends, strict=True):
        axes.plot(
            [x, 1 + gap * 0.25, 1 + gap],
            [y, level, level],
            transform=axes.transAxes,
            color=colour,
            linewidth=0.5,
            alpha=0.7,
            clip_on=False,
            zorder=1,
        )
        axes.text(1 + gap * 1.25, level, name, transform=axes.transAxes, fontsize=size, va="center", color=ink)


def name_points(
    axes: Axes,
    named: Sequence[tuple[float, float, str]],
    points: Sequence[tuple[float, float]],
    ink: str,
    panel: tuple[float, float],
    size: float = 7.5,
) -> None:
    """Names beside points (x, y, name) of a panel of so many inches, where they hide neither points nor names."""
    to_axes = axes.transData + axes.transAxes.inverted()

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = to_axes.transform((x, y))
        return float(across) * panel[0], float(up) * panel[1]

    taken = [_around(*place(*point), 0.05, 0.05) for point in points]
    for x, y, name in named:
        across, up = place(x, y)
        width, height = text_width(name, size) * 0.9, size * 1.25 / 72
        best = min(_boxes(across, up, width, height), key=lambda box: (_spoilt(box, taken, panel), box.order))
        taken.append(best)
        middle = (best.left + best.right) / 2 / panel[0], (best.low + best.high) / 2 / panel[1]
        axes.text(*middle, name, transform=axes.transAxes, fontsize=size, color=ink, ha="center", va="center", zorder=5)


class _Box(NamedTuple):
    left: float
    low: float
    right: float
    high: float
    order: int = 0


def _around(x: float, y: float, wide: float, high: float, order: int = 0) -> _Box:
    return _Box(x - wide, y - high, x + wide, y + high, order)


def _boxes(x: float, y: float, width: float, height: float) -> list[_Box]:
    """Where a name may stand: right, above, below, left, and then the same further away."""
    places = [
        (x + across * (away + width / 2), y + up * (away * 0.7 + height / 2))
        for away in (0.1, 0.2, 0.32, 0.46)
        for across, up in ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 0), (-1, 1), (-1, -1))
    ]
    return [_around(*place, width / 2, height / 2, order) for order, place in enumerate(places)]


def _spoilt(box: _Box, taken: Sequence[_Box], panel: tuple[float, float]) -> float:
    """How much of a place is hidden or hides: the area it shares with others, and what is outside the panel."""
    shared = sum(
        max(0.0, min(box.right, other.right) - max(box.left, other.left))
        * max(0.0, min(box.high, other.high) - max(box.low, other.low))
        for other in taken
    )
    outside = max(0.0, -box.left) + max(0.0, box.right - panel[0]) + max(0.0, -box.low) + max(0.0, box.high - panel[1])
    return round(shared + outside, 6)
