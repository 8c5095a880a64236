"""A chart as plain data, drawn by matplotlib into an SVG or a PNG: the same records give the same bytes.

Charts are narrow, so that they can be read on a phone. Panels stand below each other. A mark with a name has it as its
id in the SVG, and its `hover` as a <title>. Every text is made harmless here, whatever a record holds.
"""

from __future__ import annotations

import contextlib
import math
import textwrap
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.common.console import terminal_text
from harness.common.units import bytes_text
from harness.results.chart import Axis, Band, Bar, Chart, Dots, Entry, Label, Line, Mark, Panel, Point, Text
from harness.results.colours import CARD, FAINT, INK, LIGHT, LINE, Colour, Theme
from harness.results.colours import WRONG as WRONG_COLOUR
from harness.results.fields import AT_LEAST, ESTIMATED, UNCONFIRMED, WRONG

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, EDGE, LINE_HEIGHT = 6.0, 0.12, 0.2
WIDEST_LABEL = 2.1
LABEL, SMALL = 9.5, 8.5


_LETTER = 0.0082
"""Inches that a letter of matplotlib's font is wide, for each point of its size."""
_STYLE: Any = {  # matplotlib names its settings in a type that changes with every release
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text: readable by programs and by those who cannot see
    "svg.hashsalt": "pictures",  # equal records give equal bytes
    "path.simplify": False,
}
_MARKERS = {
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
_ARROW = ((-1.0, 0.14), (0.1, 0.14), (0.1, 0.55), (1.0, 0.0), (0.1, -0.55), (0.1, -0.14), (-1.0, -0.14), (-1.0, 0.14))
_DASHES: dict[str, Any] = {"solid": "-", "dotted": ":", "dashed": (0, (5, 2))}


def draw_chart(chart: Chart, theme: Theme = LIGHT) -> Figure:
    """The chart as a figure of matplotlib."""
    with styled():
        return _drawn(chart, theme)


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """matplotlib's settings while something is drawn or written."""
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that matplotlib's font lacks: an SVG leaves the choice of font to its reader.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def text_width(text: str, size: float) -> float:
    """About how many inches a text is wide.

    >>> text_width("heap", 10) < text_width("堆堆堆堆", 10)
    True
    """
    widths = [
        sum(1.7 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in line)
        for line in text.split("\n")
    ]
    return max(widths) * _LETTER * size


def _wrapped(text: str, size: float, inches: float) -> list[str]:
    return textwrap.wrap(terminal_text(text), max(8, int(inches / (_LETTER * size)))) or [""]


def _drawn(chart: Chart, theme: Theme) -> Figure:
    from matplotlib.figure import Figure

    room = WIDTH - 2 * EDGE
    title, caption, notes = (
        [part for line in lines for part in _wrapped(line, size, room)]
        for lines, size in (([chart.title], 12.5), (chart.caption, SMALL), (chart.notes, SMALL))
    )
    key_columns = max(1, int(room / (max((text_width(entry.text, SMALL) for entry in chart.key), default=0) + 0.5)))
    key_height = 0.17 * -(-len(chart.key) // key_columns)
    above = EDGE + 0.24 * len(title) + LINE_HEIGHT * len(caption) + 0.06 + key_height + (0.1 if chart.key else 0.0)
    panels = [_with_short_names(panel) for panel in chart.panels]
    heights = [(_title_height(panel, room), _height(panel, chart), _axis_height(panel)) for panel in panels]
    below = LINE_HEIGHT * len(notes) + (0.12 if notes else 0.0)
    height = above + sum(map(sum, heights)) + below
    figure = Figure(figsize=(WIDTH, height), facecolor=theme.of(CARD))
    left = max(map(_room_left, panels), default=0.0)
    right = chart.margin + max(map(_room_right, panels), default=0.0)

    def write(lines: Sequence[str], top: float, size: float, colour: Colour, weight: str = "normal") -> None:
        for number, line in enumerate(lines):
            step = 0.24 if weight == "bold" else LINE_HEIGHT
            place = (EDGE / WIDTH, 1 - (top + (number + 0.5) * step) / height)
            figure.text(*place, line, fontsize=size, color=theme.of(colour), weight=weight, va="center")

    write(title, EDGE, 12.5, INK, "bold")
    write(caption, EDGE + 0.24 * len(title), SMALL, FAINT)
    write(notes, height - below + 0.06, SMALL, FAINT)
    _draw_key(figure, chart.key, theme, key_columns, 1 - (above - key_height - 0.1) / height)
    top = above
    for panel, (titled, high, axis) in zip(panels, heights, strict=True):
        inches = (WIDTH - 2 * EDGE - left - right, high)
        bounds = ((EDGE + left) / WIDTH, 1 - (top + titled + high) / height, inches[0] / WIDTH, high / height)
        write(_wrapped(panel.title, LABEL, room) if panel.title else [], top + 0.04, LABEL, INK)
        _draw_panel(figure.add_axes(bounds, facecolor=theme.of(CARD)), panel, theme, inches)
        top += titled + high + axis
    return figure


def _with_short_names(panel: Panel) -> Panel:
    """The panel with names of lines that take no more than their share of the width."""
    if isinstance(panel.y, Axis):
        return panel
    return replace(panel, y=["\n".join(_wrapped(name, LABEL, WIDEST_LABEL)) for name in panel.y])


def _title_height(panel: Panel, room: float) -> float:
    return 0.1 + LINE_HEIGHT * len(_wrapped(panel.title, LABEL, room)) if panel.title else 0.06


def _height(panel: Panel, chart: Chart) -> float:
    if isinstance(panel.y, Axis):
        return chart.height
    lines = max((name.count("\n") for name in panel.y), default=0) + 1
    return max(1, len(panel.y)) * max(chart.step, 0.16 * lines + 0.04)


def _axis_height(panel: Panel) -> float:
    return 0.3 + (0.24 if panel.x.title else 0.0)


def _room_left(panel: Panel) -> float:
    if isinstance(panel.y, Axis):
        return 0.72
    return max((text_width(name, LABEL) for name in panel.y), default=0.0) + 0.1


def _room_right(panel: Panel) -> float:
    names = [text_width(mark.text, SMALL) for mark in panel.marks if isinstance(mark, Label) and mark.line]
    margins = [text_width(mark.text, SMALL) for mark in panel.marks if isinstance(mark, Text) and mark.margin]
    return max([*(width + 0.2 for width in names), *margins], default=0.0)


def _draw_key(figure: Figure, key: Sequence[Entry], theme: Theme, columns: int, top: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(color=theme.of(entry.colour), label=terminal_text(entry.text))
        if entry.look is None
        else Line2D(
            [],
            [],
            linestyle="none",
            label=terminal_text(entry.text),
            **_marker(Point(0, 0, entry.look, entry.form), theme),
        )
        for entry in key
    ]
    if handles:
        legend = figure.legend(
            handles=handles,
            loc="upper left",
            bbox_to_anchor=(EDGE / WIDTH, top),
            ncols=min(columns, len(handles)),
            frameon=False,
            fontsize=SMALL,
            labelcolor=theme.of(INK),
            borderpad=0,
            borderaxespad=0,
            handletextpad=0.5,
            columnspacing=1.4,
            handlelength=1.4,
        )
        legend.set_gid("key")


def _draw_panel(axes: Axes, panel: Panel, theme: Theme, inches: tuple[float, float]) -> None:
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", color=theme.of(FAINT), labelcolor=theme.of(FAINT), labelsize=SMALL, width=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom" or (side == "left" and isinstance(panel.y, Axis)))
        spine.set_color(theme.of(FAINT))
        spine.set_linewidth(0.6)
    _draw_axis(axes, "x", panel.x, theme, inches[0])
    if isinstance(panel.y, Axis):
        _draw_axis(axes, "y", panel.y, theme, inches[1])
        axes.grid(color=theme.of(LINE), linewidth=0.6)
    else:
        axes.set_ylim(len(panel.y) - 0.5, -0.5)
        axes.set_yticks(range(len(panel.y)), panel.y)
        axes.tick_params(axis="y", length=0, labelcolor=theme.of(INK), labelsize=LABEL)
        for place, label in enumerate(axes.get_yticklabels()):
            label.set_fontweight("bold" if place in panel.bold else "normal")
        axes.grid(axis="x", color=theme.of(LINE), linewidth=0.6)
    for mark in panel.marks:
        _draw_mark(axes, mark, theme)
    labels = [mark for mark in panel.marks if isinstance(mark, Label)]
    _name_series(axes, [label for label in labels if label.line is not None], theme, inches)
    _name_points(axes, [label for label in labels if label.line is None], theme, inches)


def _draw_mark(axes: Axes, mark: Mark, theme: Theme) -> None:
    drawn: Any = None
    if isinstance(mark, Point):
        drawn = _draw_point(axes, mark, theme)
    elif isinstance(mark, Bar):
        colour = theme.of(mark.colour)
        fill: dict[str, Any] = {"color": colour, "linewidth": 0}
        if mark.open:
            fill = {"facecolor": "none", "edgecolor": colour, "linewidth": 1.2, "linestyle": (0, (3, 2))}
        (drawn,) = axes.barh(mark.y, mark.end - mark.start, 0.68, mark.start, clip_on=False, **fill)
    elif isinstance(mark, Line):
        style: dict[str, Any] = {"drawstyle": "steps-post" if mark.steps else "default", "zorder": 2, "linewidth": 1.1}
        xs, ys = zip(*mark.points, strict=True)
        drawn = axes.plot(xs, ys, color=theme.of(mark.colour), linestyle=_DASHES[mark.dash], alpha=0.8, **style)[0]
    elif isinstance(mark, Dots):
        style = {"marker": "o", "markersize": 3.4, "markeredgewidth": 0, "linestyle": "none", "zorder": 2}
        drawn = axes.plot(mark.xs, [mark.y] * len(mark.xs), color=theme.of(mark.colour), alpha=0.45, **style)[0]
    elif isinstance(mark, Band):
        axes.axvspan(mark.low, mark.high, color=theme.of(mark.colour), zorder=0)
    elif isinstance(mark, Text):
        axes.annotate(
            terminal_text(mark.text),
            (1.0 if mark.margin else mark.x, mark.y),
            (mark.offset, 0),
            xycoords=axes.get_yaxis_transform() if mark.margin else "data",
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            style="italic" if mark.italic else "normal",
            weight="bold" if mark.bold else "normal",
            color=theme.of(mark.colour),
            annotation_clip=False,
        )
    if drawn is not None and mark.name:
        drawn.set_gid(mark.name)


def _draw_point(axes: Axes, point: Point, theme: Theme) -> Any:
    if point.low is not None and point.high is not None:
        ends = [point.low, point.high]
        axes.plot(
            *(([point.x] * 2, ends) if point.upright else (ends, [point.y] * 2)),
            color=theme.of(point.look.colour),
            linewidth=1.4,
            linestyle=(0, (2, 1.2)) if point.form == ESTIMATED else "-",
            clip_on=False,
            zorder=3,
        )[0].set_gid(f"interval-{point.name}" if point.name else None)
    return axes.plot([point.x], [point.y], linestyle="none", clip_on=False, zorder=4, **_marker(point, theme))[0]


def _marker(point: Point, theme: Theme) -> dict[str, Any]:
    """The settings of the marker of one figure: estimates are hollow, unproved ones half filled."""
    colour, card = theme.of(point.look.colour), theme.of(CARD)
    plain: dict[str, Any] = {"marker": _MARKERS[point.look.shape], "markersize": point.size, "color": colour}
    plain |= {"markeredgewidth": 0.7, "markeredgecolor": card}
    if point.hollow or point.form == ESTIMATED:
        return plain | {"markerfacecolor": card, "markeredgecolor": colour, "markeredgewidth": 1.3}
    if point.form == UNCONFIRMED:
        return plain | {"fillstyle": "left", "markerfacecoloralt": card, "markeredgecolor": colour}
    if point.form == AT_LEAST:
        return plain | {"marker": _ARROW, "markersize": point.size * 1.4, "markeredgecolor": colour}
    if point.form == WRONG:
        wrong = theme.of(WRONG_COLOUR)
        return plain | {"marker": "x", "color": wrong, "markeredgecolor": wrong, "markeredgewidth": 1.8}
    return plain


def _draw_axis(axes: Axes, side: str, axis: Axis, theme: Theme, inches: float) -> None:
    """Limits, a scale, ticks on round numbers, and what the numbers are of."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

    place, limit = (axes.xaxis, axes.set_xlim) if side == "x" else (axes.yaxis, axes.set_ylim)
    if axis.log:
        (axes.set_xscale if side == "x" else axes.set_yscale)("log")
        ticks = log_ticks(axis.low, axis.high, max(3, int(inches / 0.7)))
    else:
        numbers = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(axis.low, axis.high)
        ticks = [tick for tick in numbers if axis.low <= tick <= axis.high]
    limit(axis.low, axis.high)
    place.set_major_locator(FixedLocator(ticks))
    place.set_major_formatter(FixedFormatter([_tick_text(tick, axis.unit) for tick in ticks]))
    place.set_minor_locator(NullLocator())
    scale = " (log scale)" if axis.log else ""
    place.set_label_text(f"{axis.title}{scale}" if axis.title else "", color=theme.of(FAINT), fontsize=SMALL)


def _tick_text(number: float, unit: str) -> str:
    """
    >>> [_tick_text(number, "number") for number in (0.001, 2.0, 1500.0)], _tick_text(250_000, "bytes")
    (['0.001', '2', '1,500'], '250 kB')
    """
    if unit == "bytes":
        text, scale = bytes_text(round(number)).split(" ")
        return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {scale}"
    if unit == "share":
        return f"{number:.0%}"
    if number >= 1e6:
        return f"{number / 1e6:g}M"
    return f"{number:,.0f}" if number >= 1000 else f"{number:.10f}".rstrip("0").rstrip(".")


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers between the two, evenly spread.

    >>> log_ticks(0.002, 30)
    [0.01, 0.1, 1.0, 10.0]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
        round_numbers = [round(step * 10.0**decade, 12) for decade in decades for step in steps]
        ticks = [tick for tick in round_numbers if low <= tick <= high]
        if len(ticks) >= 3:
            break
    return ticks[:: max(1, math.ceil(len(ticks) / most))]


def spread_labels(places: Sequence[float], step: float) -> list[float]:
    """Places near those wished, from 0 to 1, at least `step` apart, in the same order.

    >>> spread_labels([0.5, 0.5, 0.125], 0.25)
    [0.375, 0.625, 0.125]
    """
    order = sorted(range(len(places)), key=lambda place: places[place])
    step = min(step, 1 / max(1, len(order) - 1))
    spread = [places[place] for place in order]
    for _ in range(200):  # push neighbours apart until none is too near
        moved = False
        for lower in range(len(spread) - 1):
            lacking = step - (spread[lower + 1] - spread[lower])
            if lacking > 1e-9:
                spread[lower], spread[lower + 1] = spread[lower] - lacking / 2, spread[lower + 1] + lacking / 2
                moved = True
        spread = [
            min(max(place, rank * step), 1 - (len(spread) - 1 - rank) * step) for rank, place in enumerate(spread)
        ]
        if not moved:
            break
    named = dict(zip(order, spread, strict=True))
    return [round(named[place], 9) for place in range(len(places))]


def _name_series(axes: Axes, labels: Sequence[Label], theme: Theme, inches: tuple[float, float]) -> None:
    """Names at the right edge of a panel, each with a line to its end."""
    to_axes = axes.transData + axes.transAxes.inverted()
    places = [tuple(to_axes.transform((label.x, label.y))) for label in labels]
    levels = spread_labels([min(1.0, max(0.0, y)) for _, y in places], SMALL * 1.3 / 72 / inches[1])
    gap = 0.12 / inches[0]
    style: dict[str, Any] = {"transform": axes.transAxes, "linewidth": 0.6, "alpha": 0.7, "clip_on": False, "zorder": 1}
    for (x, y), level, label in zip(places, levels, labels, strict=True):
        assert label.line is not None
        axes.plot([x, 1 + gap * 0.25, 1 + gap], [y, level, level], color=theme.of(label.line), **style)
        text = terminal_text(label.text)
        axes.text(
            1 + gap * 1.3, level, text, transform=axes.transAxes, fontsize=SMALL, va="center", color=theme.of(INK)
        )


class _Box(NamedTuple):
    left: float
    low: float
    right: float
    high: float

    def overlap(self, other: _Box) -> float:
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.high, other.high) - max(self.low, other.low)
        return wide * high if wide > 0 and high > 0 else 0.0


def _name_points(axes: Axes, labels: Sequence[Label], theme: Theme, inches: tuple[float, float]) -> None:
    """Names beside points, each at the side where it hides least."""
    to_axes = axes.transData + axes.transAxes.inverted()
    places = [(x * inches[0], y * inches[1]) for x, y in (to_axes.transform((each.x, each.y)) for each in labels)]
    taken = [_Box(x - 0.06, y - 0.06, x + 0.06, y + 0.06) for x, y in places]
    panel = _Box(0.0, 0.0, *inches)
    for (x, y), label in zip(places, labels, strict=True):
        wide, high = text_width(terminal_text(label.text), SMALL) * 0.92, SMALL * 1.25 / 72
        corners = [
            (x + 0.09, y - high / 2),
            (x - 0.09 - wide, y - high / 2),
            (x - wide / 2, y + 0.08),
            (x - wide / 2, y - 0.08 - high),
            (x + 0.06, y + 0.06),
            (x + 0.06, y - 0.06 - high),
        ]
        boxes = [_Box(left, low, left + wide, low + high) for left, low in corners]
        best = min(boxes, key=lambda box: sum(map(box.overlap, taken)) + 2 * (wide * high - box.overlap(panel)))
        taken.append(best)
        middle = (best.left + best.right) / 2 / inches[0], (best.low + best.high) / 2 / inches[1]
        style: dict[str, Any] = {"fontsize": SMALL, "color": theme.of(INK), "ha": "center", "va": "center", "zorder": 5}
        axes.text(*middle, terminal_text(label.text), transform=axes.transAxes, **style)
