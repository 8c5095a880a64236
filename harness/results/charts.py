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
from harness.results.rows import AT_LEAST, ESTIMATED, MEASURED, Row, Time, is_one_variant, phases_of
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


# Bars by phase


@chart
def phases(rows: Sequence[Row], words: Words | None = None) -> Figure:
    """Time stacked by phase, the total at each bar; a panel for each task."""
    tasks = [list(rows)] if is_one_variant(rows) else tasks_of(rows)
    if words is None:
        title = claim(rows) or "Where the time goes"
        below = [*notes(rows), *clock_note(against(rows))]
        words = Words(title, caption_of(rows, panels=len(tasks)), below)
    heights = [lines_height(labels_of(task)) for task in tasks]
    figure, specs = new_figure(words, heights, _phase_key(rows))

    for task, spec in zip(tasks, specs, strict=True):
        title = panel_title(task, tasks) if len(tasks) > 1 else ""
        if _are_far_apart([row for row in task if row.total]):
            halves = spec.subgridspec(1, 2, width_ratios=(3, 2), wspace=0.02)
            _totals(new_axes(figure, halves[0, 0], title), task)
            _phase_bars(new_axes(figure, halves[0, 1]), task, as_shares=True)
        else:
            _phase_bars(new_axes(figure, spec, title), task)
    return figure


def _phase_key(rows: Sequence[Row]) -> list[Artist]:
    from matplotlib.patches import Patch

    return [Patch(color=PHASE_COLOURS[phase], label=phase) for phase in phases_of(rows)]


def _phase_bars(axes: Axes, task: Sequence[Row], as_shares: bool = False) -> None:
    """A bar for each row; `as_shares` all are of one length, and their totals stand elsewhere."""
    pairs = labelled(task)
    if as_shares:
        name_lines(axes, [""] * len(pairs))
        scale(axes, "x", [100.0], "% of the time", is_log=False)
    else:
        name_lines(axes, [label for _, label in pairs])
        scale_times(axes, "x", [Time(MEASURED, row.total) for row in task], TOTAL, is_log=False)

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
    scale_times(axes, "x", [row.time for row in task])
    for index, (row, label) in enumerate(pairs):
        if row.time.number is not None:
            text = f"{label}: {time_text(row.time)}"
            draw_time(axes, index, row.time, look_of(row.name), text)
        _write_total(axes, index, row, end_of(row.time) or axes.get_xlim()[0])


def _write_total(axes: Axes, index: int, row: Row, x: float) -> None:
    """The total, or what happened in spec of one."""
    if row.total is not None:
        write_at(axes, x, index, time_text(row.time) + mark_of(row), weight="bold")
    else:
        text = f"{time_text(row.time)} (stopped)" if row.time.number else proof_text(row)
        write_at(axes, x, index, text, color=FAINT, style="italic")


# Dots


class Dot(NamedTuple):
    """A row in a chart of dots: the line that it is on, and what distinguishes it there."""

    line: str
    name: str
    row: Row
    look: Look


@chart
def race(rows: Sequence[Row]) -> Figure:
    """Total time of each trainer, from the fastest down, times the fastest."""
    trainers = one_task(rows, "race", without=("tie_break",))
    drawn = _measured(trainers, "race", TOTAL)
    drawn.sort(key=_seconds)
    pairs = labelled(drawn)
    found = [Dot(label, "", row, look_of(row.name)) for row, label in pairs]
    ends = _results({label: row for row, label in pairs})

    mark = _lollipop if _are_far_apart(drawn) else _bar
    meanings = _meanings(drawn, TOTAL, "Dashed" if mark is _bar else "Hollow")
    below = [*meanings, *notes(trainers, drawn), *clock_note(against(drawn))]
    words = Words(claim(drawn), caption_of(drawn), below)
    return _draw(words, found, ends, mark)


@chart
def dots(rows: Sequence[Row], value: Value = TOTAL, words: Words | None = None) -> Figure:
    """Dots on a log axis: of one text a line for each trainer with a dot for each number of
    threads; of several texts a line for each, or for each trainer if there are more of these.
    """
    trainers = [row for row in rows if not row.counting_only]
    drawn = _measured(trainers, "dots", value)
    texts = tasks_of(drawn, without=("tie_break", "counting"))
    ends: dict[str, tuple[Row, str]] = {}
    if len(texts) == 1:
        fewest = min(row.threads for row in drawn)
        title = claim([row for row in drawn if row.threads == fewest])
        found = _dots_by_threads(drawn)
        # the row on the fewest threads is the last that gets the name
        fewest_last = sorted(drawn, key=lambda row: -row.threads)
        ends = _results({row.name: row for row in fewest_last})
    else:
        title, found = _winner(texts), _dots_by_text(texts)
    if value is not TOTAL:
        title, ends = value.title, {}

    if words is None:
        caption = caption_of(drawn, panels=len(texts))
        below = [*_meanings(drawn, value), *notes(trainers, drawn)]
        if ends:
            below += clock_note(against(drawn))
        words = Words(title, caption, below)
    return _draw(words, found, ends, _dot, value)


def _dots_by_threads(drawn: Sequence[Row]) -> list[Dot]:
    """Trainers from the fastest down, those whose merges nobody has proved last."""
    found = []
    for row in sorted(drawn, key=lambda row: (row.doubtful, _seconds(row))):
        look = Look(look_of(row.name).colour, "o" if row.threads == 1 else "D")
        found.append(Dot(row.name, counted_text(row.threads, "thread"), row, look))
    return found


