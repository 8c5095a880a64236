"""Seconds against the size of the corpus or of the vocabulary, or the number of threads, with the fitted power."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from harness.results.charts.chart import (
    Axis,
    Chart,
    Label,
    Line,
    Mark,
    Panel,
    Request,
    Rule,
    form_key,
    point_of,
    row_look,
)
from harness.results.charts.questions import (
    bars_explained,
    base_name,
    caption,
    failures,
    grouped,
    lacking,
    panel_title,
)
from harness.results.charts.values import EXPLAINED, PROVED, SPOKEN, UNITS, Value, fitted, log_range, value_of
from harness.results.legend import Legend
from harness.results.rows import Row


@dataclass(frozen=True)
class Size:
    """Something that grows.

    `symbol` stands for it in an exponent and `setting` in a legend; rows of one line may differ in it and in the parts
    of a question that are listed in `without`. `example` are arguments that measure some of them.
    """

    name: str
    title: str
    symbol: str
    of: Callable[[Row], int | None]
    setting: str
    example: str
    unit: str = "number"
    without: tuple[str, ...] = ()


CORPUS = Size(
    name="the size of the corpus",
    title="corpus, bytes",
    symbol="n",
    of=lambda row: row.corpus.get("bytes"),
    setting="data",
    unit="bytes",
    example="-m data.bytes=1MB,2MB,4MB",
    # Where words are trained first and superwords go on from them, each size has merges of its own to go on from.
    without=("data.sha256", "extend"),
)
VOCABULARY = Size(
    name="the size of the vocabulary",
    title="vocabulary, tokens",
    symbol="v",
    of=lambda row: row.record.get("vocab_size"),
    setting="vocab size",
    example="-m vocab_size=1000,2000,4000",
    without=("vocab_size",),
)
THREADS = Size(
    name="threads",
    title="threads",
    symbol="t",
    of=lambda row: row.record.get("threads"),
    setting="threads",
    example="-m threads=1,2,4",
)
SIZES = (CORPUS, VOCABULARY, THREADS)


@dataclass(frozen=True)
class Series:
    """One variant over sizes: the rows in order of size, with what may be drawn of each."""

    name: str
    points: tuple[tuple[int, Row, Value], ...]

    @property
    def measured(self) -> list[tuple[int, float]]:
        """The sizes that were measured to the end, with their seconds; a size of nothing lies on no power law."""
        return [
            (size, value.number) for size, _, value in self.points if value.form in PROVED and size and value.number
        ]

    @property
    def fit(self) -> tuple[float, float | None, float] | None:
        """As values.fitted has it; None where fewer than two sizes were measured."""
        return fitted(self.measured) if len({size for size, _ in self.measured}) > 1 else None

    def exponent(self, symbol: str) -> str:
        """The power of the size, with its error where more than two points give one."""
        if self.fit is None:
            return ""
        slope, error, _ = self.fit
        return f"{symbol}^{slope:.2f}" + ("" if error is None else f" ±{error:.2f}")


def along(size: Size) -> Callable[[Sequence[Row], Request], Chart]:
    """The kind of chart that has this size as its axis."""
    return lambda rows, request: describe(rows, request, size)


def describe(rows: Sequence[Row], request: Request, size: Size) -> Chart:
    """A panel for each corpus, a line for each variant that was measured at two sizes or more."""
    groups = [(group, series_of(group, request, size)) for group in grouped(rows, size.without)]
    groups = [(group, series) for group, series in groups if series]
    if not groups:
        sizes = sorted({number for row in rows if (number := size.of(row)) is not None})
        raise lacking(
            f"{size.name}: no variant was measured at two, only at "
            f"{', '.join(map(UNITS[size.unit].text, sizes)) or 'none'}; python -m harness {size.example} measures some"
        )
    every = [series for _, own in groups for series in own]
    drawn = [row for series in every for _, row, _ in series.points]
    # Of a variant that was tried at one size only there is nothing to say here, whatever became of it.
    tried = [row for row in rows if row.name in {other.name for other in drawn}]
    longest = max(len(f"{series.name}  {series.exponent(size.symbol)}") for series in every)
    few = len(groups) <= 2
    return Chart(
        request.title or f"{SPOKEN[request.seconds]} against {size.name}",
        caption(drawn),
        [*_notes(drawn, every, size), *bars_explained(drawn), EXPLAINED[request.seconds], *failures(tried, drawn)],
        panels(groups, size),
        form_key(value for series in every for *_, value in series.points),
        # Two beside each other only where the names leave them room.
        widths=(1.0,) if few or longest > 26 else (1.0, 1.0),
        height=max(3.4 if few else 2.7, 0.135 * max(len(own) for _, own in groups)),
    )


def series_of(group: Sequence[Row], request: Request, size: Size) -> list[Series]:
    """The variants of a group that were measured at two sizes or more, the slowest at the largest size first."""
    lines: dict[str, list[tuple[int, Row, Value]]] = {}
    # One line is of one footing, although its points answer different questions.
    training = request.seconds == "total" and any(row.seconds and not row.counted for row in group)
    for row, name in zip(group, _names(group, size), strict=True):
        shown = row.training if training else row
        number, value = size.of(row), value_of(shown, request.seconds)
        if number is not None and value.number is not None:
            lines.setdefault(name, []).append((number, shown, value))
    several = [
        Series(name, tuple(sorted(points, key=lambda point: point[0])))
        for name, points in lines.items()
        if len({number for number, *_ in points}) > 1
    ]
    return sorted(several, key=lambda series: -(series.points[-1][2].number or 0.0))


def _names(group: Sequence[Row], size: Size) -> list[str]:
    """A name for each row that is the same at every size."""
    legend = Legend(group)
    columns = {
        title: texts for title, texts in legend.columns.items() if title not in (size.setting, "counting", "host")
    }
    names = [name.partition(" x")[0] for name in legend.names]
    return [
        ", ".join([name, *(f"{title} {texts[place]}" for title, texts in columns.items())])
        for place, name in enumerate(names)
    ]


def _notes(drawn: Sequence[Row], every: Sequence[Series], size: Size) -> list[str]:
    numbers = [len({number for number, _ in series.measured}) for series in every]
    error = ", ± its standard error" if any(len(series.measured) > 2 for series in every) else ""
    notes = [
        f"{size.symbol}^x: the power of {size.name} that fits what was measured (dashed; least squares of logarithms)"
        f"{error}."
    ]
    if 2 in numbers:
        notes.append("Two points lie on a line whatever they are: an exponent without ± is a slope, not a fit.")
    if size is THREADS and len(cores := set(_cores(drawn))) == 1:
        notes.append(f"The machine has {cores.pop()} cores (dotted line); ideal is t^-1 up to there.")
    return notes


def _cores(drawn: Sequence[Row]) -> list[int]:
    cores = [(row.record.get("environment") or {}).get("cores_usable") for row in drawn]
    return [number for number in cores if number]


def panels(groups: Sequence[tuple[Sequence[Row], Sequence[Series]]], size: Size) -> list[Panel]:
    """A panel for each group that has series."""
    every = [group for group, _ in groups]
    described = []
    for place, (group, series) in enumerate(groups):
        points = [point for own in series for point in own.points]
        sizes = sorted({number for number, *_ in points})
        x = Axis(size.title, sizes[0] / 1.12, sizes[-1] * 1.12, unit=size.unit, measured=sizes)
        low, high = log_range([number for *_, value in points for number in value.numbers], 1.3, 1.3)
        marks = [mark for line, own in enumerate(series) for mark in _marks(f"{place}-{line}", own, size)]
        if size is THREADS and (cores := _cores([row for _, row, _ in points])):
            marks.append(Rule(statistics.mode(cores), dotted=True))
        title = panel_title(group, every, sizes=size is not CORPUS)
        described.append(Panel(str(place), title, x, Axis("seconds", low, high), marks, view=size.name))
    return described


def _marks(name: str, series: Series, size: Size) -> Iterator[Mark]:
    """The points of a series, and the fitted line over them; from point to point where there is none."""
    first, colour = series.points[0][1], row_look(series.points[0][1]).colour
    exponent = series.exponent(size.symbol)
    spoken = f"{series.name}, {base_name(first)}"
    if series.fit is None:
        corners = [(float(number), value.number or 0.0) for number, _, value in series.points]
        yield Line(corners, colour, 0.6, "dotted", row=first, series=spoken)
    else:
        slope, _, height = series.fit
        ends = [float(series.points[place][0]) for place in (0, -1)]
        corners = [(end, height * end**slope) for end in ends]
        yield Line(corners, colour, 1.0, "dashed", 0.8, name=f"fit-{name}", row=first, series=spoken)
    for number, (at, row, value) in enumerate(series.points):
        assert value.number is not None
        figures = {size.name: f"{at:,}", "seconds": f"{value.number:,.4g}", "exponent": exponent}
        words = "{seconds} s at {x}"
        point = point_of(row, value, f"{name}-{number}", at, value.number, upright=True, size=5.5)
        yield replace(point, words=words, figures=figures, series=spoken)
    last, _, value = series.points[-1]
    yield Label(last, value.number or 0.0, f"{series.name}  {exponent}", colour, row=series.points[-1][1])
