"""A chart as plain data, its colours, and one function from rows to a chart for each kind: race,
phases, ladder, dots.

A chart is panels with marks and the words around them; drawing.py draws it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import counted_text, ratio_text, seconds_text
from harness.results.fields import together
from harness.results.legend import Legend, doubtful, failures, join_names
from harness.results.rows import (
    AT_LEAST,
    ESTIMATED,
    MEASURED,
    Row,
    Time,
    is_slower,
    phases_of,
    ratio_of,
    times_of,
)
from harness.results.selection import one_task, panel_title, tasks_of

CARD, INK, FAINT, LINE = "#ffffff", "#1f2328", "#59636e", "#d8dee4"
OURS, OTHERS = "#267141", "#aab2bb"
PHASES = {
    "read": "#cc79a7",
    "count": "#56b4e9",
    "convert": "#f0e442",
    "init": "#009e73",
    "copy": "#e69f00",
    "max": "#d55e00",
    "update": "#0072b2",
    "other": "#444444",
}
"""Okabe and Ito's and a dark grey, which differ with any colour vision."""
HUES = (
    # grey, brown, green, blue, dark green, violet
    *("#5c6470", "#582700", "#349c78", "#5e88e9", OURS, "#7018ac"),
    # orange, pink, olive, wine, purple, indigo
    *("#e2420e", "#fb31b4", "#7d8112", "#681127", "#890483", "#6c68fc"),
)
"""Chosen by search: any two are far apart for every kind of colour vision."""
MARKERS = "os^DvP*<>phd8"
"""matplotlib's, in the order in which they are taken. No slanting cross: it would look like a
mistake.
"""


class Look(NamedTuple):
    """The colour and the marker of a variant or a counter."""

    colour: str
    marker: str = "o"


