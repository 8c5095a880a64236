"""What stands in a panel, drawn by matplotlib: marks, axes whose ticks can be read off, names apart from each other."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.results.charts.chart import (
    Axis,
    Band,
    Bar,
    Dots,
    Entry,
    Label,
    Line,
    Mark,
    Panel,
    Point,
    Rule,
    Text,
)
from harness.results.charts.values import AT_LEAST, ESTIMATED, PROVED, UNCONFIRMED, UNITS, WRONG
from harness.results.colours import CARD, INK, Theme
from harness.results.colours import WRONG as WRONG_COLOUR

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "triangle-down": "v",
    "cross": "P",
    "star": "*",
    "triangle-left": "<",
    "triangle-right": ">",
    "pentagon": "p",
    "hexagon": "h",
    "diamond-tall": "d",
    "octagon": "8",
}
ARROW = ((-1.0, 0.14), (0.1, 0.14), (0.1, 0.55), (1.0, 0.0), (0.1, -0.55), (0.1, -0.14), (-1.0, -0.14), (-1.0, 0.14))
"""An arrow to the right: at least so much."""
DASHES: dict[str, Any] = {"solid": "-", "dotted": ":", "dashed": (0, (5, 2))}
NAMES = 7.5
"""Points of the names in a panel."""
LETTER = 0.0082
"""Inches that a letter is wide, for each point of its size, in matplotlib's own font: the widest that readers have."""
FEWEST_TICKS = 3
"""With two of them nobody could see that an axis is logarithmic; small panels say it in words only."""

_LARGER = {"star": 1.35, "diamond": 0.85, "square": 0.92, "diamond-tall": 1.15}
"""Shapes of one nominal size do not look equally large."""
_STEPS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9))
_AT_EDGE = 0.1
"""Which share of a panel's width is its edge."""


