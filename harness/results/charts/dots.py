"""Who is how fast at each width: a line for each trainer from the fastest down, a dot for one thread and one for more.

The dots of one line stand on one axis with those of the others, so that rank, ratio and what threads gain are seen at
once; of a board there is one such picture for each corpus and vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.common.units import count_text, counted_text
from harness.results.charts.chart import Axis, Chart, Entry, Mark, Panel, Point, Request, Text
from harness.results.charts.questions import failures, lacking, listed, one_question, panel_title
from harness.results.charts.race import name_of, time_text
from harness.results.charts.values import AT_LEAST, ESTIMATED, Value, log_range, value_of
from harness.results.colours import FAINT, HUES, Look
from harness.results.legend import Legend
from harness.results.rows import Row

ONE, MORE = Look(HUES[0], "circle"), Look(HUES[3], "diamond")
"""One thread, and more."""
_ROOM = 0.35
"""How much of the axis the figures at the right need."""


def dots(rows: Sequence[Row], request: Request) -> Chart:
    """Total seconds on a log axis, sorted by each trainer's best."""
    trainers = [row for row in rows if not row.counting_only]
    asked = one_question(trainers, "dots", without=("tie_break", "counting")) if trainers else []
    drawn = [(row, value) for row in asked if (value := value_of(row, "total")).number is not None]
    if not drawn:
        raise lacking("dots: no trainer has a total; python -m harness measures some")
    lines: dict[str, list[tuple[Row, Value]]] = {}
    for row, value in drawn:
        lines.setdefault(request.programs.get(row.name) or name_of(row), []).append((row, value))
    ranked = sorted(lines, key=lambda name: min(value.number or 0.0 for _, value in lines[name]))
    low, high = log_range(number for _, value in drawn for number in value.numbers)
    high *= (high / low) ** _ROOM
    marks: list[Mark] = []
    for place, name in enumerate(ranked):
        for row, value in lines[name]:
            threads = int(row.record.get("threads") or 1)
            look = ONE if threads == 1 else MORE
            figures = {"seconds": time_text(value), "threads": count_text(threads)}
            known = f"dot-{place}-{threads}"
            ends = value.low, value.high
            marks.append(
                Point(value.number or low, place, look, value.form, *ends, name=known, row=row, figures=figures)
            )
        far, last = max(each[1].numbers[-1] for each in lines[name]), lines[name]
        texts = " / ".join(dict.fromkeys(time_text(value) for _, value in last))
        marks.append(Text(place, texts, far, 8, 8.0, FAINT))
    notes = ["The whole way from the file, counting included; bars: the shortest and the longest run."]
    forms = {value.form for _, value in drawn}
    if ESTIMATED in forms:
        notes.append("A ring on a broken line: a limit ended the run; its total is extrapolated, with an interval.")
    if AT_LEAST in forms:
        notes.append("An arrow is where a limit ended a run: it takes longer.")
    if others := [name for name in ranked if lines[name][0][0].by_design]:
        notes.append(f"Makes other merges by design: {listed(others)}.")
    widths = sorted({int(row.record.get("threads") or 1) for row, _ in drawn})
    entries = [
        Entry(counted_text(width, "thread"), look.colour, look)
        for width, look in ((width, ONE if width == 1 else MORE) for width in widths)
    ]
    vocab_size = asked[0].record.get("vocab_size")
    what = panel_title(asked, [asked]) + (f", to {count_text(vocab_size)} tokens" if vocab_size is not None else "")
    return Chart(
        request.title or what,
        Legend([row for row, _ in drawn]).caption()[-1:],
        [*notes, *failures(asked, [row for row, _ in drawn])],
        [Panel("dots", "", Axis("seconds", low, high, unit="times"), ranked, marks)],
        entries,
        step=0.26,
        width=7.0,
    )