def look_of(name: str) -> Look:
    """The same look in every chart: by the place in the registry, or else by the digest of the
    name.
    """
    place = _places().get(name)
    if place is None:
        place = int(hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:12], 16)
    return Look(
        HUES[place % len(HUES)], MARKERS[(place // len(HUES) + place % len(HUES)) % len(MARKERS)]
    )


@functools.cache
def _places() -> dict[str, int]:
    counters = {name: 3 + place for place, name in enumerate(registry.counters())}
    return {**counters, **{name: place for place, name in enumerate(registry.variants())}}


class Axis(NamedTuple):
    """Numbers from `low` to `high`, which may be bytes."""

    title: str
    low: float
    high: float
    log: bool = False
    bytes: bool = False


class Bar(NamedTuple):
    """Part of a bar on line `y`; an `open` one has an outline only: its length was not measured."""

    y: float
    start: float
    end: float
    colour: str
    hover: str
    open: bool = False


class Point(NamedTuple):
    """A time of something, as sure as its form says, with a line between its ends, along y if
    `upright`.
    """

    x: float
    y: float
    look: Look
    name: str
    time: Time
    upright: bool = False


class Line(NamedTuple):
    """Straight from point to point, or in `steps`; the dash is one of matplotlib's."""

    points: Sequence[tuple[float, float]]
    colour: str
    dash: str = "-"
    steps: bool = False


class Text(NamedTuple):
    """A text on a line, `offset` points to the right of x."""

    y: float
    text: str
    x: float
    offset: float = 5.0
    colour: str = INK
    style: str = "normal"
    weight: str = "normal"


class Label(NamedTuple):
    """The name of a point, beside it, or of a `series`, at the right of the panel."""

    x: float
    y: float
    text: str
    series: bool = False
    colour: str = FAINT


Mark = Bar | Point | Line | Text | Label


class Panel(NamedTuple):
    """Axes with marks; `y` is an axis, or the names of lines from above, some of them `bold`."""

    x: Axis
    y: Axis | Sequence[str]
    marks: Sequence[Mark]
    title: str = ""
    bold: Sequence[int] = ()


class Entry(NamedTuple):
    """A line of the key: a marker, or an area without one."""

    text: str
    colour: str
    marker: str | None = None


class Chart(NamedTuple):
    """Panels below a title, a caption and a key, above notes; `step` is the inches of a line,
    `margin` at the right.
    """

    title: str
    caption: Sequence[str]
    notes: Sequence[str]
    panels: Sequence[Panel]
    key: Sequence[Entry] = ()
    step: float = 0.31
    height: float = 3.4
    margin: float = 0.1


# The kinds


def race(rows: Sequence[Row]) -> Chart:
    """Total seconds of each trainer on a linear axis, from the fastest down, times the fastest."""
    trainers, drawn = _ranked(rows, "race", without=("tie_break",))
    first = next((row for row in drawn if not row.doubt), drawn[0])
    ours = [place for place, row in enumerate(drawn) if is_ours(row.name)][:1]
    factors = [
        "" if row is first else f", {times_of(ratio_of(row, first), interval=False)}"
        for row in drawn
    ]
    legend = Legend(drawn)
    return Chart(
        claim(drawn),
        legend.caption(),
        [*_marks_notes(drawn, "Dashed"), *doubtful(legend), *failures(Legend(trainers), drawn)],
        [_bars(drawn, factors, "", ours)],
    )


def phases(rows: Sequence[Row]) -> Chart:
    """Seconds stacked by phase on a linear axis, the total at each bar; a panel for each task."""
    alone = len({row.configured for row in rows}) == 1
    groups = [rows] if alone else tasks_of(rows)
    legend = Legend(rows)
    plain = "Counting words" if all(row.counting_only for row in rows) else "Where the time goes"
    return Chart(
        claim(rows) or plain,
        legend.caption(len(groups)),
        [*failures(legend), *doubtful(legend)],
        panels_of(groups, _phases_panel),
        [Entry(phase, PHASES[phase]) for phase in phases_of(rows)],
    )


def _phases_panel(group: Sequence[Row], title: str) -> Panel:
    marks, labelled = list[Mark](), Legend(group).labelled()
    for place, (row, label) in enumerate(labelled):
        start = 0.0
        for phase, seconds in row.seconds.items():
            hover = f"{label}: {phase} {seconds_text(seconds)} of {row.time.text}"
            marks.append(Bar(place, start, start + seconds, PHASES[phase], hover))
            start += seconds
        if row.total is None:
            marks.append(_outcome(place, row))
        else:
            marks.append(Text(place, row.time.text + row.doubt, start, weight="bold"))
    longest = max((row.total for row in group if row.total), default=1.0)
    return Panel(Axis("seconds", 0, 1.2 * longest), [label for _, label in labelled], marks, title)


def ladder(rows: Sequence[Row]) -> Chart:
    """Seconds of every stage in the order in which they were invented, with the gain over the stage
    before.
    """
    order = {name: place for place, name in enumerate(registry.variants())}
    stages = [row for row in rows if not row.counting_only and is_ours(row.name)]
    stages.sort(key=lambda row: order.get(row.name, len(order)))
    groups = [
        group for group in tasks_of(stages) if any(row.time.form == MEASURED for row in group)
    ]
    if not groups:
        raise Refusal(
            "ladder: no stage has a time; python -m harness experiment=ladder measures them",
            UNMEASURED,
        )
    legend = Legend(stages)
    return Chart(
        "Seconds of each stage",
        legend.caption(len(groups)),
        ["N ×: as fast as the stage above.", *failures(legend, stages), *doubtful(legend)],
        panels_of(groups, _ladder_panel),
    )


def _ladder_panel(stages: Sequence[Row], title: str) -> Panel:
    gains = [
        f", {ratio_text(_seconds(before) / _seconds(row))} ×"
        if _seconds(before) and _seconds(row)
        else ""
        for before, row in itertools.pairwise(stages)
    ]
    return _bars(stages, ["", *gains], title, range(len(stages)), "normal")


def _bars(
    rows: Sequence[Row], after: Sequence[str], title: str, ours: Sequence[int], weight: str = "bold"
) -> Panel:
    """A bar for each row; those that were stopped are dashed, and not much longer than the longest
    measured one.
    """
    longest = max(_seconds(row) for row in rows if row.time.form == MEASURED)
    marks: list[Mark] = []
    labels = Legend(rows).labels
    for place, (row, label, text) in enumerate(zip(rows, labels, after, strict=True)):
        time, end = row.time, min(_seconds(row), 1.12 * longest)
        if time.number is None:
            marks.append(_outcome(place, row))
            continue
        colour = OURS if place in ours else OTHERS
        marks.append(Bar(place, 0.0, end, colour, f"{label}: {time.text}", time.form != MEASURED))
        marks.append(
            Text(
                place,
                f"{time.text}{row.mark}{text}",
                end,
                weight=weight if place in ours else "normal",
            )
        )
    bold = ours if weight == "bold" else ()
    return Panel(Axis("seconds", 0, 1.45 * longest), labels, marks, title, bold)


def dots(rows: Sequence[Row]) -> Chart:
    """Total seconds of each trainer as dots on a log axis, from the fastest down, times the fastest
    of ours.
    """
    trainers, drawn = _ranked(rows, "dots", without=("tie_break", "counting"))
    widths = sorted({row.threads for row in drawn})
    by_name = together([(row.name, row) for row in sorted(drawn, key=lambda row: bool(row.doubt))])
    firsts = [min(own, key=lambda row: row.threads) for own in by_name.values()]
    base = next((row for row in firsts if is_ours(row.name)), firsts[0])
    marks, ours = list[Mark](), [place for place, name in enumerate(by_name) if is_ours(name)]
    for place, (first, own) in enumerate(zip(firsts, by_name.values(), strict=True)):
        colour, weight = (OURS, "bold") if place in ours else (FAINT, "normal")
        for row in own:
            look, name = (
                Look(colour, _marker(row.threads)),
                f"{row.name}, {counted_text(row.threads, 'thread')}",
            )
            marks.append(Point(_seconds(row), place, look, name, row.time))
        far = max(number for row in own for number in row.time[1:4] if number is not None)
        text = base.time.text if first is base else times_of(ratio_of(first, base), interval=False)
        marks.append(Text(place, text + first.mark, far, 8, weight=weight))
    legend = Legend(trainers)
    low, high = log_range([number for row in drawn for number in row.time[1:4]], 1.3, 1.1)
    return Chart(
        claim([row for row in drawn if row.threads == widths[0]]),
        Legend(drawn).caption(),
        [*_marks_notes(drawn, "Ring"), *doubtful(legend), *failures(legend, drawn)],
        [Panel(Axis("seconds", low, high, log=True), list(by_name), marks, bold=ours)],
        [
            Entry(counted_text(width, "thread"), INK, _marker(width))
            for width in widths
            if widths[1:]
        ],
        step=0.28,
        margin=0.75,
    )


def _marker(threads: int) -> str:
    return "o" if threads == 1 else "D"


# What the kinds have in common


def claim(rows: Sequence[Row]) -> str:
    """The result, such as "flat: 0.0102 s, 44 times as fast as heap"; empty without a time, or for
    several tasks.
    """
    timed = [pair for pair in Legend(rows).labelled() if pair[0].total and not pair[0].other_merges]
    timed.sort(key=lambda pair: _seconds(pair[0]))
    ranked = [pair for pair in timed if not pair[0].doubt] or timed
    if not ranked or len({row.question for row in rows}) > 1:
        return ""
    (first, name), *others = ranked
    slower = [pair for pair in others if is_slower(pair[0], first)]
    tied = [label for row, label in others if (row, label) not in slower]
    text = f"{name}: {first.time.text}"
    if tied:
        text += f", tied with {join_names(tied[:2])}"
    for row, label in [*slower[:1], *slower[1:][-1:]]:
        text += f", {times_of(ratio_of(row, first), '', interval=False)} times as fast as {label}"
    return text


def is_ours(name: str) -> bool:
    """Whether a trainer is of this project, or of its user, and not an outside one."""
    card = registry.variants().get(name)
    return card is None or registry.OUTSIDE not in card.tags


def panels_of(
    groups: Sequence[Sequence[Row]], panel_of: Callable[[Sequence[Row], str], Panel]
) -> list[Panel]:
    """A panel for each group, with a title if there are several."""
    return [
        panel_of(group, panel_title(group, groups) if len(groups) > 1 else "") for group in groups
    ]


def log_range(
    values: Sequence[float | None], left: float = 1.3, right: float = 1.3
) -> tuple[float, float]:
    """From a little below the smallest known value to a little above the largest."""
    positive = [value for value in values if value] or [1.0]
    return min(positive) / left, max(positive) * right


def _ranked(rows: Sequence[Row], kind: str, without: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """The trainers of one task, and those with a total or an estimate, from the fastest down.

    Raises Refusal if they are of several tasks, or none finished.
    """
    trainers = one_task(rows, kind, without)
    drawn = sorted([row for row in trainers if row.time.number is not None], key=_seconds)
    if not any(row.time.form == MEASURED for row in drawn):
        raise Refusal(
            f"{kind}: no trainer has a total; python -m harness measures some", UNMEASURED
        )
    return trainers, drawn


def _seconds(row: Row) -> float:
    return row.time.number or 0.0


def _outcome(place: int, row: Row) -> Text:
    """What is drawn in place of a time: its estimate, or what happened."""
    text = f"{row.time.text} (stopped)" if row.time.text else row.proof
    return Text(place, text, 0.0, colour=FAINT, style="italic")


def _marks_notes(drawn: Sequence[Row], estimated: str) -> list[str]:
    """What the marks mean, of those that are drawn."""
    forms = {row.time.form for row in drawn}
    notes = {
        f"{estimated}: stopped, total estimated.": ESTIMATED in forms,
        "> or arrow: it takes longer.": AT_LEAST in forms,
        "* It makes other merges, on purpose.": any(row.by_design for row in drawn),
    }
    return [note for note, is_needed in notes.items() if is_needed]