def key_marks(entries: Sequence[Entry], theme: Theme) -> list[Artist]:
    """The lines of a key: areas, or markers as they are in the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Patch(color=theme.of(entry.colour), label=entry.text)
        if entry.look is None
        else Line2D(
            [],
            [],
            linestyle="none",
            label=entry.text,
            **marker(Point(0, 0, entry.look, entry.form), theme),
        )
        for entry in entries
    ]


def draw_panel(axes: Axes, panel: Panel, theme: Theme, inches: tuple[float, float], crowded: bool = False) -> None:
    """Everything in a panel of so many inches; where it is `crowded` its numbers stay within its width."""
    _draw_axis(axes, "x", panel.x, inches[0])
    if isinstance(panel.y, Axis):
        _draw_axis(axes, "y", panel.y, inches[1])
    if crowded:
        _keep_numbers_inside(axes)
    for mark in panel.marks:
        draw_mark(axes, mark, theme)
    labels = [mark for mark in panel.marks if isinstance(mark, Label)]
    _name_ends(axes, [label for label in labels if label.end is not None], theme, inches)
    _name_points(axes, [label for label in labels if label.end is None], panel.marks, theme, inches)


def draw_mark(axes: Axes, mark: Mark, theme: Theme) -> None:
    if isinstance(mark, Point):
        _draw_point(axes, mark, theme)
    elif isinstance(mark, Bar):
        width, colour = mark.end - mark.start, theme.of(mark.colour)
        if mark.name:
            (bar,) = axes.barh(mark.y, width, 0.74, mark.start, color=colour, edgecolor=theme.of(CARD), linewidth=0.5)
            bar.set_gid(mark.name)
            bar.set_clip_on(False)
    elif isinstance(mark, Line):
        xs, ys = zip(*mark.points, strict=True)
        line = axes.plot(
            xs,
            ys,
            color=theme.of(mark.colour),
            linewidth=mark.width,
            linestyle=DASHES[mark.dash],
            alpha=None if mark.opacity == 1 else mark.opacity,
            drawstyle="steps-post" if mark.steps else "default",
            solid_capstyle="butt",
            zorder=2,
        )
        line[0].set_gid(mark.name or None)
    elif isinstance(mark, Dots):
        style: dict[str, Any] = {"marker": "o", "markersize": 3.2, "markeredgewidth": 0, "linestyle": "none"}
        dots = axes.plot(mark.xs, [mark.y] * len(mark.xs), color=theme.of(mark.colour), alpha=0.45, zorder=2, **style)
        dots[0].set_gid(mark.name or None)
    elif isinstance(mark, Text):
        axes.annotate(
            mark.text,
            (1.0 if mark.margin else mark.x, mark.y),
            (5 if mark.margin else mark.offset, 0),
            xycoords=axes.get_yaxis_transform() if mark.margin else "data",
            textcoords="offset points",
            va="center",
            ha="center" if mark.centred else "left",
            fontsize=mark.size,
            style="italic" if mark.outcome else "normal",
            color=theme.of(mark.colour),
            annotation_clip=False,
        )
    elif isinstance(mark, Rule):
        style = {"linewidth": 0.8, "linestyle": ":" if mark.dotted else "-", "zorder": 1}
        axes.axvline(mark.x, color=theme.of(mark.colour), **style)
    elif isinstance(mark, Band):
        axes.axvspan(mark.low, mark.high, color=theme.of(mark.colour), zorder=0)


def marker(point: Point, theme: Theme) -> dict[str, Any]:
    """The settings of the marker of one figure."""
    colour, card = theme.of(point.look.colour), theme.of(CARD)
    size = point.size * _LARGER.get(point.look.shape, 1.0)
    plain: dict[str, Any] = {
        "marker": MARKERS[point.look.shape],
        "markersize": size,
        "color": colour,
        "markeredgewidth": 0.7,
        "markeredgecolor": card,
    }
    if point.hollow or point.form == ESTIMATED:
        return plain | {"markerfacecolor": card, "markeredgecolor": colour, "markeredgewidth": 1.2}
    if point.form == UNCONFIRMED:
        return plain | {"fillstyle": "left", "markerfacecoloralt": card, "markeredgecolor": colour}
    if point.form == AT_LEAST:
        return plain | {"marker": ARROW, "markersize": size * 1.5, "markeredgewidth": 0.2, "markeredgecolor": colour}
    if point.form == WRONG:
        wrong = {"color": theme.of(WRONG_COLOUR), "markeredgecolor": theme.of(WRONG_COLOUR), "markeredgewidth": 1.8}
        return plain | {"marker": "x", "markersize": size * 1.1} | wrong
    return plain


def _draw_point(axes: Axes, point: Point, theme: Theme) -> None:
    """One figure at its place, whose id begins with what it is, and a bar from the least to the most that it may be."""
    if point.low is not None and point.high is not None:
        ends = [point.low, point.high]
        line = axes.plot(
            *(([point.x] * 2, ends) if point.upright else (ends, [point.y] * 2)),
            color=theme.of(point.look.colour),
            alpha=0.35 if point.single else 0.9,  # faint where only one run was made
            linewidth=3.2 if point.single else 1.3,
            linestyle=(0, (2, 1.2)) if point.form == ESTIMATED else "-",
            solid_capstyle="butt",
            dash_capstyle="butt",
            clip_on=False,
            zorder=3,
        )
        line[0].set_gid(f"interval-{point.name}")
    drawn = axes.plot([point.x], [point.y], linestyle="none", clip_on=False, zorder=4, **marker(point, theme))
    prefix = "value" if point.form in PROVED else point.form.replace(" ", "-")
    drawn[0].set_gid(f"{prefix}-{point.name}" if point.name else None)


def _draw_axis(axes: Axes, side: str, axis: Axis, inches: float) -> None:
    """Limits, a scale, ticks on round numbers or where measurements are, and what the numbers are of."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

    place, limit = (axes.xaxis, axes.set_xlim) if side == "x" else (axes.yaxis, axes.set_ylim)
    if axis.log:
        (axes.set_xscale if side == "x" else axes.set_yscale)("log")
        most = min(8, max(2, int(inches / (0.7 if axis.unit == "bytes" else 0.4)))) if side == "x" else 7
        ticks = [*axis.measured] if _far_apart(axis.measured, inches) else log_ticks(axis.low, axis.high, most)
    else:
        numbers = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(axis.low, axis.high)
        ticks = [tick for tick in numbers if axis.low <= tick <= axis.high]
    limit(axis.low, axis.high)
    place.set_major_locator(FixedLocator(ticks))
    place.set_major_formatter(FixedFormatter([UNITS[axis.unit].text(tick) for tick in ticks]))
    place.set_minor_locator(NullLocator())
    scale = "" if not axis.log else " (log)" if side == "x" and inches < 1.5 else " (log scale)"
    (axes.set_xlabel if side == "x" else axes.set_ylabel)(f"{axis.title}{scale}")


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers between the two, evenly spread.

    >>> log_ticks(0.002, 30)
    [0.01, 0.1, 1.0, 10.0]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in _STEPS:
        round_numbers = [round(step * 10.0**decade, 12) for decade in decades for step in steps]
        ticks = [tick for tick in round_numbers if low <= tick <= high]
        if len(ticks) >= min(FEWEST_TICKS, most):
            break
    return ticks[:: max(1, math.ceil(len(ticks) / most))]


def _far_apart(measured: Sequence[float], width: float) -> bool:
    """Whether every number at which something was measured finds room for its name below the axis."""
    if len(measured) < 3:
        return False
    steps = [math.log(larger / number) for number, larger in itertools.pairwise(measured)]
    return min(steps) / sum(steps) * width * 0.95 >= 0.62


