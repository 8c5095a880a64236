"""Charts drawn by matplotlib into an SVG that follows its reader's theme, or a PNG: equal charts
give equal bytes.

Charts are narrow, so that they can be read on a phone. Panels stand below each other.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.common.console import html_text, terminal_lines
from harness.common.errors import Refusal
from harness.common.files import write_whole
from harness.common.units import bytes_text
from harness.results.charts import (
    CARD,
    FAINT,
    INK,
    LINE,
    Axis,
    Bar,
    Chart,
    Label,
    Line,
    Mark,
    Panel,
    Point,
    Text,
)
from harness.results.legend import at_most
from harness.results.rows import AT_LEAST, ESTIMATED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, EDGE = 6.0, 0.12
WIDEST_LABEL, MOST_NOTES = 2.1, 4
TITLE, LABEL, SMALL = 12.5, 9.5, 8.5
FONTS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_LETTER, _LINE = 0.0082, 0.0215
"""Inches that a letter of matplotlib's font is wide, and that a line is high, for each point of its
size.
"""
_STYLE: Any = {  # matplotlib names its settings in a type that changes with every release
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text: readable by programs and by those who cannot see
    "svg.hashsalt": "pictures",  # equal records give equal bytes
    "path.simplify": False,
}
_HOVER = "hover: "  # before a mark's text in its id, until that becomes its title
_DARK = "@media (prefers-color-scheme: dark) {svg{filter: invert(0.93) hue-rotate(180deg)}}"
_ARROW = (
    (-1.0, 0.14),
    (0.1, 0.14),
    (0.1, 0.55),
    (1.0, 0.0),
    (0.1, -0.55),
    (0.1, -0.14),
    (-1.0, -0.14),
    (-1.0, 0.14),
)


def check_suffix(path: Path) -> None:
    if path.suffix.lower() not in (".svg", ".png"):
        raise Refusal(f"cannot draw into {path}; pass a file that ends in .svg or .png")


def save(chart: Chart, path: Path) -> None:
    """Write the chart as its suffix says."""
    if path.suffix.lower() == ".svg":
        write_whole(path, svg_of(chart).encode())
    else:
        write_whole(path, _rendered(chart, format="png", dpi=160, metadata={"Software": None}))


def _rendered(chart: Chart, **options: Any) -> bytes:
    content = io.BytesIO()
    with _styled():
        draw_chart(chart).savefig(content, **options)
    return content.getvalue()


def svg_of(chart: Chart) -> str:
    """The chart as an SVG whose marks have titles, in few bytes; it is dark if its reader prefers
    that.
    """
    content = _rendered(chart, format="svg", metadata={"Date": None, "Creator": None})
    svg = terminal_lines(content.decode())  # whatever a record holds
    svg = re.sub(rf'<g id="{_HOVER}([^"]*)">', r"<g><title>\1</title>", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d{3})\d+", r"\1", tag[0]), svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{" ".join(path[1].split())}"', svg)
    svg = re.sub(
        r' transform="rotate\(-0 [^"]*\)"|; stroke-linejoin: miter|font-family: [^;"]*; ?', "", svg
    )
    svg = re.sub(r"^ +", "", svg, flags=re.MULTILINE)
    svg = svg.replace(
        '<style type="text/css">', f'<style type="text/css">text{{font-family: {FONTS}}} {_DARK}', 1
    )
    title = html_text(chart.title)
    return re.sub(
        r"(<svg [^>]*)>", lambda tag: f'{tag[1]} role="img">\n<title>{title}</title>', svg, count=1
    )


def same_picture(one: Path, other: Path) -> bool:
    """Whether two SVGs exist and have the same words, and marks within half a point of each
    other.
    """
    if not (one.exists() and other.exists()):
        return False
    words, places = zip(*(_content(path.read_text()) for path in (one, other)), strict=True)
    if words[0] != words[1] or len(places[0]) != len(places[1]):
        return False
    return all(abs(ours - theirs) <= 0.5 for ours, theirs in zip(*places, strict=True))


def _content(svg: str) -> tuple[list[str], list[float]]:
    """The texts of an SVG with the letters of its paths, and the coordinates of paths and
    markers.
    """
    marks = " ".join(
        re.findall(r' (d="[^"]*")', svg) + re.findall(r'<use [^>]*(x="[^"]*" y="[^"]*")', svg)
    )
    texts = [*re.findall(r">([^<>]*\S[^<>]*)<", svg), *re.findall("[A-Za-z]", marks)]
    return texts, list(map(float, re.findall(r"-?\d+(?:\.\d+)?", marks)))


@contextlib.contextmanager
def _styled() -> Iterator[None]:
    """matplotlib's settings while something is drawn or written."""
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that matplotlib's font lacks: an SVG leaves the choice of font to its
        # reader.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


