"""Lines over a size: seconds, or memory, against the corpus, the vocabulary or the threads. And the
performance profile of Dolan and Moré: in what share of the cells each trainer is within so many
times of the best.

A cell is a text, a vocabulary, a pattern and a number of threads on one machine. A cell that a
trainer never reached, or in which it failed or was stopped, counts as never.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.common.errors import UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import counted_text, share_text
from harness.results.charts import (
    ACCENT,
    FAINT,
    GREY,
    draw_time,
    log_scale,
    name_height,
    new_figure,
    scale_times,
    settled,
    short,
    styled,
    write_at,
)
from harness.results.fields import together
from harness.results.notes import finding, firsts_text, notes
from harness.results.ratios import leader, ratio_of, tasks_of
from harness.results.rows import Row, Time
from harness.results.writing import (
    TOTAL,
    Value,
    bytes_tick,
    caption_of,
    join_names,
    labels_of,
    mark_of,
    names_of,
    number_tick,
    panel_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CROSSING = ("#d55e00", "#009e73", "#aa4499", "#b8860b", "#117799")
"""The colours of lines that cross others."""
LEAST_HEIGHT = 1.9  # inches of axes


class Size(NamedTuple):
    """Something that grows: its axis, and the field that it is.

    Rows of one series may differ in the fields `without`; `text` is the text at a tick.
    """

    name: str
    axis: str
    field: str
    without: tuple[str, ...] = ()
    text: Callable[[float], str] = number_tick

    def of(self, row: Row) -> int:
        """The size of a row; 0 if it is unknown."""
        size: int = row.values[self.field] or 0
        return size


CORPUS = Size(
    "corpus size",
    "corpus",
    "data.bytes",
    # superwords extend merges of the same text, so each size has merges of its own to extend
    ("data.sha256", "extend"),
    bytes_tick,
)
VOCABULARY = Size(
    "vocabulary size",
    "vocabulary, tokens",
    "vocab_size",
    ("vocab_size",),
)
THREADS = Size("number of threads", "threads", "threads")


class DrawnLine(NamedTuple):
    """A line with the name at its end, the trainer that it is of, its points, and their rows."""

    name: str
    trainer: object
    xs: Sequence[float]
    times: Sequence[Time]
    rows: Sequence[Row] = ()

    @property
    def ys(self) -> list[float]:
        return [time.number or 0.0 for time in self.times]


@styled()
def over(size: Size, rows: Sequence[Row], value: Value = TOTAL) -> Figure:
    """A panel for each task, with a line for each variant that was measured at two sizes or more."""
    from matplotlib.ticker import LogLocator

    groups, panels, drawn = [], [], list[Row]()
    for group in tasks_of(rows, size.without):
        lines = _lines_of(group, size, value)
        if lines:
            groups.append(group)
            panels.append(lines)
            drawn += chain(*(line.rows for line in lines))
    if not drawn:
        sizes = sorted({size.of(row) for row in rows} - {0})
        there = ", ".join(map(size.text, sizes)) or "none"
        why = f"{size.name}: no variant was measured at two, only at {there}"
        raise Refusal(f"{why}; python -m harness -m {size.field}=A,B measures some", UNMEASURED)

    found, accent = finding(drawn)
    title = f"{value.title} by {size.name}"
    if found and value is TOTAL and size is not THREADS:
        title += f": {found}"
    names = {row.name for row in drawn}
    below = notes([row for row in chain(*groups) if row.name in names], drawn, value is TOTAL)
    heights = list(map(height_beside, panels))
    figure, grid = new_figure(title, caption_of(drawn)[-1:], below, heights)

    for group, lines, (axes,) in zip(groups, panels, grid, strict=True):
        axes.set_title(short(panel_title(group, groups, sizes=size is not CORPUS), 60))
        scale_times(axes, "y", list(chain(*(line.times for line in lines))), value)
        log_scale(axes, "x", list(chain(*(line.xs for line in lines))), size.axis, size.text)
        if size is THREADS:
            axes.xaxis.set_major_locator(LogLocator(base=2))
        draw_lines(axes, lines, accent)
    return settled(figure)


def _lines_of(group: Sequence[Row], size: Size, value: Value) -> list[DrawnLine]:
    """A line for each variant of a group that was measured at two sizes or more."""
    measured = [row for row in group if size.of(row) and value.of(row).number]
    labels = labels_of(measured, (size.field.partition(".")[0], "counting", "host", "tie_break"))
    lines = []
    for name, points in together(zip(labels, measured, strict=True)).items():
        points.sort(key=size.of)
        xs, times = list(map(size.of, points)), list(map(value.of, points))
        if xs[0] != xs[-1]:
            name += mark_of(points[-1])
            lines.append(DrawnLine(name, points[0].configured, xs, times, points))
    return lines


# Lines with their names


def height_beside(lines: Sequence[DrawnLine]) -> float:
    """The inches of axes beside which the names of their lines fit."""
    return max(LEAST_HEIGHT, sum(name_height(line.name) for line in lines))


def draw_lines(
    axes: Axes, lines: Sequence[DrawnLine], accent: object, *, steps: bool = False
) -> None:
    """Draw the lines on axes with limits, as steps or with a mark at each point, and name them. A
    line is accented or grey, or has a colour of its own if it crosses others that are grey.
    """
    free, colours = list(CROSSING), []
    for line in lines:
        colour = ACCENT if line.trainer == accent else GREY
        crossed = {other.trainer for other in lines if _cross(line, other)}
        if colour == GREY and free and crossed - {accent}:
            colour = free.pop(0)
        colours.append(colour)

        ys = [math.nan if time.is_limit else time.number or 0.0 for time in line.times]
        style = "steps-post" if steps else "default"
        layer = 3 if colour == ACCENT else 2
        axes.plot(line.xs, ys, color=colour, linewidth=1.4, drawstyle=style, zorder=layer)
    _name_ends(axes, lines, colours)

    for line, colour in zip([] if steps else lines, colours, strict=False):
        for x, time in zip(line.xs, line.times, strict=True):
            draw_time(axes, x, time, colour, side="y")


def _cross(one: DrawnLine, other: DrawnLine) -> bool:
    """Return whether each of two lines is above the other one somewhere.

    >>> rising = DrawnLine("a", "a", [1, 3], [Time(1.0), Time(3.0)])
    >>> level = DrawnLine("b", "b", [2, 4], [Time(2.5), Time(2.5)])
    >>> _cross(rising, level), _cross(rising, rising)
    (True, False)
    """
    low, high = max(one.xs[0], other.xs[0]), min(one.xs[-1], other.xs[-1])
    shared = [x for x in (*one.xs, *other.xs) if low <= x <= high]
    gaps = np.interp(shared, one.xs, one.ys) - np.interp(shared, other.xs, other.ys)
    return bool((gaps < 0).any() and (gaps > 0).any())


def _name_ends(axes: Axes, lines: Sequence[DrawnLine], colours: Sequence[str]) -> None:
    """Write each name at the end of its line, or as near to it as the names above and below leave
    room.
    """
    inches = height_beside(lines)
    to_share = axes.transData + axes.transAxes.inverted()
    named = sorted(zip(lines, colours, strict=True), key=lambda pair: pair[0].ys[-1], reverse=True)
    top, below = math.inf, sum(name_height(line.name) for line in lines)

    for line, colour in named:
        _, share = to_share.transform((line.xs[-1], line.ys[-1]))
        half = name_height(line.name) / 2
        below -= 2 * half
        middle = max(below + half, min(inches * share, top - half))
        top = middle - half
        weight = "bold" if colour == ACCENT else "normal"
        style = {"color": FAINT if colour == GREY else colour, "weight": weight}
        write_at(axes, 1.0, middle / inches, short(line.name), xycoords="axes fraction", **style)


# The profile

TIMES = (2.0, 5.0, 10.0, 100.0)
NEVER = "Never: wrong or unproved merges, failed, stopped by a limit, or not run."


class Curve(NamedTuple):
    """A trainer, how many times the best one's time it took in the cells that it solved, in order,
    and in how many cells all others are slower.
    """

    name: str
    ratios: Sequence[float]
    firsts: int


class Profile(NamedTuple):
    """The curves over so many cells, those of trainers that solve most first."""

    curves: Sequence[Curve]
    cells: int
    caption: Sequence[str]
    notes: Sequence[str]

    def share(self, curve: Curve, times: float) -> float:
        """The share of the cells that the trainer solves within so many times of the best."""
        return bisect_right(curve.ratios, times) / self.cells


def profile_of(rows: Sequence[Row]) -> Profile:
    """The profile over the cells in which two trainers or more ran. Raises Refusal if there are
    none.
    """
    others = dict.fromkeys(row.name for row in rows if row.other_merges)
    ran = []
    for row in rows:
        if not row.counting_only and row.status != "skipped" and row.name not in others:
            ran.append(row)
    names = dict(zip(ran, names_of(ran), strict=True))

    cells = together([((row.question, row.threads, row.record.run.host), row) for row in ran])
    compared = []
    for cell in cells.values():
        if len({names[row] for row in cell}) > 1:
            compared.append(cell)
    if not compared:
        why = "profile: no cell was measured with two trainers"
        raise Refusal(f"{why}; python -m harness variants=A,B measures some", UNMEASURED)

    number, alone = len(compared), len(cells) - len(compared)
    text = f"{counted_text(number, 'cell')} of text, vocabulary, pattern and threads"
    if alone:
        text += f"; {alone} more in which only one trainer ran"
    notes = [NEVER]
    if others:
        left_out = join_names(list(others))
        notes.append(f"Left out, for it makes other merges on purpose: {left_out}.")
    caption = [text, *caption_of(list(chain(*compared)))[-1:]]
    return Profile(_curves(compared, names), number, caption, notes)


def _curves(cells: Sequence[Sequence[Row]], names: Mapping[Row, str]) -> list[Curve]:
    """A curve for each trainer that ran in any of the cells; who solves most comes first."""
    ratios = dict[str, list[float]]()
    firsts = Counter[str]()
    for cell in cells:
        first = leader(cell)
        if first is not None:
            firsts[names[first]] += 1
        for row in cell:
            ratios.setdefault(names[row], [])

        # of a trainer its fastest row
        solved = sorted((row for row in cell if row.is_ranked), key=attrgetter("total"))
        fastest = dict[str, Row]()
        for row in solved:
            ratio = ratio_of(row, solved[0])
            if ratio and fastest.setdefault(names[row], row) is row:
                # the best one by its median may be the slower one within blocks
                ratios[names[row]].append(max(1.0, ratio.number))

    curves = [Curve(name, sorted(found), firsts[name]) for name, found in ratios.items()]
    return sorted(curves, key=lambda curve: (-len(curve.ratios), curve.ratios))


def profile_sheet(profile: Profile) -> Sheet:
    """A line for each trainer with its shares."""
    curves = profile.curves
    columns = [
        Column("trainer", [curve.name for curve in curves], figures=False),
        Column("fastest", [share_text(curve.firsts / profile.cells) for curve in curves]),
    ]
    for times in (*TIMES, math.inf):
        heading = "solved" if times == math.inf else f"within {times:g} ×"
        shares = []
        for curve in curves:
            shares.append(share_text(profile.share(curve, times)))
        columns.append(Column(heading, shares))
    return Sheet(profile.caption, columns, notes=profile.notes)


def profile(rows: Sequence[Row]) -> Figure:
    return profile_figure(profile_of(rows))


@styled()
def profile_figure(found: Profile) -> Figure:
    """A step line for each trainer over how many times the best one's time it may take."""
    best = max(found.curves, key=attrgetter("firsts"))
    title = firsts_text(best.name, best.firsts, found.cells, "cells")
    times = sorted({1.0, *chain(*(curve.ratios for curve in found.curves))})
    times.append(1.25 * times[-1])

    lines = []
    for curve in found.curves:
        shares = [Time(100 * found.share(curve, bound)) for bound in times]
        lines.append(DrawnLine(curve.name, curve.name, times, shares))
    figure, ((axes,),) = new_figure(title, found.caption, found.notes, [height_beside(lines)])

    log_scale(axes, "x", times[:-1], "times the best")
    axes.set(ylim=(0, 102), ylabel="% of the cells")
    draw_lines(axes, lines, best.name if best.firsts else None, steps=True)
    return settled(figure)
