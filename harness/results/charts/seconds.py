"""Seconds of rows by name: stacked from their phases, in sum on a log axis, and as a ladder of stages.

Where one row takes many times as long as another, stacked bars would hide the small ones, and stacking on a log axis
would lie about every phase but the first. Then the totals stand on a log axis, and beside them what each is made of.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.common import registry
from harness.common.units import ratio_text, seconds_texts, share_text
from harness.results.charts.chart import (
    Axis,
    Bar,
    Chart,
    Dots,
    Entry,
    Line,
    Mark,
    Panel,
    Point,
    Request,
    Text,
    form_key,
    point_of,
    row_look,
)
from harness.results.charts.questions import (
    bars_explained,
    caption,
    failures,
    grouped,
    lacking,
    listed,
    panel_title,
)
from harness.results.charts.values import (
    AT_LEAST,
    ESTIMATED,
    EXPLAINED,
    MANY,
    NOTHING,
    PROVED,
    SPOKEN,
    Value,
    by_itself,
    log_range,
    value_of,
)
from harness.results.colours import FAINT, INK, WRONG, ink_on, phase_colour
from harness.results.legend import UNCONFIRMED, Legend, divergence_text, failure_text
from harness.results.notes import ONE_RUN_CANNOT_TELL
from harness.results.rows import Row, decimals_of, measured_phases

MOST_RUNS = 300
"""Of more runs of a row nobody would tell one tick from the next."""
TOO_WIDE = 8
"""From this ratio of the longest total to the shortest on, the shortest bar is too short to show what it is made of."""


def phases(rows: Sequence[Row], request: Request) -> Chart:
    """Each row's total stacked from its phases, or beside it where totals are far apart; panels of each task."""
    legend, close = Legend(rows), len(rows) >= MANY
    alone = len({(row.name, *sorted(row.params.items())) for row in rows}) == 1
    groups = [list(rows)] if alone else grouped(rows)
    usual = {} if close else legend.usual()
    labels = [_phase_labels(group, close, usual) for group in groups]
    tallest = max((label.count("\n") for named in labels for label in named), default=0) + 1
    split = any(map(far_apart, groups)) or (request.log and any(row.total for row in rows))
    panels: list[Panel] = []
    for place, (group, named) in enumerate(zip(groups, labels, strict=True)):
        own = [phases_panel(group, named, shares=split)]
        own = [totals_panel(group, named), *own] if split else own
        panels += own if len(groups) == 1 else [_of_task(panel, place, panel_title(group, groups)) for panel in own]
    subject = "Counting words" if all(row.counting_only for row in rows) else "BPE training"
    spent = [phase for phase in measured_phases(rows) if any(row.seconds.get(phase) for row in rows)]
    values = [value_of(row, "total") for row in rows]
    return Chart(
        request.title or f"{subject}: seconds by phase",
        [*caption(rows), *(f"{title} {text} unless a row says otherwise" for title, text in usual.items())],
        [
            f"{sentence}: {listed(names.removesuffix('.').split('; '))}." if names else sentence
            for sentence, _, names in (note.partition(": ") for note in legend.marks())
        ],
        panels,
        [Entry(phase, phase_colour(phase)) for phase in spent] + (form_key(values) if split else []),
        widths=(0.40, 0.57) if split else (1.0,),
        step=0.175 if close else max(0.4, 0.16 * tallest),
    )


def _phase_labels(group: Sequence[Row], close: bool, unsaid: Mapping[str, str]) -> list[str]:
    legend = Legend(group)
    return legend.short_labels() if close else ["\n".join(textwrap.wrap(text, 42)) for text in legend.labels(unsaid)]


def _of_task(panel: Panel, task: int, title: str) -> Panel:
    """The panel under its task's name, what is drawn in it named apart from what is in those of other tasks."""
    marks = [replace(mark, name=f"{task}-{mark.name}") if mark.name else mark for mark in panel.marks]
    return replace(panel, name=f"{panel.name}-{task}", title=title if panel.named else "", marks=marks)


def far_apart(rows: Sequence[Row]) -> bool:
    totals = [row.total for row in rows if row.total]
    return bool(totals) and max(totals) > TOO_WIDE * min(totals)


def totals_panel(rows: Sequence[Row], labels: Sequence[str]) -> Panel:
    """Totals as points on a log axis: the length of a bar would mean nothing there."""
    values = [value_of(row, "total") for row in rows]
    low, high = log_range([number for value in values for number in value.numbers], 1.6, 1.6)
    # Room at the right for the text of the largest: a third of the axis, whatever its length.
    high *= (high / low) ** 0.4
    decimals = decimals_of(rows)
    marks: list[Mark] = []
    for place, (row, value, (text, _)) in enumerate(zip(rows, values, _texts(rows), strict=True)):
        if row.status != "mismatch" and value.number is None:
            continue
        x = low if value.number is None else value.number
        runs = [sample.wall_seconds for sample in row.samples]
        figures = {
            "total, s": text.replace(" s", "", 1) if row.total is not None else "-",
            "runs, s": f"{min(runs):,.{decimals}f} to {max(runs):,.{decimals}f} ({len(runs)} runs)"
            if runs[1:]
            else "1",
            "spread": share_text(row.spread) if row.spread is not None else "-",
            "proof": failure_text(row) if row.status != "ok" else "ok" if row.confirmed else "unconfirmed",
        }
        words = "total {total, s} s" if row.total is not None else "{proof}"
        marks.append(point_of(row, value, str(place), x, place, size=5.5, words=words, figures=figures))
        if row.total is not None:
            offset = 5 if len(rows) >= MANY else 7
            marks.append(Text(place, text, value.high or x, offset, 7.5, row=row))
    return Panel("totals", "", Axis("total, seconds", low, high), labels, marks)