Block = tuple[float, Callable[["Figure", float], Any]]
"""A part of a figure over its whole width: its height, and what draws it below a place, both in
inches.
"""


def draw_chart(chart: Chart) -> Figure:
    """The chart as a figure of matplotlib."""
    from matplotlib.figure import Figure

    notes = at_most(MOST_NOTES, chart.notes, "python -m harness.table --notes")
    panels = [
        panel
        if isinstance(panel.y, Axis)
        else panel._replace(y=[_wrapped(name, LABEL) for name in panel.y])
        for panel in chart.panels
    ]
    lefts, rights = zip(*map(_margins, panels), strict=True)
    left, width = max(lefts), WIDTH - 2 * EDGE - max(lefts) - chart.margin - max(rights)
    blocks = [_text([chart.title], TITLE, INK, 0.02), _text(chart.caption, SMALL, FAINT, 0.0)]
    blocks += [_key(chart)] if chart.key else []
    for panel in panels:
        blocks += [_text([panel.title], LABEL, INK, 0.1), _axes(panel, left, width, chart)]
    blocks.append(_text(notes, SMALL, FAINT))
    height = 2 * EDGE + sum(high for high, _ in blocks)
    figure = Figure(figsize=(WIDTH, height), facecolor=CARD)
    top = height - EDGE
    with _styled():
        for high, draw in blocks:
            draw(figure, top)
            top -= high
    return figure


def _wrapped(text: str, size: float, inches: float = WIDEST_LABEL) -> str:
    """The text on lines of that width; a longer name is broken after an underscore, or not at all.

    >>> _wrapped("cython_fine_grained_emhash8 n^0.90", 8.5, 1.5).split()
    ['cython_fine_', 'grained_emhash8', 'n^0.90']
    """
    letters = int(inches / (_LETTER * size))
    text = re.sub(rf"\S{{{letters + 1},}}", lambda name: name[0].replace("_", "_ "), text)
    lines = textwrap.wrap(text, letters, break_long_words=False)
    return "\n".join(line.replace("_ ", "_") for line in lines)


def _width(text: str, size: float) -> float:
    """About how many inches a text is wide."""
    return max(map(len, text.split("\n"))) * _LETTER * size


def _margins(panel: Panel) -> tuple[float, float]:
    """The inches that the names at its left and the texts at its right take."""
    left = 0.72 if isinstance(panel.y, Axis) else 0.1 + max(_width(name, LABEL) for name in panel.y)
    series = [
        _wrapped(each.text, SMALL)
        for each in panel.marks
        if isinstance(each, Label) and each.series
    ]
    return left, max((_width(text, SMALL) + 0.3 for text in series), default=0.0)


def _text(lines: Sequence[str], size: float, colour: str, above: float = 0.06) -> Block:
    text = "\n".join(_wrapped(line, size, WIDTH - 2 * EDGE) for line in lines)
    weight = "bold" if size == TITLE else "normal"

    def draw(figure: Figure, top: float) -> None:
        place: Any = {"va": "top", "linespacing": 1.4, "transform": figure.dpi_scale_trans}
        figure.text(EDGE, top - above, text, fontsize=size, color=colour, weight=weight, **place)

    return above + _LINE * size * (text.count("\n") + 1) if text else 0.0, draw


