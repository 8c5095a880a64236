"""Charts over a size: seconds against the corpus, the vocabulary or the threads, and time against memory."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import bytes_text, count_text
from harness.results.chart import INK, Axis, Chart, Label, Line, Mark, Panel, look_of
from harness.results.charts import ChartOptions, dots, ladder, log_range, paired, panels_of, phases, point_of, race
from harness.results.legend import Legend, failures
from harness.results.rows import FINISHED, SAMPLED, Row, Time
from harness.results.selection import base_name, grouped, panel_title

NEAR_THE_LINE = 0.2
"""Points farther than this share from the fitted line follow no power law, and get no line."""
FEWEST_POINTS = 3
SPOKEN = {"training": "Training seconds", "total": "Total seconds", "cpu": "Processor seconds"}


@dataclass(frozen=True)
class Size:
    """Something that grows: its axis, its symbol in an exponent, and the fields in which rows of a series differ."""

    name: str
    title: str
    symbol: str
    of: Callable[[Row], int | None]
    field: str
    example: str
    unit: str = "number"
    without: tuple[str, ...] = ()

    def text(self, size: int) -> str:
        return bytes_text(size) if self.unit == "bytes" else count_text(size)


CORPUS = Size(
    *("the size of the corpus", "corpus", "n"),
    lambda row: row.corpus.get("bytes"),
    *("data", "-m data.bytes=1MB,2MB,4MB", "bytes"),
    # Superwords extend merges of the same text, so each size has merges of its own to extend.
    ("data.sha256", "extend"),
)
VOCABULARY = Size(
    *("the size of the vocabulary", "vocabulary, tokens", "v"),
    lambda row: row.record.get("vocab_size"),
    *("vocab size", "-m vocab_size=1000,2000,4000"),
    without=("vocab_size",),
)
THREADS = Size(
    *("the number of threads", "threads", "t"),
    lambda row: row.record.get("threads"),
    *("threads", "-m threads=1,2,4"),
)


@dataclass(frozen=True)
class Series:
    """One variant over sizes: the rows in order of size, with their times."""

    name: str
    points: tuple[tuple[int, Row, Time], ...]

    @property
    def measured(self) -> list[tuple[int, float]]:
        return [(size, time.number) for size, _, time in self.points if time.form in FINISHED and size and time.number]

    def power(self) -> tuple[float, float] | None:
        """The exponent and the seconds at size 1 of the power law; None if the points follow none."""
        if len({size for size, _ in self.measured}) < FEWEST_POINTS:
            return None
        xs, ys = zip(*((math.log(size), math.log(seconds)) for size, seconds in self.measured), strict=True)
        slope, height = statistics.linear_regression(xs, ys)
        off = max(abs(y - height - slope * x) for x, y in zip(xs, ys, strict=True))
        return (slope, math.exp(height)) if off <= math.log(1 + NEAR_THE_LINE) else None

    def text(self, size: Size) -> str:
        """The name with what the points show: an exponent, or the gain of threads."""
        if size is not THREADS:
            power = self.power()
            return f"{self.name}  {size.symbol}^{power[0]:.2f}" if power is not None else self.name
        if len(self.measured) < 2:
            return self.name
        (_, first), *others = self.measured
        threads, least = min(others, key=lambda point: point[1])
        return f"{self.name}  {first / least:.2f} × with {threads}"

    def lines(self, name: str, size: Size) -> Iterator[Line]:
        """The power law; over threads the time divided by the threads, up to the cores of the machine."""
        first, power = self.points[0][1], self.power()
        colour = look_of(first.name).colour
        if size is not THREADS:
            if power is not None:
                ends = [(float(at), power[1] * at ** power[0]) for at in (self.points[0][0], self.points[-1][0])]
                yield Line(ends, colour, "--", name=f"fit-{name}", hover=self.text(size))
            return
        cores = (first.record.get("environment") or {}).get("cores_usable")
        if cores and self.measured:
            fewest, seconds = self.measured[0]
            most = min(self.measured[-1][0], cores)
            if most > fewest:
                ends = [(float(fewest), seconds), (float(most), seconds * fewest / most)]
                yield Line(ends, colour, ":", name=f"ideal-{name}")


def along(size: Size) -> Callable[[Sequence[Row], ChartOptions], Chart]:
    """The kind of chart that has this size as its axis."""
    return lambda rows, options: _against(rows, options, size)


def _against(rows: Sequence[Row], options: ChartOptions, size: Size) -> Chart:
    groups = [(group, _series_of(group, options, size)) for group in grouped(rows, (*size.without, "tie_break"))]
    groups = [(group, series) for group, series in groups if series]
    if not groups:
        sizes = sorted({number for row in rows if (number := size.of(row)) is not None})
        texts = list(map(size.text, sizes))
        raise Refusal(
            f"{size.name}: no variant was measured at two, only at {', '.join(texts) or 'none'}; "
            f"python -m harness {size.example} measures some",
            UNMEASURED,
        )
    drawn = [row for _, own in groups for series in own for _, row, _ in series.points]
    names = {row.name for row in drawn}
    tried = [row for group, _ in groups for row in group if row.name in names]
    note = "N × with T: as fast as with the fewest threads. Dotted: the time divided by the threads."
    if size is not THREADS:
        power = f"the power law, if at least {FEWEST_POINTS} points follow one within 20 %."
        note = f"{size.symbol}^x and its line: {power}"
    return Chart(
        options.title or f"{SPOKEN[options.seconds]} by {size.name}",
        Legend(drawn).caption()[-1:],
        [note, *failures(Legend(tried), drawn)],
        [_panel(place, *group, [own for own, _ in groups], size) for place, group in enumerate(groups)],
        height=max(3.0, 0.17 * max(len(series) for _, series in groups)),
    )


def _series_of(group: Sequence[Row], options: ChartOptions, size: Size) -> list[Series]:
    """The variants of a group that were measured at two sizes or more, the slowest at the largest size first."""
    lines: dict[str, list[tuple[int, Row, Time]]] = {}
    for row, name in zip(group, _names(group, size), strict=True):
        number, time = size.of(row), row.times[options.seconds]
        if number is not None and time.number is not None:
            lines.setdefault(name, []).append((number, row, time))
    several = [
        Series(name, tuple(sorted(points, key=lambda point: point[0])))
        for name, points in lines.items()
        if len({number for number, *_ in points}) > 1
    ]
    return sorted(several, key=lambda series: -(series.points[-1][2].number or 0.0))


def _names(group: Sequence[Row], size: Size) -> list[str]:
    """A name for each row that is the same at every size."""
    legend = Legend(group)
    ties: dict[str, set[str]] = {}
    for row in group:
        ties.setdefault(row.name, set()).add(str(row.record.get("tie_break")))
    left_out = {size.field, "counting", "host", *(() if any(len(own) > 2 for own in ties.values()) else ["tie-break"])}
    columns = {title: column.cells for title, column in legend.columns.items() if title not in left_out}
    return [
        ", ".join([name, *(f"{title} {texts[place]}" for title, texts in columns.items())])
        for place, name in enumerate(legend.names)
    ]


def _panel(
    number: int, group: Sequence[Row], series: Sequence[Series], groups: Sequence[Sequence[Row]], size: Size
) -> Panel:
    points = [point for own in series for point in own.points]
    sizes = [at for at, *_ in points]
    marks = [mark for line, own in enumerate(series) for mark in _marks(f"{number}-{line}", own, size)]
    ends = [y for mark in marks if isinstance(mark, Line) for _, y in mark.points]
    x = Axis(size.title, min(sizes) / 1.15, max(sizes) * 1.15, log=True, unit=size.unit)
    y = Axis("seconds", *log_range([*ends, *(each for *_, time in points for each in time[1:4])]), log=True)
    return Panel(x, y, marks, panel_title(group, groups, sizes=size is not CORPUS))


def _marks(name: str, series: Series, size: Size) -> Iterator[Mark]:
    yield from series.lines(name, size)
    for place, (at, row, time) in enumerate(series.points):
        hover = f"{series.name}, {base_name(row)}, {size.title} {size.text(at)}: {time.text}"
        yield point_of(time, f"value-{name}-{place}", hover, at, time.number or 0.0, look_of(row.name), upright=True)
    last, row, time = series.points[-1]
    yield Label(last, time.number or 0.0, series.text(size), look_of(row.name).colour)


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
        options.title or f"{SPOKEN[options.seconds]} and peak memory",
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
