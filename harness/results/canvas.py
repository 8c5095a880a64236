"""A figure for a chart: panels between a title with a caption and notes; its colours, and its file.

A figure is narrow, so that it can be read on a phone. Equal charts give equal bytes.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.common.files import write_output
from harness.common.printing import terminal_lines
from harness.results.notes import at_most
from harness.results.rows import Time
from harness.results.writing import TOTAL, Value, number_tick

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
_STYLE = Path(__file__).with_name("chart.mplstyle")
_DARK = "@media (prefers-color-scheme: dark) {svg{filter: invert(0.93) hue-rotate(180deg)}} "
METADATA: dict[str, dict[str, str | None]] = {
    ".svg": dict.fromkeys(["Date", "Creator", "Format", "Type"]),
    ".png": {"Software": None},
    ".pdf": dict.fromkeys(["CreationDate", "Creator", "Producer"]),
}


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
