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
    LINE,
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
from harness.results.profile import profile
from harness.results.ratios import against, clock_note, leader, ratio_of
from harness.results.rows import AT_LEAST, MEASURED, Row, Time, is_one_variant, phases_of
from harness.results.selection import one_task, panel_title, tasks_of
from harness.results.writing import (
    TOTAL,
    Value,
    figure_text,
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

    # all panels are of one kind, so that they share their margins
    is_log = any(_are_far_apart([row for row in task if row.total]) for task in tasks)
    for task, spec in zip(tasks, specs, strict=True):
        title = panel_title(task, tasks) if len(tasks) > 1 else ""
        if is_log:
            halves = spec.subgridspec(1, 2, width_ratios=(3, 2), wspace=0.02)
            _draw_dots(new_axes(figure, halves[0, 0], title), _one_each(task), _totals(task))
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
        _write_ends(axes, [row.total or 0.0 for row in task], _totals(task))


def _totals(task: Sequence[Row]) -> list[EndText]:
    """At the end of each line the total, or what happened in place of one."""
    ends = []
    for row in task:
        if row.total is not None:
            ends.append(EndText(time_text(row.time) + mark_of(row), {"weight": "bold"}))
        else:
            text = f"{time_text(row.time)} (stopped)" if row.time.number else proof_text(row)
            ends.append(EndText(text, {"color": FAINT, "style": "italic"}))
    return ends


# Dots


class Dot(NamedTuple):
    """A row in a chart of dots: the line that it is on, and what distinguishes it there."""

    line: str
    name: str
    row: Row
    look: Look


class EndText(NamedTuple):
    """What is written at the end of a line, and how; and how its name is written."""

    text: str
    style: Mapping[str, Any]
    weight_of_name: str = "normal"


@chart
def race(rows: Sequence[Row]) -> Figure:
    """Total time of each trainer, from the fastest down, times the fastest."""
    trainers = one_task(rows, "race", without=("tie_break",))
    drawn = _measured(trainers, "race", TOTAL)
    drawn.sort(key=_rank)

    below = [*_meanings(drawn, TOTAL), *notes(trainers, drawn), *clock_note(against(drawn))]
    words = Words(claim(drawn), caption_of(drawn), below)
    figure, (spec,) = new_figure(words, [lines_height(labels_of(drawn))])
    # a bar ends where its time does, so there is none of a row that was stopped
    were_stopped = any(row.total is None for row in drawn)
    draw = _draw_dots if were_stopped or _are_far_apart(drawn) else _draw_bars
    draw(new_axes(figure, spec), _one_each(drawn), _results(drawn))
    return figure


@chart
def dots(rows: Sequence[Row], value: Value = TOTAL) -> Figure:
    """Dots on a log axis: of one text a line for each trainer with a dot for each number of
    threads; of several texts a line for each, or for each trainer if there are more of these.
    """
    trainers = [row for row in rows if not row.counting_only]
    drawn = _measured(trainers, "dots", value)
    texts = tasks_of(drawn, without=("tie_break", "counting"))
    if len(texts) == 1:
        fewest = min(row.threads for row in drawn)
        title = claim([row for row in drawn if row.threads == fewest])
        found = _dots_by_threads(drawn)
    else:
        title, found = _winner(texts), _dots_by_text(texts)

    below = [*_meanings(drawn, value), *notes(trainers, drawn, value is TOTAL)]
    ends = []
    if value is not TOTAL:
        title = value.title
    elif len(texts) == 1:
        below += clock_note(against(drawn))
        # the row on the fewest threads is the last that gets the name
        fewest_last = sorted(found, key=lambda dot: -dot.row.threads)
        on_fewest = {dot.line: dot.row for dot in fewest_last}
        ends = _results([on_fewest[line] for line in _lines(found)])

    words = Words(title, caption_of(drawn, panels=len(texts)), below)
    figure, (spec,) = new_figure(words, [lines_height(_lines(found))], _dots_key(found))
    _draw_dots(new_axes(figure, spec), found, ends, value)
    return figure


def _dots_by_threads(drawn: Sequence[Row]) -> list[Dot]:
    """Trainers from the fastest down, those whose merges nobody has proved last."""
    found = []
    for row in sorted(drawn, key=_rank):
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


def _one_each(rows: Sequence[Row]) -> list[Dot]:
    """A line with one dot for each row."""
    return [Dot(label, "", row, look_of(row.name)) for row, label in labelled(rows)]


def _lines(dots: Sequence[Dot]) -> list[str]:
    return list(dict.fromkeys(dot.line for dot in dots))


def _results(rows: Sequence[Row]) -> list[EndText]:
    """At the end of each line its time, and how many times that of the first one; ours are bold."""
    first = min(rows, key=_rank)
    ends = []
    for row in rows:
        text = time_text(row.time) + mark_of(row)
        if row is not first:
            text += f", {times_text(ratio_of(row, first), interval=False)}"
        weight = "bold" if is_ours(row.name) else "normal"
        ends.append(EndText(text, {"weight": weight}, weight))
    return ends


def _draw_dots(
    axes: Axes, dots: Sequence[Dot], ends: Sequence[EndText], value: Value = TOTAL
) -> None:
    """The lines with their dots on a log axis."""
    lines = _lines(dots)
    name_lines(axes, lines)
    scale_times(axes, "x", [value.of(dot.row) for dot in dots], value)

    edge = axes.get_xlim()[0]
    farthest = dict.fromkeys(lines, edge)
    for dot in dots:
        time = value.of(dot.row)
        if time.number is not None:
            name = f"{dot.line}, {dot.name}" if dot.name else dot.line
            text = f"{name}: {figure_text(dot.row, value.name)}"
            draw_time(axes, lines.index(dot.line), time, dot.look, text)
            farthest[dot.line] = max(farthest[dot.line], end_of(time))
    # a faint line leads the eye from each name to its dots
    axes.hlines(range(len(lines)), edge, list(farthest.values()), color=LINE, linewidth=0.8)
    _write_ends(axes, list(farthest.values()), ends)


def _draw_bars(axes: Axes, dots: Sequence[Dot], ends: Sequence[EndText]) -> None:
    """The lines with a bar each."""
    name_lines(axes, _lines(dots))
    scale_times(axes, "x", [dot.row.time for dot in dots], is_log=False)
    for index, dot in enumerate(dots):
        (bar,) = axes.barh(index, _seconds(dot.row), 0.68, color=dot.look.colour, linewidth=0)
        hover(bar, f"{dot.line}: {time_text(dot.row.time)}")
    _write_ends(axes, [_seconds(dot.row) for dot in dots], ends)


def _write_ends(axes: Axes, farthest: Sequence[float], ends: Sequence[EndText]) -> None:
    """Write what is at the end of each line, if anything is."""
    for index, (x, end) in enumerate(zip(farthest, ends, strict=False)):
        write_at(axes, x, index, end.text, **end.style)
        axes.get_yticklabels()[index].set_fontweight(end.weight_of_name)


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
    noun = "texts" if len({text[0].corpus.sha256 for text in texts}) == len(texts) else "tasks"
    leaders = [row.name for text in texts if (row := leader(text)) is not None]
    if not leaders:
        return f"Too close to rank on all {len(texts)} {noun}"
    ((name, number),) = Counter(leaders).most_common(1)
    return f"{name} is first on {number} of {len(texts)} {noun}"


# What the kinds have in common


def _seconds(row: Row) -> float:
    return row.time.number or 0.0


def _rank(row: Row) -> tuple[bool, bool, float]:
    """The order of rows by their times: those that nobody has proved, and then those without a
    time, come last.
    """
    return row.total is None, row.doubtful, _seconds(row)


def _measured(trainers: Sequence[Row], kind: str, value: Value) -> list[Row]:
    """The rows that can be drawn. Raises Refusal if all of these were stopped."""
    drawn = [row for row in trainers if value.of(row).number is not None]
    if not any(value.of(row).form == MEASURED for row in drawn):
        advice = "python -m harness measures some"
        raise Refusal(f"{kind}: no trainer has a {value.name}; {advice}", UNMEASURED)
    return drawn


def _are_far_apart(rows: Sequence[Row]) -> bool:
    """Return whether bars of these times would hide the short ones."""
    seconds = [_seconds(row) for row in rows] or [1.0]
    return max(seconds) > WIDEST_RANGE * min(seconds)


def _meanings(drawn: Sequence[Row], value: Value) -> list[str]:
    """Explain the marks that are drawn."""
    forms = {value.of(row).form for row in drawn}
    meanings = []
    if AT_LEAST in forms:
        meanings.append(">: stopped at its limit; it takes longer.")
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
    "profile": ("the share of cells within so many times of the best, for each trainer", profile),
}
"""What each kind of chart shows, and its function."""
OF_VALUES = ("dots", "size", "vocabulary", "threads")
"""The kinds that can show another value than the total."""