def _key(chart: Chart) -> Block:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    columns = int(
        (WIDTH - 2 * EDGE) / (0.5 + max(_width(entry.text, SMALL) for entry in chart.key))
    )
    columns = min(max(1, columns), len(chart.key))
    marker: Any = {
        "linestyle": "none",
        "markersize": 7.0,
        "markeredgewidth": 0.7,
        "markeredgecolor": CARD,
    }
    handles = [
        Patch(color=entry.colour, label=entry.text)
        if entry.marker is None
        else Line2D([], [], color=entry.colour, marker=entry.marker, label=entry.text, **marker)
        for entry in chart.key
    ]

    def draw(figure: Figure, top: float) -> None:
        figure.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(EDGE, top - 0.1), ncols=columns, frameon=False,
            bbox_transform=figure.dpi_scale_trans, fontsize=SMALL, labelcolor=INK, borderpad=0, borderaxespad=0,
            handletextpad=0.5, columnspacing=1.4, handlelength=1.4,
        )  # fmt: skip

    return 0.1 + 0.17 * -(-len(chart.key) // columns), draw


def _axes(panel: Panel, left: float, width: float, chart: Chart) -> Block:
    """The axes of a panel with its marks."""
    high = chart.height
    if not isinstance(panel.y, Axis):
        lines = max(name.count("\n") + 1 for name in panel.y)
        high = len(panel.y) * max(chart.step, 0.16 * lines + 0.04)

    def draw(figure: Figure, top: float) -> None:
        wide, total = figure.get_size_inches()
        place = ((EDGE + left) / wide, (top - 0.08 - high) / total, width / wide, high / total)
        _draw_panel(figure.add_axes(place, facecolor=CARD), panel, (width, high))

    return 0.08 + high + (0.46 if panel.x.title else 0.28), draw


def _draw_panel(axes: Axes, panel: Panel, inches: tuple[float, float]) -> None:
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", color=FAINT, labelcolor=FAINT, labelsize=SMALL, width=0.6)
    axes.spines[:].set(color=FAINT, linewidth=0.6, visible=False)
    axes.spines[["bottom", "left"] if isinstance(panel.y, Axis) else ["bottom"]].set_visible(True)
    _draw_axis(axes, "x", panel.x, inches[0])
    if isinstance(panel.y, Axis):
        _draw_axis(axes, "y", panel.y, inches[1])
    else:
        axes.set_ylim(len(panel.y) - 0.5, -0.5)
        axes.set_yticks(range(len(panel.y)), panel.y)
        axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=LABEL)
        for place, label in enumerate(axes.get_yticklabels()):
            label.set_fontweight("bold" if place in panel.bold else "normal")
    axes.grid(axis="both" if isinstance(panel.y, Axis) else "x", color=LINE, linewidth=0.6)
    for mark in panel.marks:
        _draw_mark(axes, mark)
    _draw_labels(axes, [mark for mark in panel.marks if isinstance(mark, Label)], inches)


def _draw_mark(axes: Axes, mark: Mark) -> None:
    """Draw it, unless it is a label: these are drawn together."""
    style: dict[str, Any]
    if isinstance(mark, Point):
        _draw_point(axes, mark)
    elif isinstance(mark, Bar):
        style = {"color": mark.colour, "linewidth": 0}
        if mark.open:
            style = {
                "facecolor": "none",
                "edgecolor": mark.colour,
                "linewidth": 1.2,
                "linestyle": (0, (3, 2)),
            }
        (bar,) = axes.barh(mark.y, mark.end - mark.start, 0.68, mark.start, clip_on=False, **style)
        bar.set_gid(_HOVER + mark.hover)
    elif isinstance(mark, Text):
        axes.annotate(
            mark.text, (mark.x, mark.y), (mark.offset, 0), textcoords="offset points", va="center", fontsize=SMALL,
            style=mark.style, weight=mark.weight, color=mark.colour, annotation_clip=False,
        )  # fmt: skip
    elif isinstance(mark, Line):
        dash: Any = (0, (5, 2)) if mark.dash == "--" else mark.dash
        style = {
            "drawstyle": "steps-post" if mark.steps else "default",
            "linestyle": dash,
            "linewidth": 1.1,
        }
        axes.plot(*zip(*mark.points, strict=True), color=mark.colour, alpha=0.8, zorder=2, **style)


def _draw_point(axes: Axes, point: Point) -> None:
    """A marker with its interval: estimates are hollow."""
    colour, time, style = point.look.colour, point.time, dict[str, Any]()
    if time.low is not None and time.high is not None:
        ends, place = [time.low, time.high], [point.x if point.upright else point.y] * 2
        dash: Any = (0, (2, 1.2)) if time.form == ESTIMATED else "-"
        style = {
            "color": colour,
            "linewidth": 1.4,
            "linestyle": dash,
            "clip_on": False,
            "zorder": 3,
        }
        axes.plot(*((place, ends) if point.upright else (ends, place)), **style)
    style = {
        "marker": point.look.marker,
        "markersize": 7.0,
        "markeredgewidth": 0.7,
        "markeredgecolor": CARD,
    }
    if time.form == ESTIMATED:
        style |= {"markerfacecolor": CARD, "markeredgecolor": colour, "markeredgewidth": 1.3}
    elif time.form == AT_LEAST:
        style |= {"marker": _ARROW, "markersize": 9.8, "markeredgecolor": colour}
    (marker,) = axes.plot(
        [point.x], [point.y], color=colour, linestyle="none", clip_on=False, zorder=4, **style
    )
    marker.set_gid(f"{_HOVER}{point.name}: {time.text}")


