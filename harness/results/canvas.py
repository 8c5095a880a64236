"""A figure for a chart: panels between a title with a caption and notes; its colours, and its file.

A figure is narrow, so that it can be read on a phone. Equal charts give equal bytes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import math
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.escape import html_text, terminal_lines
from harness.common.files import write_output
from harness.results.notes import at_most
from harness.results.rows import AT_LEAST, MEASURED, Time
from harness.results.writing import TOTAL, Value, number_tick

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

Arguments = ParamSpec("Arguments")
CARD, INK, FAINT, LINE = "#ffffff", "#1f2328", "#59636e", "#d8dee4"
HUES = (
    # grey, indigo, orange, dark green, blue, purple, wine
    *("#5c6470", "#6c68fc", "#e2420e", "#267141", "#5e88e9", "#890483", "#681127"),
    # cyan, pink, green, olive, brown, violet
    *("#0a93b5", "#fb31b4", "#349c78", "#7d8112", "#582700", "#7018ac"),
)
"""Chosen by search: any two are far apart for every kind of colour vision."""
MARKERS = "os^DvP<>ph8"
"""matplotlib's, in the order in which they are taken. No slanting cross: it would look like a
mistake.
"""
SUFFIXES = (".svg", ".png", ".pdf")

WIDTH, EDGE = 6.0, 0.12  # inches
TITLE, LABEL, SMALL = 12.5, 9.5, 8.5  # points
LONGEST_LABEL, MOST_NOTES, MAX_TICKS = 60, 4, 7
FONTS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_LETTER, _LINE = 0.0082, 0.0174
"""Inches that a letter of matplotlib's font is wide, and that a line is high, for each point of its
size.
"""
_STYLE: Any = {  # matplotlib names its settings in a type that changes with every release
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text: readable by programs and by those who cannot see
    "pdf.fonttype": 42,  # text of a paper that can be searched
    "svg.hashsalt": "pictures",  # equal records give equal bytes
    "path.simplify": False,
}
_HOVER = "hover: "  # before a mark's text in its id, until that becomes its title
_DARK = "@media (prefers-color-scheme: dark) {svg{filter: invert(0.93) hue-rotate(180deg)}}"
_METADATA: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


# How a trainer looks


class Look(NamedTuple):
    """The colour and the marker of a variant or a counter."""

    colour: str
    marker: str = "o"


def look_of(name: str) -> Look:
    """The same look in every chart: by the place in the registry, or else by the digest of the
    name.
    """
    number = _numbers().get(name)
    if number is None:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        number = int(digest[:12], 16)
    turn, hue = divmod(number, len(HUES))
    return Look(HUES[hue], MARKERS[(turn + hue) % len(MARKERS)])


@functools.cache
def _numbers() -> dict[str, int]:
    numbers = {name: number for number, name in enumerate(registry.counters(), 3)}
    return numbers | {name: number for number, name in enumerate(registry.variants())}


# A figure


class Words(NamedTuple):
    """The texts above and below the panels."""

    title: str
    caption: Sequence[str]
    notes: Sequence[str]


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """matplotlib's default settings, with ours, while something is drawn or written."""
    if {"matplotlib", "ipykernel"}.isdisjoint(sys.modules):
        # a notebook names a backend to what it starts, which may not be installed here
        os.environ["MPLBACKEND"] = "agg"
    from matplotlib import style

    with style.context(["default", _STYLE]), warnings.catch_warnings():
        # matplotlib's font lacks some scripts; an SVG leaves the choice of font to its reader
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def chart(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Let a function draw in the style of every chart, and lay out the figure that it returns."""

    @functools.wraps(draw)
    def styled_draw(*arguments: Arguments.args, **options: Arguments.kwargs) -> Figure:
        with styled():
            figure = draw(*arguments, **options)
            figure.draw_without_rendering()

        # the layout differs in the last digits from time to time, and the names of clips with it
        figure.set_layout_engine("none")
        for axes in figure.axes:
            box = axes.get_position()
            left, bottom, width, height = (round(edge, 5) for edge in box.bounds)
            axes.set_position((left, bottom, width, height))
        return figure

    return styled_draw


def new_figure(
    words: Words, heights: Sequence[float], key: Sequence[Artist] = ()
) -> tuple[Figure, list[SubplotSpec]]:
    """A figure with its words and its key, and the places of its panels, which have these heights
    in inches.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    notes = at_most(MOST_NOTES, words.notes, "python -m harness.table --notes")
    title = _paragraph([words.title], TITLE * 1.1)
    caption, below = _paragraph(words.caption, SMALL), _paragraph(notes, SMALL)
    title_height, caption_height = _height(title, TITLE), _height(caption, SMALL)
    # as many columns of the key as its longest text lets stand side by side
    longest = max((len(str(entry.get_label())) for entry in key), default=0)
    columns = max(1, int((WIDTH - 2 * EDGE) / (_LETTER * SMALL * longest + 0.33)))
    above = EDGE + title_height + caption_height + 0.18 * math.ceil(len(key) / columns)
    beneath = EDGE + _height(below, SMALL)
    height = above + sum(heights) + beneath

    figure = Figure(figsize=(WIDTH, height), facecolor=CARD)
    left, top = EDGE / WIDTH, 1 - EDGE / height
    figure.text(left, top, title, va="top", fontsize=TITLE, color=INK, weight="bold")
    top -= title_height / height
    figure.text(left, top, caption, va="top", fontsize=SMALL, color=FAINT)
    top -= caption_height / height
    if key:
        figure.legend(
            handles=key, loc="upper left", bbox_to_anchor=(left, top), ncols=columns, frameon=False,
            fontsize=SMALL, labelcolor=INK, borderpad=0, borderaxespad=0, handlelength=1.4, columnspacing=1.4,
        )  # fmt: skip
    figure.text(left, EDGE / height, below, va="bottom", fontsize=SMALL, color=FAINT)

    share = sum(heights) / height
    layout = ConstrainedLayoutEngine(
        rect=(left, beneath / height, 1 - 2 * left, share), h_pad=0.06, w_pad=0.0
    )
    figure.set_layout_engine(layout)
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    return figure, [grid[index, 0] for index in range(len(heights))]


def _paragraph(lines: Sequence[str], size: float) -> str:
    """The lines, wrapped to the width of the figure."""
    letters = int((WIDTH - 2 * EDGE) / (_LETTER * size))
    return "\n".join("\n".join(textwrap.wrap(line, letters)) for line in lines if line)


def _height(text: str, size: float) -> float:
    return (text.count("\n") + 1) * _LINE * size + 0.06 if text else 0.0


def short(text: str, letters: int = 24) -> str:
    """A name on lines of so many letters; of a long one the middle is left out.

    >>> short("cython_fine_grained_emhash8", 16).split()
    ['cython_fine_', 'grained_emhash8']
    >>> len(short("x" * 200).replace(chr(10), ""))
    60
    """
    if len(text) > LONGEST_LABEL:
        text = f"{text[: LONGEST_LABEL // 2]}…{text[1 - LONGEST_LABEL // 2 :]}"
    breakable = re.sub(rf"\S{{{letters + 1},}}", lambda name: name[0].replace("_", "_ "), text)
    return "\n".join(line.replace("_ ", "_") for line in textwrap.wrap(breakable, letters))


def new_axes(figure: Figure, spec: SubplotSpec, title: str = "") -> Axes:
    """Axes in the style of every chart."""
    axes = figure.add_subplot(spec, facecolor=CARD)
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", color=FAINT, labelcolor=FAINT, labelsize=SMALL, width=0.6)
    axes.spines[:].set(color=FAINT, linewidth=0.6, visible=False)
    axes.spines["bottom"].set_visible(True)
    axes.grid(axis="x", color=LINE, linewidth=0.6)
    if title:
        axes.set_title(short(title, 80), loc="left", fontsize=LABEL, color=INK, pad=4)
    return axes


def name_lines(axes: Axes, names: Sequence[str]) -> None:
    """A line for each name, from above."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), [short(name) for name in names])
    axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=LABEL)


def lines_height(names: Sequence[str]) -> float:
    """The inches that a panel with a line for each name takes."""
    lines = max(short(name).count("\n") + 1 for name in names)
    return 0.6 + len(names) * max(0.28, 0.16 * lines + 0.04)


def scale(
    axes: Axes,
    side: str,
    numbers: Sequence[float],
    title: str,
    is_log: bool,
    tick: Callable[[float], str] = number_tick,
    ticks: Sequence[float] = (),
) -> None:
    """An axis that shows these numbers, with ticks on round ones, or where `ticks` are if it is
    long; `side` is x or y.
    """
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator

    axis = axes.xaxis if side == "x" else axes.yaxis
    low, high = min(numbers, default=1.0), max(numbers, default=1.0)
    if is_log:
        axes.set(**{f"{side}scale": "log", f"{side}lim": (low / 1.25, high * 1.25)})
        decades = math.log10(1.5 * high / low)
        steps = (1.0,) if decades > 2.5 else (1.0, 3.0) if decades > 1.2 else (1.0, 2.0, 5.0)
        axis.set_major_locator(LogLocator(subs=steps, numticks=7))
        if ticks and decades > 2.5:
            shown = [at for at in ticks if low / 1.25 <= at <= high * 1.25]
            axis.set_major_locator(FixedLocator(shown[:: math.ceil(len(shown) / MAX_TICKS)]))
        elif decades < 1:
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    else:
        axes.set(**{f"{side}lim": (0, 1.02 * high)})
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda number, _: tick(number))
    axis.set_label_text(f"{title} (log scale)" if is_log else title, color=FAINT, fontsize=SMALL)


def scale_times(
    axes: Axes, side: str, times: Sequence[Time], value: Value = TOTAL, is_log: bool = True
) -> None:
    """An axis that shows these times, or peaks of memory, on a log scale with their marks."""
    numbers = []
    for time in times:
        if time.number:
            numbers += [time.low or time.number, end_of(time)] if is_log else [time.number]
    scale(axes, side, numbers, value.axis, is_log, value.tick, value.ticks)


def end_of(time: Time) -> float:
    """Return where the mark of a time ends: its interval, or its arrow."""
    number = time.number or 0.0
    return 1.4 * number if time.form == AT_LEAST else time.high or number


def draw_time(
    axes: Axes, position: float, time: Time, look: Look, text: str, upright: bool = False
) -> None:
    """A marker at a time with its interval: hollow if it is no measurement, with an arrow if it
    takes longer.
    """
    number = time.number or 0.0
    below, above = number - (time.low or number), (time.high or number) - number
    if time.form == AT_LEAST:
        below, above = 0.0, 0.3 * number
    errors = [[max(0.0, below)], [max(0.0, above)]]

    style: dict[str, Any] = {
        "color": look.colour, "marker": look.marker, "markersize": 7.0, "markeredgewidth": 0.7, "elinewidth": 1.4,
        "markeredgecolor": CARD, "linestyle": "none", "clip_on": False, "zorder": 4,
    }  # fmt: skip
    if time.form != MEASURED:
        style |= {"markerfacecolor": CARD, "markeredgecolor": look.colour, "markeredgewidth": 1.3}
    is_limit = time.form == AT_LEAST
    if upright:
        drawn = axes.errorbar(position, number, yerr=errors, lolims=is_limit, **style)
    else:
        drawn = axes.errorbar(number, position, xerr=errors, xlolims=is_limit, **style)
    hover(drawn.lines[0], text)


def key_entry(name: str, look: Look) -> Artist:
    """A marker with a name in the key of a chart."""
    from matplotlib.lines import Line2D

    label = short(name, LONGEST_LABEL)
    return Line2D([], [], linestyle="none", marker=look.marker, color=look.colour, label=label)


def write_at(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """A text to the right of a place, which may leave the axes."""
    axes.annotate(
        text, (x, y), (6, 0), textcoords="offset points", va="center", fontsize=SMALL, annotation_clip=False,
        **{"color": INK, **style},
    )  # fmt: skip


def hover(mark: Artist, text: str) -> None:
    """Show this text to a reader of the SVG who points at the mark."""
    mark.set_gid(_HOVER + text)


# Its file


def check_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise Refusal(f"cannot draw into {path}; pass a file that ends in .svg, .png or .pdf")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure as its suffix says."""
    suffix = path.suffix.lower()
    write_output(path, svg_of(figure).encode() if suffix == ".svg" else _rendered(figure, suffix))


def _rendered(figure: Figure, suffix: str) -> bytes:
    content = io.BytesIO()
    with styled():
        figure.savefig(content, format=suffix[1:], dpi=160, metadata=_METADATA[suffix])
    return content.getvalue()


def svg_of(figure: Figure) -> str:
    """The figure as an SVG whose marks have titles, in few bytes; it is dark if its reader prefers
    that.
    """
    svg = terminal_lines(_rendered(figure, ".svg").decode())  # whatever a record holds
    svg = re.sub(rf'<g id="{_HOVER}([^"]*)">', r"<g><title>\1</title>", svg)

    # few bytes: short numbers, no indents, and no style that is a default
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d{3})\d+", r"\1", tag[0]), svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{" ".join(path[1].split())}"', svg)
    defaults = r' transform="rotate\(-0 [^"]*\)"|; stroke-linejoin: miter|font-family: [^;"]*; ?'
    svg = re.sub(r"^ +", "", re.sub(defaults, "", svg), flags=re.MULTILINE)

    style = f'<style type="text/css">text{{font-family: {FONTS}}} {_DARK}'
    svg = svg.replace('<style type="text/css">', style, 1)
    title = html_text(figure.texts[0].get_text().replace("\n", " "))
    role = rf' role="img">{chr(10)}<title>{title}</title>'
    return re.sub(r"(<svg [^>]*)>", lambda tag: tag[1] + role, svg, count=1)
