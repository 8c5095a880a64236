"""Charts of rows: where the time goes, and dots of one text or many; and what every chart consists of,
a figure with panels between a title with a caption and notes.

A chart is a function from rows to a figure of matplotlib, which raises Refusal if the rows lack what
it takes. A figure is narrow, so that it can be read on a phone. Equal charts give equal bytes.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import write_output
from harness.common.printing import terminal_lines
from harness.results.fields import together
from harness.results.notes import at_most, finding, notes
from harness.results.ratios import against, clock_note, ratio_of, tasks_of
from harness.results.rows import Row, Time, is_one_variant
from harness.results.writing import (
    TOTAL,
    Value,
    caption_of,
    digits_text,
    labels_of,
    mark_of,
    number_tick,
    panel_title,
    proof_text,
    time_text,
    times_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

INK, FAINT, LINE = "#1f2328", "#59636e", "#d8dee4"
ACCENT, GREY = "#0969da", "#8c959f"
"""The colours of the trainer that the chart is about, and of all others."""

WIDTH, EDGE, GAP = 6.0, 0.12, 0.07  # inches
AROUND = 0.9  # inches for the title, the ticks and the label of axes
DPI = 100
TITLE, SMALL = 12.0, 8.5  # points
TITLE_LETTERS, LETTERS, NAME_LETTERS = 52, 82, 28  # on a line
MOST_NOTES = 4
NAME_HEIGHT = 0.17  # inches
_STYLE: Any = {  # matplotlib names its settings in a type that changes with every release
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.labelcolor": FAINT,
    "axes.labelsize": SMALL,
    "axes.linewidth": 0.6,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "font.sans-serif": ["DejaVu Sans"],
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "xtick.color": FAINT,
    "xtick.labelsize": SMALL,
    "ytick.color": FAINT,
    "ytick.labelsize": SMALL,
    "ytick.major.size": 0.0,
    "ytick.minor.size": 0.0,
    "svg.fonttype": "none",  # text stays text: readable by programs and by those who cannot see
    "pdf.fonttype": 42,  # text of a paper that can be searched
    "svg.hashsalt": "pictures",  # equal records give equal bytes
}
_DARK = "@media (prefers-color-scheme: dark) {svg{filter: invert(0.93) hue-rotate(180deg)}} "
METADATA: dict[str, dict[str, str | None]] = {
    ".svg": dict.fromkeys(["Date", "Creator", "Format", "Type"]),
    ".png": {"Software": None},
    ".pdf": dict.fromkeys(["CreationDate", "Creator", "Producer"]),
}
PARTS = {
    "before": (("read", "count", "convert", "init"), "#b6c2cf"),
    "max": (("copy", "max"), "#e8953a"),
    "update": (("update",), "#5b8fb0"),
    "other": (("other",), "#e6e9ed"),
}
"""The parts of a bar, each with its phases and its colour."""
MOST_COLUMNS, COLUMN_WORDS = 4, 0.7
"""How many texts have a column each, and the inches that its title and ticks take."""


# A figure


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """matplotlib's default settings, with ours, while something is drawn or written: a context, and
    the decorator of every function that draws.
    """
    # a notebook names a backend to what it starts, which may not be installed here
    is_first = {"matplotlib", "ipykernel"}.isdisjoint(sys.modules)
    named = os.environ.pop("MPLBACKEND", None) if is_first else None
    from matplotlib import style

    if named is not None:
        os.environ["MPLBACKEND"] = named
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        # matplotlib's font lacks some scripts; an SVG leaves the choice of font to its reader
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def settled(figure: Figure) -> Figure:
    """The figure, laid out; the layout differs in the last digits from time to time, and the names
    of clips with it.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(edge, 5) for edge in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))
    return figure


