"""The kinds of chart: bars by phase, a race, dots of many texts, and lines over a size.

Each is a function from rows to a figure of matplotlib, which raises Refusal if the rows lack what
it takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.units import counted_text, seconds_text
from harness.results.canvas import (
    FAINT,
    INK,
    MARKERS,
    Look,
    Words,
    chart,
    draw_time,
    end_of,
    hover,
    key_entry,
    lines_height,
    look_of,
    name_lines,
    new_axes,
    new_figure,
    scale,
    scale_times,
    write_at,
)
from harness.results.claim import claim, is_ours
from harness.results.legend import caption_of, labelled, labels_of
from harness.results.lines import CORPUS, THREADS, VOCABULARY, over
from harness.results.notes import notes
from harness.results.ratios import against, clock_note, ratio_of
from harness.results.rows import AT_LEAST, ESTIMATED, MEASURED, Row, phases_of
from harness.results.selection import one_task, panel_title, tasks_of
from harness.results.writing import (
    TOTAL,
    Value,
    mark_of,
    proof_text,
    time_text,
    times_text,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PHASE_COLOURS = {
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
WIDEST_RANGE = 30
"""Of lengths that differ by more than this factor the short ones cannot be seen: times go on a log
axis, as dots, since a bar on a log axis is as long as its axis makes it.
"""


MEASURE_SOME = "python -m harness measures some"


# Bars by phase


@chart
def phases(rows: Sequence[Row], words: Words | None = None) -> Figure:
    """Seconds stacked by phase, the total at each bar; a panel for each task."""
    one_variant = len({row.configured for row in rows}) == 1
    tasks = [list(rows)] if one_variant else tasks_of(rows)
    if words is None:
        counting_only = all(row.counting_only for row in rows)
        title = claim(rows) or ("Counting words" if counting_only else "Where the time goes")
        below = [*notes(rows), *clock_note(against(rows))]
        words = Words(title, caption_of(rows, panels=len(tasks)), below)
    heights = [lines_height(labels_of(task)) for task in tasks]
    figure, places = new_figure(words, heights, _phase_key(rows))

    for task, place in zip(tasks, places, strict=True):
        title = panel_title(task, tasks) if len(tasks) > 1 else ""
        totals = [row.total for row in task if row.total]
        if totals and max(totals) > WIDEST_RANGE * min(totals):
            halves = place.subgridspec(1, 2, width_ratios=(3, 2), wspace=0.02)
            _totals(new_axes(figure, halves[0, 0], title), task)
            _phase_bars(new_axes(figure, halves[0, 1]), task, as_shares=True)
        else:
            _phase_bars(new_axes(figure, place, title), task)
    return figure


def _phase_key(rows: Sequence[Row]) -> list[Artist]:
    from matplotlib.patches import Patch

    return [Patch(color=PHASE_COLOURS[phase], label=phase) for phase in phases_of(rows)]


def _phase_bars(axes: Axes, task: Sequence[Row], as_shares: bool = False) -> None:
    """A bar for each row; `as_shares` all are of one length, and their totals stand elsewhere."""
    pairs = labelled(task)
    longest = max((row.total for row in task if row.total), default=1.0)
    name_lines(axes, ["" if as_shares else label for _, label in pairs])
    if as_shares:
        scale(axes, "x", [100.0], "% of the time", is_log=False)
    else:
        scale(axes, "x", [longest], "seconds", is_log=False)

    for index, (row, label) in enumerate(pairs):
        start = 0.0
        for phase, seconds in row.seconds.items():
            width = 100 * seconds / (row.total or 1.0) if as_shares else seconds
            (bar,) = axes.barh(index, width, 0.68, start, color=PHASE_COLOURS[phase], linewidth=0)
            hover(bar, f"{label}: {phase} {seconds_text(seconds)} of {time_text(row.time)}")
            start += width
        if not as_shares:
            _write_total(axes, index, row, start)


def _totals(axes: Axes, task: Sequence[Row]) -> None:
    """A dot for the total of each row on a log axis."""
    pairs = labelled(task)
    name_lines(axes, [label for _, label in pairs])
    scale_times(axes, "x", [row.time for row in task], TOTAL)
    for index, (row, label) in enumerate(pairs):
        if row.time.number is not None:
            text = f"{label}: {time_text(row.time)}"
            draw_time(axes, index, row.time, look_of(row.name), text)
        _write_total(axes, index, row, end_of(row.time) or axes.get_xlim()[0])


def _write_total(axes: Axes, index: int, row: Row, x: float) -> None:
    """The total, or what happened in place of one."""
    if row.total is not None:
        write_at(axes, x, index, time_text(row.time) + mark_of(row), weight="bold")
    else:
        text = f"{time_text(row.time)} (stopped)" if row.time.number else proof_text(row)
        write_at(axes, x, index, text, color=FAINT, style="italic")


# A race


@chart
def race(rows: Sequence[Row]) -> Figure:
    """Total seconds of each trainer, from the fastest down, times the fastest."""
    trainers = one_task(rows, "race", without=("tie_break",))
    drawn = sorted([row for row in trainers if row.time.number is not None], key=_seconds)
    measured = [row for row in drawn if row.time.form == MEASURED]
    if not measured:
        raise Refusal(f"race: no trainer has a total; {MEASURE_SOME}", UNMEASURED)

    first = next((row for row in measured if not row.doubtful), measured[0])
    labels = labels_of(drawn)
    is_log = _seconds(drawn[-1]) > WIDEST_RANGE * _seconds(drawn[0])
    meanings = _meanings(drawn, estimated="Hollow" if is_log else "Dashed")
    below = [*meanings, *notes(trainers, drawn), *clock_note(against(drawn))]
    words = Words(claim(drawn), caption_of(drawn), below)
    figure, (place,) = new_figure(words, [lines_height(labels)])
    axes = new_axes(figure, place)
    name_lines(axes, labels)

    if is_log:
        scale_times(axes, "x", [row.time for row in drawn], TOTAL)
    else:
        scale(axes, "x", [_seconds(row) for row in drawn], "seconds", is_log=False)
    for index, (row, label) in enumerate(zip(drawn, labels, strict=True)):
        text = f"{label}: {time_text(row.time)}"
        if is_log:
            look = look_of(row.name)
            axes.hlines(index, axes.get_xlim()[0], _seconds(row), color=look.colour, linewidth=1.2)
            draw_time(axes, index, row.time, look, text)
        else:
            hover(_race_bar(axes, index, row), text)
        _write_result(axes, index, row, first, is_log)
    return figure


def _race_bar(axes: Axes, index: int, row: Row) -> Artist:
    """A bar; one whose length was not measured has an outline only."""
    style: dict[str, Any] = {"color": look_of(row.name).colour, "linewidth": 0}
    if row.time.form != MEASURED:
        style = {"fill": False, "edgecolor": style["color"], "linestyle": (0, (3, 2))}
    return axes.barh(index, _seconds(row), 0.68, **style).patches[0]


def _write_result(axes: Axes, index: int, row: Row, first: Row, is_log: bool) -> None:
    """The time and how many times the first one's it is; ours are bold."""
    text = time_text(row.time) + mark_of(row)
    if row is not first:
        text += f", {times_text(ratio_of(row, first), interval=False)}"
    weight = "bold" if is_ours(row.name) else "normal"
    write_at(axes, end_of(row.time) if is_log else _seconds(row), index, text, weight=weight)
    axes.get_yticklabels()[index].set_fontweight(weight)


