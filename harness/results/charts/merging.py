"""How the seconds grow as merges are made: in sum, and those of one merge, in finding the maximum and in updating."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.results.charts.chart import Axis, Chart, Label, Line, Mark, Panel, Point, Request, row_look
from harness.results.charts.questions import caption, failures, lacking, one_question
from harness.results.charts.values import AT_LEAST, MEASURED, log_range
from harness.results.legend import Legend
from harness.results.rows import Row
from harness.runs.extrapolation import rising

PHASES = {"max": "finding the maximum", "update": "updating the counts"}
TRAINING = {"training": "training"}
"""All phases of training in sum."""
FEWEST_POINTS = 3
"""With fewer, a curve says nothing about how anything grows."""
_STRETCHES = 25
"""Into so many the merges are cut for the seconds of one; shorter ones would show the clock's grain."""


@dataclass(frozen=True)
class Curve:
    """One row's seconds in each phase and in sum, at numbers of merges from the first to the last that was made."""

    name: str
    row: Row
    merges: tuple[int, ...]
    seconds: Mapping[str, tuple[float, ...]]

    def so_far(self, phase: str) -> list[tuple[float, float]]:
        """(merges, seconds of all of them)."""
        return [(merges, spent) for merges, spent in zip(self.merges, self.seconds[phase], strict=True) if spent > 0]

    def of_one(self, phase: str) -> list[tuple[float, float]]:
        """(merges, milliseconds of one merge) between points that are some way apart."""
        points = list(zip(self.merges, self.seconds[phase], strict=True))
        before, one = points[0], []
        for point in points[1:]:
            merges, seconds = point[0] - before[0], point[1] - before[1]
            if seconds > 0 and (merges * _STRETCHES >= self.merges[-1] or point is points[-1]):
                one.append(((before[0] + point[0]) / 2, 1000 * seconds / merges))
                before = point
        return one


def growth(rows: Sequence[Row], request: Request) -> Chart:
    """Above what all merges so far took, below what one merge takes; left the maximum, right the update."""
    rows = one_question(rows, "growth")
    curves = curves_of(rows)
    if not curves:
        raise lacking(
            "growth: no row has a curve of three points or more; one is looked at ten times a second, so a larger "
            "corpus or vocabulary gives it"
        )
    drawn = [curve.row for curve in curves]
    short = [
        name
        for row, name in zip(rows, Legend(rows).short_labels(), strict=True)
        if row.seconds and not any(row is other for other in drawn)
    ]
    notes = ["From the curve that each run leaves, looked at ten times a second; a dot is where it was looked at."]
    if short:
        notes.append(f"Over before a curve could form: {'; '.join(short)}.")
    if any(row.status != "ok" for row in drawn):
        notes.append("A curve that ends in → was stopped at the limit.")
    return Chart(
        request.title or "How training seconds grow with the merges",
        caption(drawn),
        [*notes, *failures(rows, drawn)],
        panels(curves, PHASES),
        widths=(1.0, 1.0),
        height=max(2.5, 0.135 * len(curves)),
    )


def curves_of(rows: Sequence[Row]) -> list[Curve]:
    """The curves that have enough points, the longest time first."""
    curves = []
    for row, name in zip(rows, Legend(rows).short_labels(), strict=True):
        points = rising(row.record.get("curve") or ()) if row.status != "mismatch" else []
        if len(points) >= FEWEST_POINTS:
            seconds = {phase: tuple(point.seconds.get(phase) or 0.0 for point in points) for phase in PHASES}
            seconds["training"] = tuple(sum(spent or 0.0 for spent in point.seconds.values()) for point in points)
            curves.append(Curve(name, row, tuple(point.merges for point in points), seconds))
    return sorted(curves, key=lambda curve: -sum(curve.seconds[phase][-1] for phase in PHASES))


def panels(curves: Sequence[Curve], phases: Mapping[str, str], each_named: bool = False) -> list[Panel]:
    """Two for each phase, of all merges and of one; the curves are named in each, or beside those of the last phase."""
    most = max(curve.merges[-1] for curve in curves)
    described = []
    for kind, spoken in (("sum", "all merges so far"), ("each", "one merge")):
        for phase, name in phases.items():
            lines = {
                number: (curve, curve.so_far(phase) if kind == "sum" else curve.of_one(phase))
                for number, curve in enumerate(curves)
            }
            marks = [
                mark
                for number, (curve, points) in lines.items()
                if points
                for mark in _marks(
                    f"{kind}-{phase}-{number}", curve, points, named=each_named or phase == [*phases][-1]
                )
            ]
            unit = "seconds" if kind == "sum" else "milliseconds for one merge"
            low, high = log_range([spent for _, points in lines.values() for _, spent in points], 1.3, 1.3)
            x, y = Axis("merges made", 0, most, log=False), Axis(unit, low, high)
            title = f"{name}: {spoken}"
            described.append(Panel(f"{kind}-{phase}", title, x, y, marks, view=title))
    return described


def _marks(name: str, curve: Curve, points: Sequence[tuple[float, float]], named: bool) -> Iterator[Mark]:
    look = row_look(curve.row)
    words = "{y} s after merge {x}" if name.startswith("sum") else "{y} ms for one merge at merge {x}"
    yield Line(points, look.colour, 1.3, dotted=True, name=f"curve-{name}", row=curve.row, words=words)
    form = MEASURED if curve.row.status == "ok" else AT_LEAST
    (x, y) = points[-1]
    yield Point(x, y, look, form, size=5, row=curve.row)
    if named:
        yield Label(x, y, curve.name, look.colour, row=curve.row)