def phases_panel(rows: Sequence[Row], labels: Sequence[str], shares: bool) -> Panel:
    """Stacked bars: seconds, or shares of the total with the seconds written in them."""
    longest = 1.0 if shares else max((row.total for row in rows if row.total), default=1.0)
    close = len(rows) >= MANY
    colours = {phase: phase_colour(phase) for phase in measured_phases(rows)}
    inks = {phase: ink_on(colour) for phase, colour in colours.items()}
    marks: list[Mark] = []
    for place, (row, (total, texts)) in enumerate(zip(rows, _texts(rows), strict=True)):
        if row.total is None:
            marks.append(outcome(row, place, 62 if shares else 90, 1 if close else 2, 0.01 * longest))
            continue
        scale, start = row.total if shares else 1.0, 0.0
        for phase, text in texts.items():
            end = start + max(row.seconds[phase], 0.0) / scale
            # Nobody sees a bar of a few hundredths of an inch, and seventy rows of them make a large file.
            name = f"bar-{place}-{phase}" if end - start >= longest / (400 if close else 1000) else ""
            figures = {"phase": phase, "seconds": text, "total": total.replace(" s", "", 1)}
            if row.seconds[phase]:
                said: dict[str, Any] = {"words": "{phase} {seconds} s", "figures": figures}
                marks.append(Bar(place, start, end, phase, colours[phase], name=name, row=row, **said))
            if end - start > (0.07 if close else 0.085) * longest:
                middle = (start + end) / 2
                marks.append(Text(place, text, middle, size=6.5 if close else 7.5, colour=inks[phase], centred=True))
            start = end
        if not shares:
            marks.append(Text(place, total, start, 4, 8.5))
    if shares:
        axis = Axis("share of the total (seconds in the bars)", 0, 1, log=False, unit="share")
        return Panel("phases", "", axis, labels, marks, named=False, view="shares of the total")
    return Panel("phases", "", Axis("seconds", 0, 1.16 * longest, log=False), labels, marks, view="seconds")


def outcome(row: Row, place: int, letters: int = 90, lines: int = 2, x: float = 0.0) -> Text:
    """What became of a row that has no time, in its line."""
    wrong = row.status == "mismatch"
    text = f"≠ {divergence_text(row, 16)}" if wrong else failure_text(row)
    wrapped = "\n".join(textwrap.wrap(text, letters, max_lines=lines, placeholder=" …"))
    return Text(
        place,
        wrapped,
        x,
        size=8 if lines > 1 else 7,
        colour=WRONG if wrong else FAINT,
        outcome=True,
        row=row,
        words="{outcome}",
        figures={"outcome": failure_text(row)},
    )


def totals_with_runs(rows: Sequence[Row], labels: Sequence[str]) -> Panel:
    """The totals of a page: as bars, with the single runs, and in words what has no figure."""
    panel = totals_panel(rows, labels)
    marks = [mark for mark in panel.marks if mark.row is None or mark.row.status in ("ok", "extrapolated")]
    marks = [*_bars_to(marks, panel.x.low), *marks]
    drawn = {id(mark.row) for mark in marks}
    for place, row in enumerate(rows):
        if len(row.samples) > 1:
            seconds = some_of([sample.wall_seconds for sample in row.samples])
            marks.append(Dots(seconds, place, row_look(row).colour, row=row))
        elif id(row) not in drawn:
            marks.append(outcome(row, place))
    return Panel(panel.name, panel.title, panel.x, labels, marks)


def some_of(seconds: Sequence[float]) -> Sequence[float]:
    """All of them, or of very many so many that stand for them: from the shortest to the longest, evenly.

    >>> some_of([3.0, 1.0]), some_of(range(10_000))[:3], some_of(range(10_000))[-1]
    ([3.0, 1.0], [0, 33, 67], 9999)
    """
    if len(seconds) <= MOST_RUNS:
        return seconds
    ordered, last = sorted(seconds), len(seconds) - 1
    return [ordered[round(place * last / (MOST_RUNS - 1))] for place in range(MOST_RUNS)]


def _bars_to(marks: Sequence[Mark], low: float) -> Iterator[Bar]:
    """A bar in the row's colour from the edge to each measured point."""
    for mark in marks:
        if isinstance(mark, Point) and mark.form in PROVED:
            yield Bar(mark.y, low, mark.x, "", mark.look.colour, row=mark.row)


