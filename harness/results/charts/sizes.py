"""Seconds against the size of the corpus or of the vocabulary with the fitted power, or against the number of threads.

Threads have no power law: they help up to a number, or not at all. So their points are joined, and the ideal is drawn.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from harness.runs.fields import FIELD
from harness.worker.calling import OWN


@dataclass(frozen=True)
class Size:
    """Something that grows.

    `symbol` stands for it in an exponent and `setting` in a legend; rows of one line may differ in it and in the parts
    of a question that are listed in `without`. `example` are arguments that measure some of them. `told` is what a line
    says of all its points.
    """

    name: str
    title: str
    symbol: str
    of: Callable[[Row], int | None]
    setting: str
    example: str
    unit: str = "number"
    without: tuple[str, ...] = ()
    told: str = "exponent"


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
    name="the number of threads",
    title="threads",
    symbol="t",
    of=lambda row: row.record.get("threads"),
    setting="threads",
    example="-m threads=1,2,4",
    told="gain",
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

    def says(self, size: Size) -> str:
        """What the points come to: the power of the size, with its error where more than two points give one.

        Of threads, the greatest gain over the fewest and the number that it takes.
        """
        if self.fit is None:
            return ""
        if size is THREADS:
            (_, first), *others = self.measured
            threads, least = min(others, key=lambda point: point[1])
            return f"{first / least:.2f}x with {threads}"
        slope, error, _ = self.fit
        return f"{size.symbol}^{slope:.2f}" + ("" if error is None else f" ±{error:.2f}")


def along(size: Size) -> Callable[[Sequence[Row], Request], Chart]:
    """The kind of chart that has this size as its axis."""
    return lambda rows, request: describe(rows, request, size)


def describe(rows: Sequence[Row], request: Request, size: Size) -> Chart:
    """A panel for each corpus, a line for each variant that was measured at two sizes or more."""
    # Outside trainers keep tie-breaks of their own, and what there is to do is the same under all.
    groups = [(group, series_of(group, request, size)) for group in grouped(rows, (*size.without, "tie_break"))]
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
    longest = max(len(f"{series.name}  {series.says(size)}") for series in every)
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
    for row, name in zip(group, _names(group, size), strict=True):
        number, value = size.of(row), value_of(row, request.seconds)
        if number is not None and value.number is not None:
            lines.setdefault(name, []).append((number, row, value))
    several = [
        Series(name, tuple(sorted(points, key=lambda point: point[0])))
        for name, points in lines.items()
        if len({number for number, *_ in points}) > 1
    ]
    return sorted(several, key=lambda series: -(series.points[-1][2].number or 0.0))


def _names(group: Sequence[Row], size: Size) -> list[str]:
    """A name for each row that is the same at every size."""
    legend = Legend(group)
    unsaid = {size.setting, "counting", "host"} | (set() if _told_apart_by_ties(group) else {FIELD["tie_break"].title})
    columns = {title: texts for title, texts in legend.columns.items() if title not in unsaid}
    names = [name.partition(" x")[0] for name in legend.names]
    return [
        ", ".join([name, *(f"{title} {texts[place]}" for title, texts in columns.items())])
        for place, name in enumerate(names)
    ]


def _told_apart_by_ties(group: Sequence[Row]) -> bool:
    """Whether one trainer was measured under several tie-breaks; of a run that was stopped its own is not known."""
    ties: dict[str, set[Any]] = {}
    for row in group:
        ties.setdefault(row.name, set()).add(row.record.get("tie_break"))
    return any(len(each - {OWN}) > 1 for each in ties.values())


def _notes(drawn: Sequence[Row], every: Sequence[Series], size: Size) -> list[str]:
    if size is THREADS:
        cores = set(_cores(drawn))
        machine = f" The machine has {cores.pop()} cores (vertical line)." if len(cores) == 1 else ""
        return [
            "Nx with T: the greatest gain over the fewest threads, N times as fast with T of them. "
            f"Dotted: the ideal, all of the time divided by the threads, up to the number of cores.{machine}"
        ]
    numbers = [len({number for number, _ in series.measured}) for series in every]
    error = ", ± its standard error" if any(len(series.measured) > 2 for series in every) else ""
    notes = [
        f"{size.symbol}^x: the power of {size.name} that fits what was measured (dashed; least squares of logarithms)"
        f"{error}."
    ]
    if 2 in numbers:
        notes.append("Two points lie on a line whatever they are: an exponent without ± is a slope, not a fit.")
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
        threads = series if size is THREADS else []
        ideal = [mark for line, own in enumerate(threads) for mark in _ideal(f"ideal-{place}-{line}", own)]
        seconds = [number for *_, value in points for number in value.numbers]
        low, high = log_range([*seconds, *(line.points[-1][1] for line in ideal)], 1.3, 1.3)
        marks = [*ideal, *(mark for line, own in enumerate(series) for mark in _marks(f"{place}-{line}", own, size))]
        if size is THREADS and (cores := _cores([row for _, row, _ in points])):
            marks.append(Rule(statistics.mode(cores), dotted=True))
        title = panel_title(group, every, sizes=size is not CORPUS)
        described.append(Panel(str(place), title, x, Axis("seconds", low, high), marks, view=size.name))
    return described


def _ideal(name: str, series: Series) -> Iterator[Line]:
    """What threads would take from the first measured point on, up to the cores there are, if they divided the time."""
    last = max((number for number, _ in series.measured), default=0)
    if series.fit is None or not (cores := _cores([row for _, row, _ in series.points])):
        return
    fewest, seconds = series.measured[0]
    most = min(last, statistics.mode(cores))
    if most > fewest:
        corners = [(float(fewest), seconds), (float(most), seconds * fewest / most)]
        first = series.points[0][1]
        yield Line(corners, row_look(first).colour, 0.7, "dotted", name=name, row=first, series=_spoken(series))


def _spoken(series: Series) -> str:
    return f"{series.name}, {base_name(series.points[0][1])}"


def _marks(name: str, series: Series, size: Size) -> Iterator[Mark]:
    """The points of a series and the fitted line over them; of threads, or where no line fits, from point to point."""
    first, colour = series.points[0][1], row_look(series.points[0][1]).colour
    says, spoken = series.says(size), _spoken(series)
    if series.fit is None or size is THREADS:
        corners = [(float(number), value.number or 0.0) for number, _, value in series.points]
        thick, dash = (0.6, "dotted") if series.fit is None else (1.0, "solid")
        yield Line(corners, colour, thick, dash, name=f"joined-{name}", row=first, series=spoken)
    else:
        slope, _, height = series.fit
        ends = [float(series.points[place][0]) for place in (0, -1)]
        corners = [(end, height * end**slope) for end in ends]
        yield Line(corners, colour, 1.0, "dashed", 0.8, name=f"fit-{name}", row=first, series=spoken)
    for number, (at, row, value) in enumerate(series.points):
        assert value.number is not None
        figures = {size.name: f"{at:,}", "seconds": f"{value.number:,.4g}", size.told: says}
        words = "{seconds} s at {x}"
        point = point_of(row, value, f"{name}-{number}", at, value.number, upright=True, size=5.5)
        yield replace(point, words=words, figures=figures, series=spoken)
    last, _, value = series.points[-1]
    yield Label(last, value.number or 0.0, f"{series.name}  {says}", colour, row=series.points[-1][1])
