"""Charts over a size: seconds against the corpus, the vocabulary or the threads, and time against memory."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, count_text
from harness.records.fields import FIELD
from harness.results.chart import INK, Axis, Chart, Label, Line, Mark, Panel, look_of
from harness.results.charts import ChartOptions, dots, ladder, log_range, paired, panels_of, phases, point_of, race
from harness.results.legend import Legend, failures
from harness.results.rows import FINISHED, SAMPLED, Row, Time
from harness.results.selection import base_name, grouped, panel_title

NEAR_THE_LINE = 0.2
"""Points farther than this share from the fitted line follow no power law, and get no line."""
FEWEST_POINTS = 3
SPOKEN = {"training": "Training seconds", "total": "Total seconds", "cpu": "Processor seconds"}


class Size(NamedTuple):
    """Something that grows: its axis, its symbol in an exponent, the field that it is, and how to measure more of it.

    Rows of one series may differ in the fields `without`; `column` is its title in a table.
    """

    name: str
    title: str
    symbol: str
    field: str
    column: str
    example: str
    without: tuple[str, ...] = ()

    def text(self, size: int) -> str:
        return bytes_text(size) if self is CORPUS else count_text(size)


CORPUS = Size(
    *("the size of the corpus", "corpus", "n", "data.bytes", "data", "-m data.bytes=1MB,2MB,4MB"),
    # Superwords extend merges of the same text, so each size has merges of its own to extend.
    ("data.sha256", "extend"),
)
VOCABULARY = Size(
    *("the size of the vocabulary", "vocabulary, tokens", "v", "vocab_size", "vocab size"),
    *("-m vocab_size=1000,2000,4000", ("vocab_size",)),
)
THREADS = Size("the number of threads", "threads", "t", "threads", "threads", "-m threads=1,2,4")


class Series(NamedTuple):
    """One variant over sizes: its rows in order of size with their times, and what those show."""

    name: str
    points: Sequence[tuple[int, Row, Time]]

    def shown(self, size: Size) -> tuple[str, list[tuple[float, float]]]:
        """The name with an exponent or the gain of threads, and the ends of the line that this is a matter of."""
        measured = [(at, time.number) for at, _, time in self.points if time.form in FINISHED and at and time.number]
        if len(measured) < 2:
            return self.name, []
        if size is not THREADS:
            return self._power(measured, size.symbol)
        (fewest, seconds), *others = measured
        threads, least = min(others, key=lambda point: point[1])
        most = min(measured[-1][0], (self.points[0][1].record.get("environment") or {}).get("cores_usable") or fewest)
        ends = [(float(fewest), seconds), (float(most), seconds * fewest / most)] if most > fewest else []
        return f"{self.name}  {seconds / least:.2f} × with {threads}", ends

    def _power(self, measured: Sequence[tuple[int, float]], symbol: str) -> tuple[str, list[tuple[float, float]]]:
        """The power law, if enough points follow one."""
        xs, ys = zip(*((math.log(at), math.log(seconds)) for at, seconds in measured), strict=True)
        if len(set(xs)) < FEWEST_POINTS:
            return self.name, []
        slope, height = statistics.linear_regression(xs, ys)
        if max(abs(y - height - slope * x) for x, y in zip(xs, ys, strict=True)) > math.log(1 + NEAR_THE_LINE):
            return self.name, []
        ends = [(float(at), math.exp(height) * at**slope) for at in (self.points[0][0], self.points[-1][0])]
        return f"{self.name}  {symbol}^{slope:.2f}", ends


def along(size: Size) -> Callable[[Sequence[Row], ChartOptions], Chart]:
    """The kind of chart that has this size as its axis."""
    return lambda rows, options: _against(rows, options, size)


def _against(rows: Sequence[Row], options: ChartOptions, size: Size) -> Chart:
    groups = [(group, _series_of(group, options, size)) for group in grouped(rows, (*size.without, "tie_break"))]
    groups = [(group, series) for group, series in groups if series]
    if not groups:
        sizes = sorted({row.values[size.field] for row in rows} - {None})
        raise Refusal(
            f"{size.name}: no variant was measured at two, only at {', '.join(map(size.text, sizes)) or 'none'}; "
            f"python -m harness {size.example} measures some",
            UNMEASURED,
        )
    drawn = [row for _, own in groups for series in own for _, row, _ in series.points]
    names = {row.name for row in drawn}
    tried = [row for group, _ in groups for row in group if row.name in names]
    note = f"{size.symbol}^x and its line: the power law, if at least {FEWEST_POINTS} points follow one within 20 %."
    if size is THREADS:
        note = "N × with T: as fast as with the fewest threads. Dotted: the time divided by the threads."
    return Chart(
        f"{SPOKEN[options.seconds]} by {size.name}",
        Legend(drawn).caption()[-1:],
        [note, *failures(Legend(tried), drawn)],
        [_panel(place, *group, [own for own, _ in groups], size) for place, group in enumerate(groups)],
        height=max(3.0, 0.17 * max(len(series) for _, series in groups)),
    )


def _series_of(group: Sequence[Row], options: ChartOptions, size: Size) -> list[Series]:
    """The variants of a group that were measured at two sizes or more, the slowest at the largest size first."""
    legend = Legend(group)
    left_out = {size.column, *(FIELD[name].title for name in ("counting", "host", "tie_break"))}
    columns = [column for title, column in legend.columns.items() if title not in left_out]
    lines: dict[str, list[tuple[int, Row, Time]]] = {}
    for place, (row, name) in enumerate(zip(group, legend.names, strict=True)):
        at, time = row.values[size.field], row.times[options.seconds]
        if at is not None and time.number is not None:
            settings = [f"{column.heading} {column.cells[place]}" for column in columns]
            lines.setdefault(", ".join([name, *settings]), []).append((at, row, time))
    ordered = {name: sorted(points, key=lambda point: point[0]) for name, points in lines.items()}
    several = [Series(name, points) for name, points in ordered.items() if points[0][0] < points[-1][0]]
    return sorted(several, key=lambda series: -(series.points[-1][2].number or 0.0))


def _panel(
    number: int, group: Sequence[Row], series: Sequence[Series], groups: Sequence[Sequence[Row]], size: Size
) -> Panel:
    points = [point for own in series for point in own.points]
    sizes = [at for at, *_ in points]
    marks = [mark for line, own in enumerate(series) for mark in _marks(f"{number}-{line}", own, size)]
    ends = [y for mark in marks if isinstance(mark, Line) for _, y in mark.points]
    unit = "bytes" if size is CORPUS else "number"
    x = Axis(size.title, min(sizes) / 1.15, max(sizes) * 1.15, log=True, unit=unit)
    y = Axis("seconds", *log_range([*ends, *(each for *_, time in points for each in time[1:4])]), log=True)
    return Panel(x, y, marks, panel_title(group, groups, sizes=size is not CORPUS))


def _marks(name: str, series: Series, size: Size) -> Iterator[Mark]:
    text, ends = series.shown(size)
    colour = look_of(series.points[0][1].name).colour
    if ends and size is THREADS:
        yield Line(ends, colour, ":", name=f"ideal-{name}")
    elif ends:
        yield Line(ends, colour, "--", name=f"fit-{name}", hover=text)
    for place, (at, row, time) in enumerate(series.points):
        hover = f"{series.name}, {base_name(row)}, {size.title} {size.text(at)}: {time.text}"
        yield point_of(time, f"value-{name}-{place}", hover, at, time.number or 0.0, look_of(row.name), upright=True)
    last, row, time = series.points[-1]
    yield Label(last, time.number or 0.0, text, look_of(row.name).colour)


def memory(rows: Sequence[Row], options: ChartOptions) -> Chart:
    """Seconds against peak memory, with the rows that no other row beats in both."""
    usable = [row for row in rows if row.times[options.seconds].form in FINISHED and row.peak_rss_bytes]
    groups = [group for group in grouped(usable) if len(group) > 1]
    if not groups:
        raise Refusal(
            "memory: it takes two rows with a time and a peak of memory on the same corpus, to the same vocabulary",
            UNMEASURED,
        )
    drawn = [row for group in groups for row in group]
    sampled = [f"{SAMPLED} Several processes together, sampled."] if any(row.memory_is_sampled for row in drawn) else []
    return Chart(
        f"{SPOKEN[options.seconds]} and peak memory",
        Legend(drawn).caption(len(groups)),
        ["Line: the best trade-offs of time and memory.", *sampled, *failures(Legend(rows), drawn)],
        panels_of(groups, functools.partial(_memory_panel, quantity=options.seconds)),
        height=3.6,
    )


def _memory_panel(group: Sequence[Row], number: int, title: str, quantity: str) -> Panel:
    times = [row.times[quantity] for row in group]
    low, high = log_range([each for time in times for each in time[1:4]], 1.5, 1.5)
    least, most = log_range([row.peak_rss_bytes for row in group], 1.15, 1.15, 1.6)
    best, marks = _front(group, quantity), list[Mark]()
    for place, (row, time, label) in enumerate(zip(group, times, Legend(group).labels, strict=True)):
        seconds, size = time.number or 0.0, row.peak_rss_bytes or 0
        hover = f"{label}: {time.text}, {row.texts['memory']}"
        marks.append(point_of(time, f"value-{number}-{place}", hover, seconds, size, look_of(row.name)))
        if len(group) <= 14 or (seconds, size) in best:
            marks.append(Label(seconds, size, f"{SAMPLED if row.memory_is_sampled else ''}{label}"))
    if best:
        stairs = [(best[0][0], most), *best, (high, best[-1][1])]
        marks.insert(0, Line(stairs, INK, steps=True, name=f"front-{number}"))
    x, y = Axis("seconds", low, high, log=True), Axis("peak memory", least, most, log=True, unit="bytes")
    return Panel(x, y, marks, title)


def _front(group: Sequence[Row], quantity: str) -> list[tuple[float, float]]:
    """Time and memory of the proved rows that no other beats in both, from the fastest to the smallest."""
    fair = [row for row in group if row.confirmed and not row.by_design]
    best: list[tuple[float, float]] = []
    for seconds, size in sorted((row.times[quantity].number or 0.0, float(row.peak_rss_bytes or 0)) for row in fair):
        if not best or size < best[-1][1]:
            best.append((seconds, size))
    return best


KINDS: dict[str, tuple[str, Callable[[Sequence[Row], ChartOptions], Chart]]] = {
    "phases": ("seconds stacked by phase, a bar for each row", phases),
    "ladder": ("seconds of every stage in their order, with each stage's gain", ladder),
    "race": ("total seconds, sorted; narrow, for a front page", race),
    "dots": ("total seconds of each trainer as dots, sorted, one thread and more", dots),
    "size": ("seconds against the size of the corpus, with exponents", along(CORPUS)),
    "vocabulary": ("the same against the size of the vocabulary", along(VOCABULARY)),
    "threads": ("seconds against the number of threads", along(THREADS)),
    "memory": ("time against memory, with the best trade-offs", memory),
    "paired": ("ratios block by block with their intervals (--relative-to)", paired),
}
"""What each kind of chart shows, and its function, which raises Refusal if the rows do not have what it takes."""