def _texts(rows: Sequence[Row]) -> list[tuple[str, dict[str, str]]]:
    """Each row's total with its marks, and its phases, written as the table writes them."""
    decimals, written = decimals_of(rows), []
    for row in rows:
        total, parts = seconds_texts(list(row.seconds.values()), decimals)
        signs = "" if row.confirmed else UNCONFIRMED
        written.append((f"{total} s{signs}", dict(zip(row.seconds, parts, strict=True))))
    return written


def ladder(rows: Sequence[Row], request: Request) -> Chart:
    """A panel for each question, its rungs from above in the order of the registry, variants that it lacks below."""
    groups = [_rungs(group, request) for group in grouped(rows)]
    groups = [group for group in groups if group]
    spoken = SPOKEN[request.seconds]
    if not groups:
        raise lacking(f"ladder: no row has {spoken.lower()}; python -m harness measures some")
    drawn = [row for group in groups for row in group]
    notes = ["×N: N times as fast as the rung above; ÷N: N times as slow; ≈: too close for single runs to tell."]
    left_out = dict.fromkeys(row.name for row in rows if row.status == "ok" and not _rungs([row], request))
    if left_out and any(by_itself(row) for row in rows):
        notes.append(f"Not drawn, because they do not separate training from counting: {', '.join(left_out)}.")
    return Chart(
        request.title or f"The ladder: {spoken.lower()}, and each rung's gain over the one before",
        caption(rows),
        [*notes, *bars_explained(drawn), EXPLAINED[request.seconds], *failures(rows, drawn)],
        [_ladder_panel(str(place), group, groups, request) for place, group in enumerate(groups)],
        form_key(value_of(row, request.seconds) for row in drawn),
        widths=(1.0,) if len(groups) == 1 else (1.0, 1.0),
        step=0.27 if max(map(len, groups)) <= 16 else 0.165,
    )


def _rungs(group: Sequence[Row], request: Request) -> list[Row]:
    """The rows that have a rung: what never ran has none, nor has what does not tell training from counting."""
    order = {name: place for place, name in enumerate(registry.variants())}
    rungs = [row for row in group if value_of(row, request.seconds).form != NOTHING]
    return sorted(rungs, key=lambda row: order.get(row.name, len(order)))


def _ladder_panel(name: str, group: Sequence[Row], groups: Sequence[Sequence[Row]], request: Request) -> Panel:
    values = [value_of(row, request.seconds) for row in group]
    low, high = log_range([number for value in values for number in value.numbers])
    high *= (high / low) ** (0.09 * len(groups[:2]))  # room for the gain at the right of the slowest
    axis = Axis(f"{request.seconds}, seconds", low, high)
    return Panel(
        name, panel_title(group, groups), axis, Legend(group).short_labels(), [*_steps(name, group, values, low)]
    )


def _steps(panel: str, group: Sequence[Row], values: Sequence[Value], low: float) -> Iterator[Mark]:
    """Every rung as a point, with a step to it from the last one that is no estimate, and its gain."""
    close = len(group) > 16
    previous: tuple[int, float, bool] | None = None
    for place, (row, value) in enumerate(zip(group, values, strict=True)):
        name, number = f"{panel}-{place}", value.number
        yield point_of(row, value, name, low if number is None else number, place, size=5 if close else 6)
        if number is None:
            continue
        measured = value.form in PROVED
        if previous is not None:
            corners = [(previous[1], previous[0]), (previous[1], place), (number, place)]
            dash = "solid" if measured else "dotted"
            yield Line(corners, FAINT, 0.7, dash, name=f"step-{name}")
            text = gain_text(previous[1], value, previous[2])
            x, colour = max(value.high or number, previous[1]), INK if text.startswith("×") else FAINT
            yield Text(place, text, x, 6, 6.5 if close else 8, colour)
        previous = (place, number, not measured) if measured or previous is None else previous


def gain_text(before: float, value: Value, estimated: bool = False) -> str:
    """How many times as fast as the one before; `>` where only a bound is known.

    >>> [gain_text(before, Value("measured", after)) for before, after in ((2.0, 1.0), (1.0, 1.5), (1.0, 1.04))]
    ['×2.00', '÷1.50', '≈']
    >>> gain_text(1.0, Value("at least", 20.0))
    '÷20.0 or more'
    """
    assert value.number is not None
    if value.form == AT_LEAST:
        return f"÷{ratio_text(value.number / before)} or more" if value.number > before else ""
    sign = "~" if estimated or value.form == ESTIMATED else ""
    ratio = before / value.number
    if 1 / (1 + ONE_RUN_CANNOT_TELL) <= ratio <= 1 + ONE_RUN_CANNOT_TELL:
        return "≈"
    return f"×{sign}{ratio_text(ratio)}" if ratio > 1 else f"÷{sign}{ratio_text(1 / ratio)}"