def _draw_labels(axes: Axes, labels: Sequence[Label], inches: tuple[float, float]) -> None:
    """Names above their points or at the right edge, a line apart, each with a line to its
    point.
    """
    placed = []
    for label in labels:
        x, y = (axes.transData + axes.transAxes.inverted()).transform((label.x, label.y))
        placed.append((float(y) + (0.0 if label.series else 0.12 / inches[1]), float(x), label))
    placed.sort(key=lambda each: each[:2])
    texts = [_wrapped(label.text, SMALL) if label.series else label.text for *_, label in placed]
    lines = 1 + max((text.count("\n") for text in texts), default=0)
    levels = _apart([y for y, *_ in placed], lines * _LINE * SMALL * 0.85 / inches[1])
    for (_, x, label), text, level in zip(placed, texts, levels, strict=True):
        half = _width(text, SMALL) / 2 / inches[0]
        place = 1 + 0.2 / inches[0] if label.series else max(half, min(x, 1 - half))
        line = {
            "arrowstyle": "-",
            "color": label.colour,
            "linewidth": 0.6,
            "shrinkA": 1,
            "shrinkB": 4,
        }
        axes.annotate(
            text, (label.x, label.y), (place, level), textcoords="axes fraction", fontsize=SMALL, color=INK,
            ha="left" if label.series else "center", va="center", annotation_clip=False, zorder=5,
            arrowprops={**line, "relpos": (0, 0.5) if label.series else (0.5, 0)},
        )  # fmt: skip


def _apart(places: Sequence[float], step: float) -> list[float]:
    """Places near those given in ascending order, at least `step` apart, and at most 1.

    >>> _apart([0.0, 0.75, 0.75], 0.25)
    [0.0, 0.75, 1.0]
    >>> _apart([1.0, 1.0], 0.25)
    [0.75, 1.0]
    """
    upwards = list(itertools.accumulate(places, lambda below, place: max(place, below + step)))
    tops = [1 - step * rank for rank in reversed(range(len(places)))]
    return [min(place, top) for place, top in zip(upwards, tops, strict=True)]


def _draw_axis(axes: Axes, side: str, axis: Axis, inches: float) -> None:
    """Limits, a scale, ticks on round numbers, and what the numbers are of."""
    from matplotlib.ticker import FixedLocator, Locator, MaxNLocator, NullLocator

    place, scale = (axes.xaxis if side == "x" else axes.yaxis), "log" if axis.log else "linear"
    axes.set(**{f"{side}scale": scale, f"{side}lim": (axis.low, axis.high)})
    ticks: Locator = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    if axis.log:
        ticks = FixedLocator(_log_ticks(axis.low, axis.high, max(3, int(inches / 0.7))))
    place.set_major_locator(ticks)
    place.set_minor_locator(NullLocator())
    place.set_major_formatter(lambda number, _: _tick_text(number, axis.bytes))
    title = f"{axis.title} (log scale)" if axis.title and axis.log else axis.title
    place.set_label_text(title, color=FAINT, fontsize=SMALL)


def _tick_text(number: float, is_size: bool) -> str:
    """
    >>> [_tick_text(number, False) for number in (0.001, 2.0, 1500.0)], _tick_text(250_000, True)
    (['0.001', '2', '1,500'], '250 kB')
    """
    if is_size:
        text, scale = bytes_text(round(number)).split(" ")
        return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {scale}"
    if number >= 1e6:
        return f"{number / 1e6:g}M"
    return f"{number:,.0f}" if number >= 1000 else f"{number:.10f}".rstrip("0").rstrip(".")


def _log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers between the two, evenly spread, or on a linear scale if they are close
    together.

    >>> _log_ticks(0.002, 30), _log_ticks(19, 41)
    ([0.01, 0.1, 1.0, 10.0], [20.0, 25.0, 30.0, 35.0, 40.0])
    """
    from matplotlib.ticker import MaxNLocator

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 2, 4)):
        round_numbers = [round(step * 10.0**decade, 12) for decade in decades for step in steps]
        ticks = [tick for tick in round_numbers if low <= tick <= high]
        if len(ticks) >= 3:
            return ticks[:: max(1, math.ceil(len(ticks) / most))]
    return [float(tick) for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
