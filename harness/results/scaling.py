"""Charts over a size: seconds against the corpus, the vocabulary or the threads, and time against
memory.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, count_text
from harness.results import charts
from harness.results.charts import (
    INK,
    Axis,
    Chart,
    Label,
    Line,
    Mark,
    Panel,
    Point,
    log_range,
    look_of,
)
from harness.results.fields import FIELD, together
from harness.results.legend import Legend, failures
from harness.results.rows import MEASURED, SAMPLED, Row
from harness.results.selection import panel_title, tasks_of

NEAR_THE_LINE = 0.2
"""Points farther than this share from the fitted line follow no power law, and get no line."""
FEWEST_POINTS = 3
MOST_NAMED = 14  # of more points in a panel only the best trade-offs are named


class Size(NamedTuple):
    """Something that grows: its axis, its symbol in an exponent, the field that it is, and how to
    measure more of it.

    Rows of one series may differ in the fields `without`.
    """

    name: str
    title: str
    symbol: str
    field: str
    example: str
    without: tuple[str, ...] = ()

    def text(self, size: int) -> str:
        return bytes_text(size) if self is CORPUS else count_text(size)


CORPUS = Size(
    *("corpus size", "corpus", "n", "data.bytes", "-m data.bytes=1MB,2MB,4MB"),
    # Superwords extend merges of the same text, so each size has merges of its own to extend.
    ("data.sha256", "extend"),
)
VOCABULARY = Size(
    *(
        "vocabulary size",
        "vocabulary, tokens",
        "v",
        "vocab_size",
        "-m vocab_size=1000,2000,4000",
        ("vocab_size",),
    ),
)
THREADS = Size("number of threads", "threads", "t", "threads", "-m threads=1,2,4")


class Series(NamedTuple):
    """One variant over sizes: its rows in order of size."""

    name: str
    points: Sequence[tuple[int, Row]]

    def shown(self, size: Size) -> tuple[str, list[tuple[float, float]]]:
        """The name with the gain of threads, or with an exponent if points follow a power law, and
        the line's ends.
        """
        measured = [(at, row.total) for at, row in self.points if at and row.total]
        if size is THREADS and len(measured) > 1:
            threads, least = min(measured[1:], key=lambda point: point[1])
            return f"{self.name} {measured[0][1] / least:.2f} × with {threads}", []
        if len({at for at, _ in measured}) < FEWEST_POINTS:
            return self.name, []
        xs, ys = zip(*((math.log(at), math.log(seconds)) for at, seconds in measured), strict=True)
        slope, height = statistics.linear_regression(xs, ys)
        if max(abs(y - height - slope * x) for x, y in zip(xs, ys, strict=True)) > math.log(
            1 + NEAR_THE_LINE
        ):
            return self.name, []
        ends = [
            (float(at), math.exp(height) * at**slope)
            for at in (self.points[0][0], self.points[-1][0])
        ]
        return f"{self.name} {size.symbol}^{slope:.2f}", ends


def _against(rows: Sequence[Row], size: Size) -> Chart:
    groups = [
        (group, _series_of(group, size)) for group in tasks_of(rows, (*size.without, "tie_break"))
    ]
    groups = [(group, series) for group, series in groups if series]
    if not groups:
        sizes = sorted({row.values[size.field] for row in rows} - {None})
        why = (
            f"no variant was measured at two, only at {', '.join(map(size.text, sizes)) or 'none'}"
        )
        raise Refusal(
            f"{size.name}: {why}; python -m harness {size.example} measures some", UNMEASURED
        )
    drawn = [row for _, own in groups for series in own for _, row in series.points]
    names = {row.name for row in drawn}
    tried = [row for group, _ in groups for row in group if row.name in names]
    note = f"{size.symbol}^x and its line: the power law, if at least {FEWEST_POINTS} points follow one within 20 %."
    if size is THREADS:
        note = "N × with T: as fast with T threads as with the fewest."
    return Chart(
        f"Seconds by {size.name}",
        Legend(drawn).caption()[-1:],
        [note, *failures(Legend(tried), drawn)],
        [_panel(group, series, [own for own, _ in groups], size) for group, series in groups],
        height=max(3.0, 0.17 * max(len(series) for _, series in groups)),
    )


def _series_of(group: Sequence[Row], size: Size) -> list[Series]:
    """The variants of a group that were measured at two sizes or more."""
    legend = Legend(group)
    left_out = [
        FIELD[name].title
        for name in (size.field.partition(".")[0], "counting", "host", "tie_break")
    ]
    columns = [column for title, column in legend.columns.items() if title not in left_out]
    named = []
    for place, (row, name) in enumerate(zip(group, legend.names, strict=True)):
        if row.values[size.field] is not None and row.time.number is not None:
            settings = [f"{column.heading} {column.cells[place]}" for column in columns]
            named.append((", ".join([name, *settings]), (row.values[size.field], row)))
    ordered = [
        Series(name, sorted(points, key=lambda point: point[0]))
        for name, points in together(named).items()
    ]
    return [series for series in ordered if series.points[0][0] < series.points[-1][0]]


def _panel(
    group: Sequence[Row], series: Sequence[Series], groups: Sequence[Sequence[Row]], size: Size
) -> Panel:
    points = [point for own in series for point in own.points]
    sizes = [at for at, _ in points]
    marks = [mark for own in series for mark in _marks(own, size)]
    ends = [y for mark in marks if isinstance(mark, Line) for _, y in mark.points]
    x = Axis(size.title, min(sizes) / 1.15, max(sizes) * 1.15, log=True, bytes=size is CORPUS)
    y = Axis(
        "seconds",
        *log_range([*ends, *(each for _, row in points for each in row.time[1:4])]),
        log=True,
    )
    return Panel(x, y, marks, panel_title(group, groups, sizes=size is not CORPUS))


def _marks(series: Series, size: Size) -> Iterator[Mark]:
    text, ends = series.shown(size)
    last, row = series.points[-1]
    look = look_of(row.name)
    if ends:
        yield Line(ends, look.colour, "--")
    for at, each in series.points:
        name = f"{series.name}, {size.title} {size.text(at)}"
        yield Point(at, each.time.number or 0.0, look, name, each.time, upright=True)
    yield Label(last, row.time.number or 0.0, text + row.doubt, True, look.colour)


def memory(rows: Sequence[Row]) -> Chart:
    """Seconds against peak memory, with the rows that no other row beats in both."""
    usable = [row for row in rows if row.time.form == MEASURED and row.peak_rss_bytes]
    groups = [group for group in tasks_of(usable) if len(group) > 1]
    if not groups:
        needed = (
            "two rows with a time and a peak of memory on the same corpus, to the same vocabulary"
        )
        raise Refusal(f"memory: it takes {needed}", UNMEASURED)
    drawn = [row for group in groups for row in group]
    sampled = (
        [f"{SAMPLED} Several processes together, sampled."]
        if any(row.memory_is_sampled for row in drawn)
        else []
    )
    return Chart(
        "Seconds and peak memory",
        Legend(drawn).caption(len(groups)),
        ["Line: the best trade-offs of time and memory.", *sampled, *failures(Legend(rows), drawn)],
        charts.panels_of(groups, _memory_panel),
        height=3.6,
    )


def _memory_panel(group: Sequence[Row], title: str) -> Panel:
    low, high = log_range([each for row in group for each in row.time[1:4]], 1.5, 1.5)
    least, most = log_range([row.peak_rss_bytes for row in group], 1.3, 1.3)
    best, marks = _front(group), list[Mark]()
    if best:
        marks.append(Line([(best[0][0], most), *best, (high, best[-1][1])], INK, steps=True))
    for row, label in Legend(group).labelled():
        seconds, size = row.time.number or 0.0, row.peak_rss_bytes or 0
        marks.append(Point(seconds, size, look_of(row.name), label, row.time))
        if len(group) <= MOST_NAMED or (seconds, size) in best:
            marks.append(
                Label(
                    seconds, size, f"{SAMPLED if row.memory_is_sampled else ''}{label}{row.doubt}"
                )
            )
    x, y = (
        Axis("seconds", low, high, log=True),
        Axis("peak memory", least, most, log=True, bytes=True),
    )
    return Panel(x, y, marks, title)


def _front(group: Sequence[Row]) -> list[tuple[float, float]]:
    """Time and memory of the proved rows that no other beats in both, from the fastest to the
    smallest.
    """
    fair = [row for row in group if row.confirmed and not row.by_design]
    best: list[tuple[float, float]] = []
    for seconds, size in sorted(
        (row.time.number or 0.0, float(row.peak_rss_bytes or 0)) for row in fair
    ):
        if not best or size < best[-1][1]:
            best.append((seconds, size))
    return best


KINDS: dict[str, tuple[str, Callable[[Sequence[Row]], Chart]]] = {
    "phases": ("seconds stacked by phase, a bar for each row", charts.phases),
    "ladder": ("seconds of every stage in their order, with each stage's gain", charts.ladder),
    "race": ("total seconds, sorted; narrow, for a front page", charts.race),
    "dots": ("total seconds of each trainer as dots, sorted, one thread and more", charts.dots),
    "size": (
        "seconds against the size of the corpus, with exponents",
        partial(_against, size=CORPUS),
    ),
    "vocabulary": (
        "the same against the size of the vocabulary",
        partial(_against, size=VOCABULARY),
    ),
    "threads": ("seconds against the number of threads", partial(_against, size=THREADS)),
    "memory": ("time against memory, with the best trade-offs", memory),
}
"""What each kind of chart shows, and its function, which raises Refusal if the rows do not have
what it takes.
"""