def _keep_numbers_inside(axes: Axes) -> None:
    """Let a number at an edge of the panel grow inwards, or it would touch that of the next panel."""
    low, high = axes.get_xlim()
    axes.tick_params(axis="x", labelsize=7.5)
    for tick, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        place = math.log(tick / low, high / low) if low > 0 else (tick - low) / (high - low)
        label.set_horizontalalignment("left" if place < _AT_EDGE else "right" if place > 1 - _AT_EDGE else "center")


def text_width(text: str, size: float) -> float:
    """About how many inches a text is wide.

    >>> text_width("heap", 10) < text_width("堆堆堆堆", 10)
    True
    """
    widths = {letter: 1.7 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text}
    return max(sum(widths[letter] for letter in line) for line in text.split("\n")) * LETTER * size


def apart(wished: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """The places nearest to those wished that are at least `step` apart and within bounds, in the same order.

    >>> apart([0.5, 0.5, 0.1], 0.1, 0.0, 1.0)
    [0.45, 0.55, 0.1]
    >>> apart([0.95, 0.99], 0.1, 0.0, 1.0)
    [0.9, 1.0]
    """
    order = sorted(range(len(wished)), key=lambda place: wished[place])
    step = min(step, (high - low) / max(1, len(order) - 1))
    # Clusters of labels that touch, each as near to what its members wish as it can be: where it starts, its members,
    # and the sum of where each of these would have it start.
    clusters: list[tuple[float, list[int], float]] = []
    for place in order:
        members, wishes = [place], wished[place]
        start = min(max(wished[place], low), high)
        while clusters and clusters[-1][0] + step * len(clusters[-1][1]) > start + 1e-12:
            _, before, of_those = clusters.pop()
            wishes += of_those - step * len(before) * len(members)
            before += members
            members = before
            start = min(max(wishes / len(members), low), high - step * (len(members) - 1))
        clusters.append((start, members, wishes))
    places = [0.0] * len(order)
    for start, members, _ in clusters:
        for number, place in enumerate(members):
            places[place] = round(start + step * number, 9)
    return places


def _name_ends(axes: Axes, labels: Sequence[Label], theme: Theme, inches: tuple[float, float]) -> None:
    """Names at the right edge of a panel, each with a line to its end."""
    to_axes = axes.transData + axes.transAxes.inverted()
    gap = 0.12 / inches[0]
    places = [tuple(to_axes.transform((label.x, label.y))) for label in labels]
    tallest = max((label.text.count("\n") for label in labels), default=0) + 1
    spread = apart([y for _, y in places], tallest * NAMES * 1.25 / 72 / inches[1], 0.01, 0.99)
    style: dict[str, Any] = {"transform": axes.transAxes, "linewidth": 0.5, "alpha": 0.7, "clip_on": False, "zorder": 1}
    for (x, y), level, label in zip(places, spread, labels, strict=True):
        assert label.end is not None
        axes.plot([x, 1 + gap * 0.25, 1 + gap], [y, level, level], color=theme.of(label.end), **style)
        across = 1 + gap * 1.25
        colour = theme.of(INK)
        axes.text(across, level, label.text, transform=axes.transAxes, fontsize=NAMES, va="center", color=colour)


class _Box(NamedTuple):
    left: float
    low: float
    right: float
    high: float
    order: int = 0


def _name_points(
    axes: Axes, labels: Sequence[Label], marks: Sequence[Mark], theme: Theme, inches: tuple[float, float]
) -> None:
    """Names beside points, where they hide neither points nor bars, stairs or names."""
    to_axes = axes.transData + axes.transAxes.inverted()

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = to_axes.transform((x, y))
        return float(across) * inches[0], float(up) * inches[1]

    points = [(x, mark.y) for mark in marks if isinstance(mark, Point) for x in (mark.low, mark.x, mark.high) if x]
    for mark in marks:
        if isinstance(mark, Line) and mark.steps:
            for (x, y), (across, up) in itertools.pairwise(mark.points):
                points += [*_between((x, y), (across, y)), *_between((across, y), (across, up))]
    taken = [_around(*place(*point), 0.05, 0.05) for point in points] if labels else []
    style: dict[str, Any] = {"fontsize": NAMES, "color": theme.of(INK), "ha": "center", "va": "center", "zorder": 5}
    for label in labels:
        width, height = text_width(label.text, NAMES) * 0.9, NAMES * 1.25 / 72
        boxes = _boxes(*place(label.x, label.y), width, height)
        best = min(boxes, key=lambda box: (_spoilt(box, taken, inches), box.order))
        taken.append(best)
        middle = (best.left + best.right) / 2 / inches[0], (best.low + best.high) / 2 / inches[1]
        axes.text(*middle, label.text, transform=axes.transAxes, **style)


def _between(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """Places along a step of a stair, so close that no name fits between them."""
    (x, y), (across, up) = start, end
    return [(x * (across / x) ** (part / 40), y * (up / y) ** (part / 40)) for part in range(41)]


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
