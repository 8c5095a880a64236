"""The kinds of chart: where the time goes, a race, dots of many texts, and lines over a size.

Each is a function from rows to a figure of matplotlib, which raises Refusal if the rows lack what
it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from harness.common.errors import UNMEASURED, Refusal
from harness.results.canvas import (
    ACCENT,
    FAINT,
    GREY,
    INK,
    LINE,
    SMALL,
    draw_time,
    end_of,
    lines_height,
    new_figure,
    scale_times,
    settled,
    short,
    styled,
    write_at,
)
from harness.results.fields import together
from harness.results.lines import CORPUS, THREADS, VOCABULARY, over, profile
from harness.results.notes import finding, notes
from harness.results.ratios import against, clock_note, ratio_of, tasks_of
from harness.results.rows import Row, Time, is_one_variant
from harness.results.writing import (
    TOTAL,
    Value,
    caption_of,
    digits_text,
    labels_of,
    mark_of,
    panel_title,
    proof_text,
    time_text,
    times_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = {
    "before": (("read", "count", "convert", "init"), "#b6c2cf"),
    "max": (("copy", "max"), "#e8953a"),
    "update": (("update",), "#5b8fb0"),
    "other": (("other",), "#e6e9ed"),
}
"""The parts of a bar, each with its phases and its colour."""
MOST_COLUMNS, COLUMN_WORDS = 4, 0.7
"""How many texts have a column each, and the inches that its title and ticks take."""


Dots = list[tuple[int, Row]]
"""Rows, each with the number of the line that it is on."""


@styled()
def phases(rows: Sequence[Row], title: str = "") -> Figure:
    """Total times, and the shares of their phases; a panel for each task. A chart with a title of
    one's own has no other words.
    """
    tasks = [list(rows)] if is_one_variant(rows) else tasks_of(rows)
    text, accent = finding(rows)
    caption, below = list[str](), list[str]()
    if not title:
        title = text or "Where the time goes"
        caption = caption_of(rows, panels=len(tasks))
        below = [*notes(rows), *clock_note(against(rows))]
    labels = list(map(labels_of, tasks))
    figure, panels = new_figure(title, caption, below, list(map(lines_height, labels)), (3, 2))

    for task, names, (left, right) in zip(tasks, labels, panels, strict=True):
        if len(tasks) > 1:
            left.set_title(short(panel_title(task, tasks), 36))
        drawn = list(enumerate(task))
        _draw_dots(left, names, drawn, accent, [row.time for row in task])
        _write_ends(left, drawn, accent, with_ratios=False)
        _draw_shares(right, task)
    panels[0][1].legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=2, handlelength=0.7, borderpad=0
    )
    return settled(figure)


@styled()
def dots(rows: Sequence[Row], value: Value = TOTAL) -> Figure:
    """A line for each trainer with its dot; of several texts a column for each, or if they are many
    a line for each with a dot for each trainer.
    """
    drawn = []
    for row in rows:
        if not row.counting_only and value.of(row).number is not None:
            drawn.append(row)
    times = list(map(value.of, drawn))
    if all(time.is_limit for time in times):
        advice = "python -m harness measures some"
        raise Refusal(f"no trainer has a {value.name}; {advice}", UNMEASURED)

    texts = tasks_of(drawn)
    if len(texts) == 1 or len(texts) > MOST_COLUMNS:
        drawn.sort(key=attrgetter("order"))
    found, accent = finding(drawn)
    names, columns = _columns(drawn, texts)
    is_one_text = len(texts) == 1 and value is TOTAL
    below = []
    if len(texts) > MOST_COLUMNS:
        others = dict.fromkeys(row.name for row in drawn if row.configured != accent)
        below.append(f"Grey: {', '.join(others)}.")
    if any(time.is_limit for time in times):
        below.append(">: stopped at its limit; it takes longer.")
    if any(row.by_design for row in drawn):
        below.append("* It makes other merges, on purpose.")
    below += notes(rows, drawn, value is TOTAL)
    if is_one_text:
        below += clock_note(against(drawn))
    caption = caption_of(drawn, panels=len(texts))
    title = found if value is TOTAL and found else value.title
    height = lines_height(names) + COLUMN_WORDS * (len(columns) > 1)
    figure, (panels,) = new_figure(title, caption, below, [height], [1.0] * len(columns))

    for axes, (name, column) in zip(panels, columns.items(), strict=True):
        _draw_dots(axes, names, column, accent, times, value)
        if len(columns) > 1:
            axes.set_title(short(name, 15), size=SMALL - 1)
            axes.set_xlabel("")
            axes.tick_params(axis="x", rotation=60)
        if is_one_text:
            _write_ends(axes, column, accent)
    return settled(figure)


def _columns(
    drawn: Sequence[Row], texts: Sequence[Sequence[Row]]
) -> tuple[list[str], dict[str, Dots]]:
    """The names of the lines, and by its title the dots of each text, on a line for each trainer;
    of many texts all dots, on a line for each text.
    """
    titles = dict[Row, str]()
    for text in texts:
        titles |= dict.fromkeys(text, panel_title(text, texts))
    labels = dict(zip(drawn, labels_of(drawn, without=("data", "vocab_size")), strict=True))
    are_many = len(texts) > MOST_COLUMNS
    lines = titles if are_many else labels
    names = list(dict.fromkeys(lines[row] for row in drawn))

    dots = [("" if are_many else titles[row], (names.index(lines[row]), row)) for row in drawn]
    return names, together(dots)


def _draw_dots(
    axes: Axes,
    names: Sequence[str],
    dots: Dots,
    accent: object,
    times: Sequence[Time],
    value: Value = TOTAL,
) -> None:
    """A line for each name with its dots, from above, on a scale of these times; a faint line leads
    the eye from the name to them.
    """
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), list(map(short, names)))
    axes.grid(visible=False)
    scale_times(axes, "x", times, value)
    for at, row in dots:
        time = value.of(row)
        if time.number is not None:
            axes.hlines(at, 0, time.number, color=LINE, linewidth=1.0)
            draw_time(axes, at, time, ACCENT if row.configured == accent else GREY)


def _write_ends(axes: Axes, dots: Dots, accent: object, with_ratios: bool = True) -> None:
    """At the end of each line its time, and how many times that of the first one; or what
    happened in place of a time.
    """
    first = min((row for _, row in dots), key=attrgetter("order"))
    for at, row in dots:
        text = time_text(row.time, digits_text) + mark_of(row)
        if with_ratios and row is not first:
            text += f", {times_text(ratio_of(row, first), brief=True)}"
        end = end_of(row.time) or axes.get_xlim()[0]
        is_accented = row.configured == accent
        weight = "bold" if is_accented else "normal"
        colour = INK if is_accented else FAINT
        write_at(axes, end, at, text or proof_text(row), weight=weight, color=colour)
        axes.get_yticklabels()[at].set(weight=weight, color=colour)


def _draw_shares(axes: Axes, task: Sequence[Row]) -> None:
    """A bar for each row with a time, by the parts of that."""
    axes.grid(visible=False)
    axes.set(xlim=(0, 1), xticks=[])
    axes.spines["bottom"].set_visible(False)
    starts = np.zeros(len(task))
    for part, (of_part, colour) in PARTS.items():
        shares = []
        for row in task:
            seconds = [row.seconds.get(phase, 0.0) for phase in of_part]
            shares.append(sum(seconds) / (row.total or 1.0))
        axes.barh(range(len(task)), shares, 0.68, starts, color=colour, linewidth=0, label=part)
        starts += shares


KINDS: dict[str, tuple[str, Callable[..., Figure]]] = {
    "phases": ("total times with the shares of their phases, a line for each row", phases),
    "dots": ("a dot for each trainer on each text", dots),
    "size": ("lines over the size of the corpus", partial(over, CORPUS)),
    "vocabulary": ("the same over the size of the vocabulary", partial(over, VOCABULARY)),
    "threads": ("the same over the number of threads", partial(over, THREADS)),
    "profile": ("the share of cells within so many times of the best, for each trainer", profile),
}
"""What each kind of chart shows, and its function."""
OF_VALUES = ("dots", "size", "vocabulary", "threads")
"""The kinds that can show another value than the total."""
