"""The time of each row as so many times a baseline's, block by block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from harness.common.comparison import CONFIDENCE, FEWEST_BLOCKS, MARGIN, Comparison, compare
from harness.common.errors import Refusal
from harness.common.units import ratio_text, share_text
from harness.results.charts.chart import (
    Axis,
    Band,
    Chart,
    Dots,
    Mark,
    Panel,
    Point,
    Request,
    Rule,
    Text,
    row_look,
)
from harness.results.charts.questions import caption, grouped, lacking, panel_title
from harness.results.charts.values import MEASURED, UNCONFIRMED, Value, log_range
from harness.results.colours import BAND, INK
from harness.results.columns import interval_text
from harness.results.legend import Legend
from harness.results.rows import Row


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
    return min(usable, key=lambda row: row.total or 0.0, default=None)


def compared_with(group: Sequence[Row], base: Row) -> list[Compared]:
    """Every other row that shared two blocks or more with the baseline, the slowest first."""
    lines = []
    for row, label in zip(group, Legend(group).short_labels(), strict=True):
        comparison = compare(row.samples, base.samples) if row is not base and row.total is not None else None
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