def new_figure(
    title: str,
    caption: Sequence[str],
    notes: Sequence[str],
    heights: Sequence[float],
    widths: Sequence[float] = (1.0,),
) -> tuple[Figure, Any]:
    """A figure with its texts, and its axes in rows of these heights in inches; those of a row
    share their y axis.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    shown = at_most(MOST_NOTES, notes, "python -m harness.table --notes")
    left = EDGE / WIDTH
    figure = Figure(figsize=(WIDTH, 1.0), dpi=DPI)
    head = figure.text(left, 0, filled([title], TITLE_LETTERS), va="top", size=TITLE, weight="bold")
    under = figure.text(left, 0, filled(caption), va="top", size=SMALL, color=FAINT)
    below = figure.text(left, 0, filled(shown), va="bottom", size=SMALL, color=FAINT)

    around = [_height(head), _height(under), _height(below)]
    panels = sum(heights) + AROUND * len(heights)
    height = panels + sum(around) + 2 * EDGE
    figure.set_figheight(height)
    head.set_y(1 - EDGE / height)
    under.set_y(1 - (EDGE + around[0]) / height)
    below.set_y(EDGE / height)

    place = (left, (EDGE + around[2]) / height, 1 - 2 * left, panels / height)
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=place, h_pad=0.04, w_pad=0.02))
    ratios = {"height_ratios": heights, "width_ratios": widths}
    shape = len(heights), len(widths)
    return figure, figure.subplots(*shape, sharey="row", squeeze=False, gridspec_kw=ratios)


def filled(lines: Sequence[str], letters: int = LETTERS) -> str:
    """The lines, wrapped; trainers have the names by which people know them."""
    return "\n".join(textwrap.fill(people(line), letters) for line in lines if line)


def people(text: str) -> str:
    """A text with the names by which people know outside trainers.

    >>> people("peer_gigabpe, data my_peer_text")
    'gigabpe, data my_peer_text'
    """
    return re.sub(r"\bpeer_", "", text)


def _height(text: Text) -> float:
    """The inches that a text takes, with a gap; none if it is empty."""
    return text.get_window_extent().height / DPI + GAP if text.get_text() else 0.0


def short(name: str, letters: int = NAME_LETTERS) -> str:
    """A name on at most five lines of so many letters.

    >>> short("peer_fine_grained_emhash8", 14).split()
    ['fine_grained_', 'emhash8']
    """
    breakable = people(name).replace("_", "_ ")
    lines = textwrap.wrap(breakable, letters, max_lines=5, placeholder="…")
    return "\n".join(lines).replace("_ ", "_")


def lines_height(names: Sequence[str]) -> float:
    """The inches that axes with a line for each name take."""
    return max(0.4, len(names) * (0.08 + max(map(name_height, names))))


def name_height(name: str) -> float:
    return NAME_HEIGHT * (short(name).count("\n") + 1)


def log_scale(
    axes: Axes,
    side: str,
    numbers: Sequence[float],
    title: str,
    tick: Callable[[float], str] = number_tick,
) -> None:
    """A log axis that shows these numbers; `side` is x or y."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    axis = axes.xaxis if side == "x" else axes.yaxis
    low, high = min(numbers, default=1.0), max(numbers, default=1.0)
    axes.set(**{f"{side}scale": "log", f"{side}lim": (low / 1.25, high * 1.25)})
    if high < 3 * low:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    elif high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 3) if high > 10 * low else (1, 2, 5)))
    else:
        axis.set_major_locator(LogLocator(numticks=5))
    axis.set_major_formatter(lambda number, _: tick(number))
    axis.set_minor_formatter(NullFormatter())
    axis.set_label_text(f"{title}, log scale")


def scale_times(axes: Axes, side: str, times: Sequence[Time], value: Value = TOTAL) -> None:
    """A log axis that shows these times, or peaks of memory, with their marks."""
    numbers = []
    for time in times:
        if time.number:
            numbers += [time.low or time.number, end_of(time)]
    better = ", less is better" if side == "x" else ""
    log_scale(axes, side, numbers, value.title.lower() + better, value.tick)


def end_of(time: Time) -> float:
    """Return where the mark of a time ends: its interval, or its arrow."""
    number = time.number or 0.0
    return 1.4 * number if time.is_limit else time.high or number


def draw_time(axes: Axes, at: float, time: Time, colour: str, side: str = "x") -> None:
    """A circle at a time on that axis, with its interval; or an arrow from the limit that it
    exceeds.
    """
    number = time.number or 0.0
    x, y, limits = (number, at, "xlolims") if side == "x" else (at, number, "lolims")
    errors = [[number - (time.low or number)], [end_of(time) - number]]
    style: dict[str, Any] = {f"{side}err": errors, limits: time.is_limit, "clip_on": False}
    marker = "" if time.is_limit else "o"
    axes.errorbar(
        x, y, color=colour, marker=marker, elinewidth=1.2, linestyle="none", zorder=4, **style
    )


def write_at(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """A text to the right of a place, which may leave the axes."""
    axes.annotate(
        text, (x, y), (6, 0), textcoords="offset points", va="center", size=SMALL, annotation_clip=False, **style
    )  # fmt: skip


# Its file


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure as its suffix says."""
    suffix = path.suffix.lower()
    write_output(path, svg_of(figure).encode() if suffix == ".svg" else _rendered(figure, suffix))


def _rendered(figure: Figure, suffix: str) -> bytes:
    content = io.BytesIO()
    metadata = {"Title": figure.texts[0].get_text().replace("\n", " "), **METADATA[suffix]}
    with styled():
        figure.savefig(content, format=suffix[1:], dpi=160, metadata=metadata)
    return content.getvalue()


def svg_of(figure: Figure) -> str:
    """The figure as an SVG, which is dark if its reader prefers that."""
    svg = terminal_lines(_rendered(figure, ".svg").decode())  # whatever a record holds
    style = '<style type="text/css">'
    return svg[svg.index("<svg") :].replace(style, style + _DARK, 1)


# Charts

Dots = list[tuple[int, Row]]
"""Rows, each with the number of the line that it is on."""


@styled()
def phases(rows: Sequence[Row], title: str = "") -> Figure:
    """Total times, and the shares of their phases; a panel for each task. A chart with a title of
    one's own has no other words.
    """
    tasks = [list(rows)] if is_one_variant(rows) else tasks_of(rows)
    text, accent = finding(rows)
    caption, below = [], []
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