def _dots_by_text(texts: Sequence[Sequence[Row]]) -> list[Dot]:
    """Texts as lines in the order of their fastest times, or trainers in that of the rows."""
    by_trainer = len({row.name for text in texts for row in text}) > len(texts)
    if not by_trainer:
        texts = sorted(texts, key=lambda text: min(map(_seconds, text)))

    found = []
    for index, text in enumerate(texts):
        title, marker = panel_title(text, texts), MARKERS[index % len(MARKERS)]
        for row in text:
            look = look_of(row.name)
            if by_trainer:
                found.append(Dot(row.name, title, row, look._replace(marker=marker)))
            else:
                found.append(Dot(title, row.name, row, look))
    return found


def _results(rows: Mapping[str, Row]) -> dict[str, tuple[Row, str]]:
    """The text at the end of each line: its time, and how many times that of the first one."""
    first = min(rows.values(), key=lambda row: (not row.total, row.doubtful, _seconds(row)))
    results = {}
    for line, row in rows.items():
        text = time_text(row.time) + mark_of(row)
        if row is not first:
            text += f", {times_text(ratio_of(row, first), interval=False)}"
        results[line] = row, text
    return results


def _draw(
    words: Words,
    found: Sequence[Dot],
    ends: Mapping[str, tuple[Row, str]],
    mark: Callable[[Axes, int, Dot, Value], float],
    value: Value = TOTAL,
) -> Figure:
    """The lines with their marks, and at the end of a line its text; ours are bold."""
    lines = list(dict.fromkeys(dot.line for dot in found))
    figure, (spec,) = new_figure(words, [lines_height(lines)], _dots_key(found))
    axes = new_axes(figure, spec)
    name_lines(axes, lines)
    times = [value.of(dot.row) for dot in found]
    scale_times(axes, "x", times, value, is_log=mark is not _bar)

    farthest = [0.0] * len(lines)
    for dot in found:
        index = lines.index(dot.line)
        farthest[index] = max(farthest[index], mark(axes, index, dot, value))
    for index, line in enumerate(lines):
        if line in ends:
            row, text = ends[line]
            weight = "bold" if is_ours(row.name) else "normal"
            write_at(axes, farthest[index], index, text, weight=weight)
            axes.get_yticklabels()[index].set_fontweight(weight)
    return figure


def _dot(axes: Axes, index: int, dot: Dot, value: Value) -> float:
    """Draw a marker; return where its mark ends."""
    name = f"{dot.line}, {dot.name}" if dot.name else dot.line
    time = value.of(dot.row)
    draw_time(axes, index, time, dot.look, f"{name}: {value.text(dot.row)}")
    return end_of(time)


def _lollipop(axes: Axes, index: int, dot: Dot, value: Value) -> float:
    """The same with a line from the edge."""
    edge, seconds = axes.get_xlim()[0], value.of(dot.row).number or 0.0
    axes.hlines(index, edge, seconds, color=dot.look.colour, linewidth=1.2)
    return _dot(axes, index, dot, value)


def _bar(axes: Axes, index: int, dot: Dot, value: Value) -> float:
    """A bar; one whose length was not measured has an outline only."""
    time = value.of(dot.row)
    style: dict[str, Any] = {"color": dot.look.colour, "linewidth": 0}
    if time.form != MEASURED:
        style = {"fill": False, "edgecolor": dot.look.colour, "linestyle": (0, (3, 2))}
    (bar,) = axes.barh(index, time.number or 0.0, 0.68, **style)
    hover(bar, f"{dot.line}: {value.text(dot.row)}")
    return time.number or 0.0


def _dots_key(found: Sequence[Dot]) -> list[Artist]:
    """Return a key that names the dots of a line, if there are several: by marker, or also by
    colour.
    """
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
    """Return the trainer that is first on the most texts, in a sentence."""
    firsts = Counter(min(text, key=_seconds).name for text in texts)
    name, number = firsts.most_common(1)[0]
    return f"{name} is first on {number} of {len(texts)} texts"


# What the kinds have in common


def _seconds(row: Row) -> float:
    return row.time.number or 0.0


def _measured(trainers: Sequence[Row], kind: str, value: Value) -> list[Row]:
    """The rows that can be drawn. Raises Refusal if all of these are estimates."""
    drawn = [row for row in trainers if value.of(row).number is not None]
    if not any(value.of(row).form == MEASURED for row in drawn):
        advice = "python -m harness measures some"
        raise Refusal(f"{kind}: no trainer has a {value.name}; {advice}", UNMEASURED)
    return drawn


def _are_far_apart(rows: Sequence[Row]) -> bool:
    """Return whether bars of these times would hide the short ones."""
    seconds = [_seconds(row) for row in rows] or [1.0]
    return max(seconds) > WIDEST_RANGE * min(seconds)


def _meanings(drawn: Sequence[Row], value: Value, estimated: str = "Hollow") -> list[str]:
    """Explain the marks that are drawn."""
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
    "phases": ("time stacked by phase, a bar for each row", phases),
    "race": ("total times, sorted; narrow, for a front page", race),
    "dots": ("a dot for each trainer on each text, or for each number of threads", dots),
    "size": ("lines over the size of the corpus, with exponents", partial(over, CORPUS)),
    "vocabulary": ("the same over the size of the vocabulary", partial(over, VOCABULARY)),
    "threads": ("the same over the number of threads, with the gain", partial(over, THREADS)),
}
"""What each kind of chart shows, and its function."""
OF_VALUES = ("dots", "size", "vocabulary", "threads")
"""The kinds that can show another value than the total."""