# Dots


class Dot(NamedTuple):
    """A row in a chart of dots: the line that it is on, and what distinguishes it there."""

    line: str
    name: str
    row: Row
    look: Look


@chart
def dots(rows: Sequence[Row], value: Value = TOTAL, words: Words | None = None) -> Figure:
    """Dots on a log axis: of one text a line for each trainer with a dot for each number of
    threads; of several texts a line for each, or for each trainer if there are more of these.
    """
    trainers = [row for row in rows if not row.counting_only]
    drawn = [row for row in trainers if value.of(row).number is not None]
    if not any(value.of(row).form == MEASURED for row in drawn):
        raise Refusal(f"dots: no trainer has a {value.name}; {MEASURE_SOME}", UNMEASURED)

    texts = tasks_of(drawn, without=("tie_break", "counting"))
    if len(texts) == 1:
        title = claim([row for row in drawn if row.threads == min(row.threads for row in drawn)])
        found, ends = _dots_by_threads(drawn), _ratios_by_name(drawn)
    else:
        title = _winner(texts)
        found, ends = _dots_by_text(texts), {}
    if value is not TOTAL:
        title, ends = value.title, {}

    if words is None:
        caption = caption_of(drawn, panels=len(texts))
        below = [*_meanings(drawn, value), *notes(trainers, drawn)]
        words = Words(title, caption, below + (clock_note(against(drawn)) if ends else []))
    return _draw_dots(words, found, value, ends)


def _dots_by_threads(drawn: Sequence[Row]) -> list[Dot]:
    """Trainers from the fastest down, those whose merges nobody has proved last."""
    found = []
    for row in sorted(drawn, key=lambda row: (row.doubtful, _seconds(row))):
        look = Look(look_of(row.name).colour, "o" if row.threads == 1 else "D")
        found.append(Dot(row.name, counted_text(row.threads, "thread"), row, look))
    return found


