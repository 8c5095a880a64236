"""Two beside each other: the time of each row as so many times a baseline's, and the published figures beside ours."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.common.comparison import CONFIDENCE, FEWEST_BLOCKS, MARGIN, Comparison, compare
from harness.common.errors import Refusal
from harness.common.units import ratio_text, share_text
from harness.results import published as series
from harness.results.charts.chart import (
    Axis,
    Band,
    Chart,
    Dots,
    Entry,
    Line,
    Mark,
    Panel,
    Point,
    Request,
    Rule,
    Text,
    point_of,
    row_look,
)
from harness.results.charts.questions import caption, grouped, lacking, panel_title
from harness.results.charts.values import MEASURED, UNCONFIRMED, Value, log_range
from harness.results.colours import BAND, FAINT, INK, LINE, WRONG, Look
from harness.results.columns import interval_text
from harness.results.legend import Legend
from harness.results.rows import Row, alike, on_one_footing


class Compared(NamedTuple):
    """A row beside a baseline: the ratios within blocks, and what follows from them."""

    label: str
    row: Row
    comparison: Comparison


def paired(rows: Sequence[Row], request: Request) -> Chart:
    """A panel for each question, a line for each row that ran in blocks beside the baseline."""
    groups = grouped([row for row in rows if row.samples])
    bases = [_baseline(group, request.relative_to) for group in groups]
    parts = [
        (group, base, lines)
        for group, base in zip(groups, bases, strict=True)
        if base is not None and (lines := compared_with(group, base))
    ]
    if not parts:
        raise _refusal(rows, request)
    every = [line for *_, lines in parts for line in lines]
    names = " or ".join(dict.fromkeys(base.name for _, base, _ in parts))
    return Chart(
        request.title or f"How many times the time of {names}, block by block",
        caption([row for group, *_ in parts for row in group]),
        _notes(every),
        [
            ratios_panel(str(place), lines, f"{panel_title(group, groups)}: times {base.name}", f"times {base.name}")
            for place, (group, base, lines) in enumerate(parts)
        ],
        step=0.3 if max(len(lines) for *_, lines in parts) <= 24 else 0.18,
        margin=2.2,
    )


def _baseline(group: Sequence[Row], name: str | None) -> Row | None:
    """The row of that name; without a name the one that took the least."""
    usable = [row for row in group if row.total is not None and (name is None or row.name == name)]
    footing = zip(on_one_footing(usable), usable, strict=True)
    return min(footing, key=lambda both: both[0].total or 0.0, default=(None, None))[1]


def compared_with(group: Sequence[Row], base: Row) -> list[Compared]:
    """Every other row that shared two blocks or more with the baseline, the slowest first."""
    lines = []
    for row, label in zip(group, Legend(group).short_labels(), strict=True):
        sides = (each.samples for each in alike(row, base))
        comparison = compare(*sides) if row is not base and row.total is not None else None
        if comparison is not None and comparison.blocks > 1:
            lines.append(Compared(label, row, comparison))
    return sorted(lines, key=lambda line: -line.comparison.ratio)


def _refusal(rows: Sequence[Row], request: Request) -> Refusal:
    names = dict.fromkeys(row.name for row in rows if row.samples)
    if request.relative_to is not None and request.relative_to not in names:
        return lacking(f"no time of {request.relative_to!r} to compare with; there are: {', '.join(names) or 'none'}")
    return lacking(
        "paired: no two rows ran together in two blocks or more; python -m harness measure=paired makes ten of them"
    )


def _notes(every: Sequence[Compared]) -> list[str]:
    clocks = " or ".join(dict.fromkeys(line.comparison.clock for line in every))
    notes = [
        f"Dots: the ratio of {clocks} seconds in each block. Marker: their median. Bar: the interval that holds the "
        f"true median with {share_text(CONFIDENCE)} confidence.",
        f"Grey band: differences of less than {share_text(MARGIN)}. "
        "A bar that touches 1, or lies in the band, is no difference; its marker is hollow.",
    ]
    few = [line.label for line in every if line.comparison.low is None]
    if few:
        notes.append(f"Without a bar: fewer than {FEWEST_BLOCKS} blocks that can be used ({', '.join(few)}).")
    left_out = sum(line.comparison.left_out for line in every)
    if left_out:
        notes.append(f"Blocks left out because the machine was too busy for wall times: {left_out} in all.")
    return notes


def ratios_panel(name: str, lines: Sequence[Compared], title: str, times: str) -> Panel:
    """A line for each row; `times` says of what the ratios are."""
    marks: list[Mark] = [Band(1 / (1 + MARGIN), 1 + MARGIN, BAND), Rule(1, INK)]
    numbers = [1.0]
    for place, line in enumerate(lines):
        comparison, look = line.comparison, row_look(line.row)
        value = Value(
            MEASURED if line.row.confirmed else UNCONFIRMED, comparison.ratio, comparison.low, comparison.high
        )
        numbers += [*comparison.ratios, *filter(math.isfinite, value.numbers)]
        interval = interval_text(comparison)
        text = f"{ratio_text(comparison.ratio)} ({interval})" if comparison.low is not None else ""
        text = text or ratio_text(comparison.ratio)
        figures = {times: ratio_text(comparison.ratio), "interval": interval}
        dots = comparison.ratios if len(comparison.ratios) > 1 else ()
        marks.append(Dots(dots, place, look.colour, name=f"blocks-{name}-{place}", row=line.row))
        marks.append(
            Point(
                comparison.ratio,
                place,
                look,
                value.form,
                value.low,
                value.high,
                size=7,
                hollow=not comparison.different,
                name=f"{name}-{place}",
                row=line.row,
                words=f"{times} {{{times}}}",
                figures=figures,
            )
        )
        marks.append(Text(place, text, margin=True))
    return Panel(name, title, Axis(times, *log_range(numbers, 1.04, 1.04)), [line.label for line in lines], marks)


THEIRS = Look(FAINT, "diamond")
OURS = Look(INK, "circle")
LEAST = Look(INK, "bar")
QUANTITY = "merge"
"""Everything but reading and counting: the one figure that nearly every published program has."""


class Published(NamedTuple):
    """One published figure with ours: of a program on a corpus of theirs, or of a claim and the least that holds it."""

    label: str
    theirs: float
    ours: float
    row: Row
    held: bool = True
    least: float | None = None


def published(rows: Sequence[Row], request: Request) -> Chart:
    """Above the programs' seconds, theirs and ours; below, how many times as long one takes as another."""
    usable = [row for row in rows if row.status == "ok" and not row.counting_only]
    known = series.programs()
    programs, claims = programs_measured(known, usable), claims_judged(known, usable)
    if not programs and not claims:
        raise lacking(
            "published: no record is of a program of the series; experiment=series_python and series_cpp measure them"
        )
    drawn = [row for row in usable if any(row is line.row for line in (*programs, *claims))]
    held = sum(line.held for line in claims)
    key = [Entry("theirs", FAINT, THEIRS), Entry("ours (colour and shape of the variant)", INK, OURS)]
    if claims:
        key.append(Entry("factor to reach", INK, LEAST))
    if held < len(claims):
        key.append(Entry("ours, which refutes the claim", INK, OURS, edge=WRONG))
    panels = [
        _published_panel("programs", programs, "seconds of everything but reading and counting"),
        _published_panel("claims", claims, "times as slow, ours / theirs at the right"),
    ]
    return Chart(
        request.title or "Published against ours: seconds of merging, and what follows from them",
        caption(drawn),
        [
            "Theirs are medians on their corpora (2 and 12 GB) and their machine, ours on ours: compare pattern and "
            "ratios, never two seconds.",
            f"A claim holds if ours reaches the factor at the bar (|): {held} of the {len(claims)} that these records "
            "can judge do.",
        ],
        [panel for panel in panels if panel.marks],
        key,
        step=0.165,
        margin=0.75,
    )


