"""Lines over a size: seconds, or memory, against the corpus, the vocabulary or the threads."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, count_text
from harness.results.canvas import (
    INK,
    LINE,
    SMALL,
    Words,
    chart,
    draw_time,
    look_of,
    new_axes,
    new_figure,
    scale,
    scale_times,
    short,
)
from harness.results.fields import FIELD
from harness.results.legend import caption_of, differing_columns, names_of
from harness.results.notes import notes
from harness.results.rows import Row
from harness.results.selection import panel_title, tasks_of
from harness.results.writing import TOTAL, Value, figure_text, mark_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEAR_THE_LAW = 0.2
"""Points farther than this share from the fitted line follow no power law, and get no line."""
MIN_POINTS = 3
PANEL_HEIGHT = 3.0


class Size(NamedTuple):
    """Something that grows: its axis, its symbol in an exponent, the field that it is, and how to
    measure more of it.

    Rows of one series may differ in the fields `without`.
    """

    name: str
    axis: str
    symbol: str
    field: str
    example: str
    without: tuple[str, ...] = ()

    def text(self, size: int) -> str:
        return bytes_text(size) if self is CORPUS else count_text(size)


CORPUS = Size(
    "corpus size",
    "corpus",
    "n",
    "data.bytes",
    "-m data.bytes=1MB,2MB,4MB",
    # superwords extend merges of the same text, so each size has merges of its own to extend
    ("data.sha256", "extend"),
)
VOCABULARY = Size(
    "vocabulary size",
    "vocabulary, tokens",
    "v",
    "vocab_size",
    "-m vocab_size=1000,2000,4000",
    ("vocab_size",),
)
THREADS = Size("number of threads", "threads", "t", "threads", "-m threads=1,2,4")


class Law(NamedTuple):
    """A power law: seconds are `factor` times the size to the `exponent`."""

    exponent: float
    factor: float

    def at(self, size: int) -> float:
        return self.factor * float(size**self.exponent)


class Series(NamedTuple):
    """One variant over sizes, in order: each size with its row, and the law that they follow."""

    name: str
    points: Sequence[tuple[int, Row]]
    law: Law | None


@chart
def over(size: Size, rows: Sequence[Row], value: Value = TOTAL) -> Figure:
    """A panel for each task, with a line for each variant that was measured at two sizes or more."""
    panels: list[tuple[list[Row], list[Series]]] = []
    drawn, tried = list[Row](), list[Row]()
    for group in tasks_of(rows, (*size.without, "tie_break")):
        series = _series_of(group, size, value)
        if series:
            panels.append((group, series))
            points = [row for line in series for _, row in line.points]
            drawn += points
            names = {row.name for row in points}
            tried += [row for row in group if row.name in names]
    if not panels:
        raise _too_few_sizes(rows, size)

    words = Words(
        f"{value.title} by {size.name}",
        caption_of(drawn)[-1:],
        [*_meanings_of_lines(size, value, panels), *notes(tried, drawn, value is TOTAL)],
    )
    keys = [[_entry(line, size, value) for line in series] for _, series in panels]
    figure, specs = new_figure(words, list(map(_panel_height, keys)))
    groups = [group for group, _ in panels]
    for spec, (group, series), key in zip(specs, panels, keys, strict=True):
        title = panel_title(group, groups, sizes=size is not CORPUS)
        axes = new_axes(figure, spec, title)
        _draw_panel(axes, series, size, value)
        axes.legend(
            handles=key, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=SMALL,
            labelcolor=INK, handlelength=1.0,
        )  # fmt: skip
    return figure


def _panel_height(key: Sequence[Artist]) -> float:
    """The inches of a panel beside which its key fits."""
    lines = sum(str(entry.get_label()).count("\n") + 1 for entry in key)
    return max(PANEL_HEIGHT, 0.8 + 0.15 * lines + 0.06 * len(key))


def law_of(points: Sequence[tuple[int, Row]], value: Value) -> Law | None:
    """The power law that the points follow within a fifth; None for fewer than three sizes."""
    xs, ys = list[float](), list[float]()
    for at, row in points:
        number = value.of(row).number
        if at and number and row.total:
            xs.append(math.log(at))
            ys.append(math.log(number))
    if len(set(xs)) < MIN_POINTS:
        return None

    exponent, height = statistics.linear_regression(xs, ys)
    for x, y in zip(xs, ys, strict=True):
        if abs(y - height - exponent * x) > math.log(1 + NEAR_THE_LAW):
            return None
    return Law(exponent, math.exp(height))


def _series_of(group: Sequence[Row], size: Size, value: Value) -> list[Series]:
    """The variants of a group that were measured at two sizes or more, in the order of their
    ends.
    """
    left_out = (size.field.partition(".")[0], "counting", "host", "tie_break")
    columns = differing_columns(group)
    for name in left_out:
        columns.pop(FIELD[name].title, None)

    named: dict[str, list[tuple[int, Row]]] = {}
    for index, (row, name) in enumerate(zip(group, names_of(group), strict=True)):
        if row.values[size.field] is not None and value.of(row).number is not None:
            for column in columns.values():
                name += f", {column.heading} {column.cells[index]}"
            named.setdefault(name, []).append((row.values[size.field], row))

    series = []
    for name, points in named.items():
        points.sort(key=lambda point: point[0])
        if points[0][0] < points[-1][0]:
            law = None if size is THREADS else law_of(points, value)
            series.append(Series(name, points, law))
    series.sort(key=lambda line: value.of(line.points[-1][1]).number or 0.0, reverse=True)
    return series


def _too_few_sizes(rows: Sequence[Row], size: Size) -> Refusal:
    sizes = sorted({row.values[size.field] for row in rows} - {None})
    there = ", ".join(size.text(value) for value in sizes) or "none"
    why = f"{size.name}: no variant was measured at two, only at {there}"
    return Refusal(f"{why}; python -m harness {size.example} measures some", UNMEASURED)


def _meanings_of_lines(
    size: Size, value: Value, panels: Sequence[tuple[list[Row], list[Series]]]
) -> list[str]:
    """Explain the marks that are drawn."""
    if size is THREADS:
        return ["N × with T: as fast with T threads as with the fewest."] if value is TOTAL else []
    for _, series in panels:
        if any(line.law for line in series):
            points = f"if at least {MIN_POINTS} points follow one within {NEAR_THE_LAW:.0%}"
            return [f"{size.symbol}^x and its dashed line: the power law, {points}."]
    return []


def _draw_panel(axes: Axes, series: Sequence[Series], size: Size, value: Value) -> None:
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.spines["left"].set_visible(True)
    points = [point for line in series for point in line.points]
    scale_times(axes, "y", [value.of(row) for _, row in points], value)
    _size_scale(axes, sorted({at for at, _ in points}), size)

    for line in series:
        look = look_of(line.points[0][1].name)
        sizes = [at for at, _ in line.points]
        numbers = [value.of(row).number or math.nan for _, row in line.points]
        axes.plot(sizes, numbers, color=look.colour, linewidth=1.0, alpha=0.5)

        if line.law is not None:
            ends = (sizes[0], sizes[-1])
            fitted = (line.law.at(ends[0]), line.law.at(ends[1]))
            axes.plot(ends, fitted, color=look.colour, linewidth=1.1, linestyle=(0, (5, 2)))
        for at, row in line.points:
            text = f"{line.name}, {size.axis} {size.text(at)}: {figure_text(row, value.name)}"
            draw_time(axes, at, value.of(row), look, text, upright=True)


def _entry(line: Series, size: Size, value: Value) -> Artist:
    """The line's name with its exponent, or with what threads gain."""
    from matplotlib.lines import Line2D

    last = line.points[-1][1]
    text = line.name + mark_of(last)
    if line.law is not None:
        text += f" {size.symbol}^{line.law.exponent:.2f}"
    measured = [(at, row.total) for at, row in line.points if row.total]
    if size is THREADS and value is TOTAL and len(measured) > 1:
        threads, seconds = min(measured[1:], key=lambda point: point[1])
        text += f" {measured[0][1] / seconds:.2f} × with {threads}"
    look = look_of(last.name)
    return Line2D(
        [], [], color=look.colour, marker=look.marker, linestyle="none", label=short(text)
    )


def _size_scale(axes: Axes, sizes: Sequence[int], size: Size) -> None:
    """A log axis with a tick at each size that was measured, or at those that have room."""
    scale(axes, "x", sizes, size.axis, is_log=True)
    room = math.log(sizes[-1] / sizes[0]) / 5
    ticks = [sizes[-1]]
    for at in reversed(sizes[:-1]):
        if math.log(ticks[-1] / at) >= room:
            ticks.append(at)
    axes.set_xticks(ticks, [size.text(at) for at in ticks])
