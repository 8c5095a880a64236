"""Lines over a size: seconds, or memory, against the corpus, the vocabulary or the threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.common.errors import UNMEASURED, Refusal
from harness.results.canvas import (
    ACCENT,
    FAINT,
    GREY,
    chart,
    draw_time,
    log_scale,
    name_height,
    new_figure,
    scale_times,
    short,
    write_at,
)
from harness.results.claim import finding
from harness.results.fields import together
from harness.results.legend import caption_of, labels_of
from harness.results.notes import notes
from harness.results.rows import MEASURED, Row
from harness.results.selection import panel_title, tasks_of
from harness.results.writing import (
    TOTAL,
    Value,
    bytes_tick,
    mark_of,
    number_tick,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panel = tuple[list[Row], dict[str, list[Row]]]
"""The rows of a task, and those of each line."""
CROSSING = ("#d55e00", "#009e73", "#aa4499", "#b8860b", "#117799")
"""The colours of lines that cross others."""
LEAST_HEIGHT = 1.9  # inches of axes


class Size(NamedTuple):
    """Something that grows: its axis, the field that it is, and how to measure more of it.

    Rows of one series may differ in the fields `without`.
    """

    name: str
    axis: str
    field: str
    example: str
    without: tuple[str, ...] = ()

    def of(self, row: Row) -> int | None:
        size: int | None = row.values[self.field]
        return size

    def text(self, size: float) -> str:
        return bytes_tick(size) if self is CORPUS else number_tick(size)


CORPUS = Size(
    "corpus size",
    "corpus",
    "data.bytes",
    "-m data.bytes=1MB,2MB,4MB",
    # superwords extend merges of the same text, so each size has merges of its own to extend
    ("data.sha256", "extend"),
)
VOCABULARY = Size(
    "vocabulary size",
    "vocabulary, tokens",
    "vocab_size",
    "-m vocab_size=1000,2000,4000",
    ("vocab_size",),
)
THREADS = Size("number of threads", "threads", "threads", "-m threads=1,2,4")


class Line(NamedTuple):
    """The points of a line, what stands at its end, whether the chart is about it, and which of the
    points are no limits.
    """

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    is_accented: bool = False
    measured: Sequence[bool] | bool = True


@chart
def over(size: Size, rows: Sequence[Row], value: Value = TOTAL) -> Figure:
    """A panel for each task, with a line for each variant that was measured at two sizes or more."""
    from matplotlib.ticker import LogLocator

    panels, drawn = list[Panel](), list[Row]()
    for group in tasks_of(rows, (*size.without, "tie_break")):
        series = _series_of(group, size, value)
        if series:
            panels.append((group, series))
            drawn += chain(*series.values())
    if not panels:
        raise _too_few_sizes(rows, size)

    names = {row.name for row in drawn}
    groups = [group for group, _ in panels]
    tried = [row for row in chain(*groups) if row.name in names]
    found, accent = finding(drawn)
    title = f"{value.title} by {size.name}"
    if found and value is TOTAL and size is not THREADS:
        title += f": {found}"
    lines = []
    for _, series in panels:
        lines.append([_line(*named, size, value, accent) for named in series.items()])
    below = notes(tried, drawn, value is TOTAL)
    heights = list(map(height_beside, lines))
    figure, grid = new_figure(title, caption_of(drawn)[-1:], below, heights)

    for (group, series), of_panel, (axes,) in zip(panels, lines, grid, strict=True):
        axes.set_title(short(panel_title(group, groups, sizes=size is not CORPUS), 60))
        times = [value.of(row) for row in chain(*series.values())]
        scale_times(axes, "y", times, value)
        log_scale(axes, "x", list(chain(*(line.xs for line in of_panel))), size.axis, size.text)
        if size is THREADS:
            axes.xaxis.set_major_locator(LogLocator(base=2))
        colours = draw_lines(axes, of_panel)
        for points, colour in zip(series.values(), colours, strict=True):
            for row in points:
                draw_time(axes, size.of(row) or 0, value.of(row), colour, side="y")
    return figure


def _series_of(group: Sequence[Row], size: Size, value: Value) -> dict[str, list[Row]]:
    """The rows of each variant of a group that was measured at two sizes or more, by its name."""
    measured = [row for row in group if size.of(row) and value.of(row).number]
    labels = labels_of(measured, (size.field.partition(".")[0], "counting", "host", "tie_break"))
    series = {}
    for name, points in together(zip(labels, measured, strict=True)).items():
        points.sort(key=lambda row: size.of(row) or 0)
        if size.of(points[0]) != size.of(points[-1]):
            series[name] = points
    return series


def _too_few_sizes(rows: Sequence[Row], size: Size) -> Refusal:
    sizes = sorted({at for row in rows if (at := size.of(row))})
    there = ", ".join(map(size.text, sizes)) or "none"
    why = f"{size.name}: no variant was measured at two, only at {there}"
    return Refusal(f"{why}; python -m harness {size.example} measures some", UNMEASURED)


def _line(name: str, points: Sequence[Row], size: Size, value: Value, accent: object) -> Line:
    """The line of a series."""
    xs = [size.of(row) or 0 for row in points]
    ys = [value.of(row).number or 0.0 for row in points]
    measured = [value.of(row).form == MEASURED for row in points]
    return Line(name + mark_of(points[-1]), xs, ys, points[0].configured == accent, measured)


# Lines with their names


def height_beside(lines: Sequence[Line]) -> float:
    """The inches of axes beside which the names of their lines fit."""
    return max(LEAST_HEIGHT, sum(name_height(line.name) for line in lines))


def draw_lines(axes: Axes, lines: Sequence[Line], drawstyle: str = "default") -> list[str]:
    """Draw the lines on axes with limits, name them, and return their colours: accented or grey, or
    one's own if it crosses others that are grey.
    """
    others = [line for line in lines if not line.is_accented]
    free = list(CROSSING)
    colours = []
    for line in lines:
        colour = ACCENT if line.is_accented else GREY
        if colour == GREY and free and any(_cross(line, other) for other in others):
            colour = free.pop(0)
        colours.append(colour)
        layer = 3 if line.is_accented else 2
        ys = np.where(line.measured, line.ys, math.nan)
        axes.plot(line.xs, ys, color=colour, linewidth=1.4, drawstyle=drawstyle, zorder=layer)
    _name_ends(axes, lines, colours)
    return colours


def _cross(one: Line, other: Line) -> bool:
    """Return whether each of two lines is above the other one somewhere."""
    low, high = max(one.xs[0], other.xs[0]), min(one.xs[-1], other.xs[-1])
    shared = [x for x in (*one.xs, *other.xs) if low <= x <= high]
    gaps = np.interp(shared, one.xs, one.ys) - np.interp(shared, other.xs, other.ys)
    return bool((gaps < 0).any() and (gaps > 0).any())


def _name_ends(axes: Axes, lines: Sequence[Line], colours: Sequence[str]) -> None:
    """Write each name at the end of its line, or as near to it as the names above and below leave
    room.
    """
    inches = height_beside(lines)
    to_share = axes.transData + axes.transAxes.inverted()
    ends = []
    for line, colour in zip(lines, colours, strict=True):
        _, share = to_share.transform((line.xs[-1], line.ys[-1]))
        ends.append((inches * share, line, colour))

    top, below = math.inf, sum(name_height(line.name) for line in lines)
    for end, line, colour in sorted(ends, key=lambda end: end[0], reverse=True):
        half = name_height(line.name) / 2
        below -= 2 * half
        middle = max(below + half, min(end, top - half))
        top = middle - half
        weight = "bold" if line.is_accented else "normal"
        style = {"color": FAINT if colour == GREY else colour, "weight": weight}
        write_at(axes, 1.0, middle / inches, short(line.name), xycoords="axes fraction", **style)