def programs_measured(known: dict[str, series.Program], usable: Sequence[Row]) -> list[Published]:
    """Every program that has a published figure and a row of ours, in the order of the series."""
    lines = []
    for program in known.values():
        row = next((row for row in usable if program.is_measured_by(row)), None)
        ours = series.seconds_of(row, QUANTITY) if row is not None else None
        for corpus in program.data:
            theirs = program.seconds(QUANTITY, corpus)
            if theirs and ours and row is not None:
                lines.append(Published(f"{program.name} on {corpus}", theirs, ours, row))
    return lines


def claims_judged(known: dict[str, series.Program], usable: Sequence[Row]) -> list[Published]:
    """Every claim that these rows can judge."""
    judged = [series.judge(claim, usable) for claim in series.claims(known)]
    return [
        Published(one.claim.says, one.claim.published, one.ours, one.fast, one.verdict == "held", one.claim.factor)
        for one in judged
        if one.ours and one.claim.published and one.fast is not None
    ]


def _published_panel(name: str, lines: Sequence[Published], unit: str) -> Panel:
    low, high = log_range([number for line in lines for number in (line.theirs, line.ours, line.least) if number])
    labels = ["\n".join(textwrap.wrap(line.label, 50)) if line.least is not None else line.label for line in lines]
    marks = [mark for place, line in enumerate(lines) for mark in _published_marks(name, place, line)]
    return Panel(name, "", Axis(unit, low, high), labels, marks)


def _published_marks(name: str, place: int, line: Published) -> Iterator[Mark]:
    yield Line([(line.theirs, place), (line.ours, place)], LINE, 1.4)
    yield Point(line.theirs, place, THEIRS, size=5, name=f"{name}-theirs-{place}")
    if line.least is not None:
        yield Point(line.least, place, LEAST, size=10, prefix="least", name=f"{name}-{place}")
        yield Text(place, f"{ratio_text(line.ours)} / {ratio_text(line.theirs)}", size=7, colour=FAINT, margin=True)
    edge = None if line.held else WRONG
    yield point_of(line.row, Value(MEASURED, line.ours), f"{name}-ours-{place}", line.ours, place, edge=edge)