def _dots_by_text(texts: Sequence[Sequence[Row]]) -> list[Dot]:
    """Texts as lines in the order of their fastest times, or trainers in that of the rows."""
    trainers = {row.name for text in texts for row in text}
    by_trainer = len(trainers) > len(texts)
    if not by_trainer:
        texts = sorted(texts, key=lambda text: min(_seconds(row) for row in text))
    found = []
    for index, text in enumerate(texts):
        title = panel_title(text, texts)
        for row in text:
            look = look_of(row.name)
            if by_trainer:
                marker = MARKERS[index % len(MARKERS)]
                found.append(Dot(row.name, title, row, Look(look.colour, marker)))
            else:
                found.append(Dot(title, row.name, row, look))
    return found


def _ratios_by_name(drawn: Sequence[Row]) -> dict[str, tuple[Row, str]]:
    """Each trainer's row on the fewest threads, and how many times the time of ours it takes."""
    firsts: dict[str, Row] = {}
    for row in sorted(drawn, key=lambda row: (row.threads, row.doubtful)):
        firsts.setdefault(row.name, row)
    fastest = sorted(firsts.values(), key=lambda row: (row.doubtful, _seconds(row)))
    base = next((row for row in fastest if is_ours(row.name)), fastest[0])

    ends = {}
    for name, row in firsts.items():
        text = time_text(row.time)
        if row is not base:
            text = times_text(ratio_of(row, base), interval=False)
        ends[name] = (row, text + mark_of(row))
    return ends


def _draw_dots(
    words: Words, found: Sequence[Dot], value: Value, ends: Mapping[str, tuple[Row, str]]
) -> Figure:
    lines = list(dict.fromkeys(dot.line for dot in found))
    figure, (place,) = new_figure(words, [lines_height(lines, 0.27)], _dots_key(found))
    axes = new_axes(figure, place)
    name_lines(axes, lines)
    scale_times(axes, "x", [value.of(dot.row) for dot in found], value)

    farthest = dict.fromkeys(lines, 0.0)
    for dot in found:
        time = value.of(dot.row)
        text = f"{dot.line}, {dot.name}: {value.text(dot.row)}"
        draw_time(axes, lines.index(dot.line), time, dot.look, text)
        farthest[dot.line] = max(farthest[dot.line], end_of(time))
    for index, line in enumerate(lines):
        ours = is_ours(line) and line in ends
        if line in ends:
            weight = "bold" if ours else "normal"
            write_at(axes, farthest[line], index, ends[line][1], weight=weight)
            axes.get_yticklabels()[index].set_fontweight(weight)
    return figure


def _dots_key(found: Sequence[Dot]) -> list[Artist]:
    """What each dot of a line is, if there are several: by its marker, or also by its colour."""
    names: dict[str, set[Look]] = {}
    for dot in sorted(found, key=lambda dot: dot.row.threads):
        names.setdefault(dot.name, set()).add(dot.look)
    if len(names) == 1:
        return []
    key = []
    for name, looks in names.items():
        look = next(iter(looks))
        key.append(key_entry(name, look if len(looks) == 1 else Look(INK, look.marker)))
    return key


def _winner(texts: Sequence[Sequence[Row]]) -> str:
    """Which trainer is first on the most texts."""
    firsts = Counter(min(text, key=_seconds).name for text in texts)
    name, number = firsts.most_common(1)[0]
    return f"{name} is first on {number} of {len(texts)} texts"


# What the kinds have in common


def _seconds(row: Row) -> float:
    return row.time.number or 0.0


def _meanings(drawn: Sequence[Row], value: Value = TOTAL, estimated: str = "Hollow") -> list[str]:
    """What the marks mean, of those that are drawn."""
    forms = {value.of(row).form for row in drawn}
    meanings = []
    if ESTIMATED in forms:
        meanings.append(f"{estimated}: stopped, total estimated.")
    if AT_LEAST in forms:
        meanings.append(">: stopped; it takes longer.")
    if any(row.by_design for row in drawn):
        meanings.append("* It makes other merges, on purpose.")
    return meanings


KINDS: dict[str, tuple[str, Callable[..., Figure]]] = {
    "phases": ("seconds stacked by phase, a bar for each row", phases),
    "race": ("total seconds, sorted; narrow, for a front page", race),
    "dots": ("a dot for each trainer on each text, or for each number of threads", dots),
    "size": ("lines over the size of the corpus, with exponents", partial(over, CORPUS)),
    "vocabulary": ("the same over the size of the vocabulary", partial(over, VOCABULARY)),
    "threads": ("the same over the number of threads, with the gain", partial(over, THREADS)),
}
"""What each kind of chart shows, and its function."""
OF_VALUES = ("dots", "size", "vocabulary", "threads")
"""The kinds that can show another value than the total."""
