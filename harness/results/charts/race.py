"""Who is how fast: a bar for each row from the fastest down, outside trainers in a colour of their own.

It stands at the front of a page and is read on a telephone, so it is narrow, and its few words are large.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.common import registry
from harness.common.units import count_text, duration_text, ratio_text
from harness.results.charts.chart import Axis, Bar, Chart, Entry, Mark, Panel, Request, Text
from harness.results.charts.drawing import text_width
from harness.results.charts.layout import LABELS, WIDEST_LABEL
from harness.results.charts.questions import failures, lacking, listed, one_question, panel_title
from harness.results.charts.values import AT_LEAST, ESTIMATED, SIGNS, Value, log_range, value_of
from harness.results.colours import HUES, INK
from harness.results.legend import Legend
from harness.results.rows import Row

OURS, OUTSIDE = HUES[3], HUES[0]
WIDTH = 4.7
"""Inches, of which a telephone shows four; names and figures that need more room than theirs make it wider."""
_NAMES, _FIGURES = 1.4, 1.25
"""Inches of the names of trainers and of the figures at the bars."""
_ROOM = 0.7
"""How much of the bars' length their figures need at the right, on the log axis."""


def race(rows: Sequence[Row], request: Request) -> Chart:
    """Total seconds on a log axis, sorted; rows that were asked different things cannot stand in one race."""
    trainers = [row for row in rows if not row.counting_only]
    asked = one_question(trainers, "race", without=("tie_break", "counting")) if trainers else []
    values = [(row, value_of(row, "total")) for row in asked]
    drawn = sorted(
        ((row, value) for row, value in values if value.number is not None), key=lambda drawn: drawn[1].number or 0.0
    )
    if not drawn:
        raise lacking("race: no trainer has a total; python -m harness measures some")
    low, high = log_range((value.number or 0.0 for _, value in drawn), 2.2, 1.0)
    high *= (high / low) ** _ROOM
    fastest = drawn[0][1].number or 1.0
    marks: list[Mark] = []
    for place, (row, value) in enumerate(drawn):
        number, outside = value.number or low, is_outside(row)
        figures = {"total": time_text(value), "times the fastest": ratio_text(number / fastest)}
        kind = "an outside trainer" if outside else "this project"
        bar = Bar(place, low, number, kind, OUTSIDE if outside else OURS, name=f"bar-{place}", row=row, figures=figures)
        marks.append(bar)
        times = "" if place == 0 else f"  ×{ratio_text(number / fastest)}"
        marks.append(Text(place, f"{time_text(value)}{times}", number, 5, 9.5, INK))
    kinds = {mark.part: mark.colour for mark in marks if isinstance(mark, Bar)}
    counted = all(row.counted for row, _ in drawn if row.seconds)
    notes = [f"{'The whole way from the file, counting included. ' if counted else ''}×N: N times the fastest."]
    if any(value.form in (ESTIMATED, AT_LEAST) for _, value in drawn):
        notes.append("~: extrapolated from what was done at the limit; >: at least this.")
    if others := [name_of(row) for row, _ in drawn if row.by_design]:
        notes.append(f"Makes other merges by design: {listed(others)}.")
    names = [name_of(row) for row, _ in drawn]
    wide = min(WIDEST_LABEL, max(text_width(name, LABELS) for name in names))
    figures_wide = max(text_width(mark.text, mark.size) for mark in marks if isinstance(mark, Text))
    panel = Panel("race", "", Axis("seconds", low, high, unit="times"), names, marks)
    return Chart(
        request.title or "From a text to merges: total seconds",
        _caption([row for row, _ in drawn]),
        [*notes, *failures(asked, [row for row, _ in drawn])],
        [panel],
        [Entry(text, colour) for text, colour in kinds.items()] if len(kinds) > 1 else [],
        step=0.3,
        width=WIDTH + max(0.0, wide - _NAMES) + max(0.0, figures_wide - _FIGURES),
    )


def _caption(rows: Sequence[Row]) -> list[str]:
    """What the race was about, how it was run, and where and when, in lines that a narrow page has room for."""
    told = ", ".join(Legend(rows).caption()[-1:]).split(", ")
    vocab_size = rows[0].record.get("vocab_size")
    asked = panel_title(rows, [rows]) + (f", to {count_text(vocab_size)} tokens" if vocab_size is not None else "")
    return [line for line in (asked, ", ".join(told[:-2]), ", ".join(told[-2:])) if line]


def time_text(value: Value) -> str:
    """
    >>> [time_text(Value("measured", seconds)) for seconds in (0.00912, 0.918, 17.64, 176.2)]
    ['0.0091 s', '0.92 s', '18 s', '3 min']
    >>> time_text(Value("estimated", 90_000.0)), time_text(Value("at least", 300.0))
    ('~25 h', '>5 min')
    """
    seconds = value.number or 0.0
    sign = SIGNS.get(value.form, "")
    return sign + (f"{seconds:.2g} s" if seconds < 100 else duration_text(seconds))


def name_of(row: Row) -> str:
    """The row's own name; an outside trainer's is that of its program, with the version that ran."""
    program = (row.record.get("feeding") or {}).get("program")
    return str(program) if program and is_outside(row) else row.name


def is_outside(row: Row) -> bool:
    card = registry.variants().get(row.name)
    return card is not None and registry.OUTSIDE in card.tags
