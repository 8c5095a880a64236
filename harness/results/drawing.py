"""Charts drawn by matplotlib into an SVG that follows its reader's theme, or a PNG: equal charts give equal bytes.

Charts are narrow, so that they can be read on a phone. Panels stand below each other. Every text is made harmless here,
whatever a record holds.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from harness.common.console import html_texts, terminal_texts
from harness.common.errors import Refusal
from harness.common.files import write_whole
from harness.common.units import bytes_text
from harness.results.chart import (
    BAND,
    CARD,
    DARK,
    FAINT,
    INK,
    LINE,
    Axis,
    Bar,
    Chart,
    Dots,
    Label,
    Mark,
    Panel,
    Point,
    Text,
)
from harness.results.legend import at_most
from harness.results.rows import AT_LEAST, ESTIMATED, UNCONFIRMED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, EDGE, LINE_HEIGHT, TITLE_HEIGHT = 6.0, 0.12, 0.2, 0.24
WIDEST_LABEL, MOST_NOTES = 2.1, 4
TITLE, LABEL, SMALL = 12.5, 9.5, 8.5
FONTS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_LETTER = 0.0082
"""Inches that a letter of matplotlib's font is wide, for each point of its size."""
_STYLE: Any = {  # matplotlib names its settings in a type that changes with every release
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text: readable by programs and by those who cannot see
    "svg.hashsalt": "pictures",  # equal records give equal bytes
    "path.simplify": False,
}
_ARROW = ((-1.0, 0.14), (0.1, 0.14), (0.1, 0.55), (1.0, 0.0), (0.1, -0.55), (0.1, -0.14), (-1.0, -0.14), (-1.0, 0.14))
_NAMESPACE = "{http://www.w3.org/2000/svg}"


def check_suffix(path: Path) -> None:
    if path.suffix.lower() not in (".svg", ".png"):
        raise Refusal(f"cannot draw into {path}; pass a file that ends in .svg or .png")


def save(chart: Chart, path: Path) -> None:
    """Write the chart as its suffix says."""
    check_suffix(path)
    if path.suffix.lower() == ".svg":
        write_whole(path, svg_of(chart).encode())
        return
    content = io.BytesIO()
    with _styled():
        draw_chart(chart).savefig(content, format="png", dpi=160, metadata={"Software": None})
    write_whole(path, content.getvalue())


def svg_of(chart: Chart) -> str:
    """The chart as an SVG whose named marks have titles; it is dark if its reader prefers that."""
    content = io.BytesIO()
    with _styled():
        draw_chart(chart).savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    hovers = {mark.name: mark.hover for panel in chart.panels for mark in panel.marks if mark.name and mark.hover}
    title, *texts = html_texts([chart.title, *hovers.values()])
    titles = dict(zip(hovers, texts, strict=True))
    svg = _smaller(content.getvalue().decode())
    svg = re.sub(r"(<svg [^>]*)>", lambda tag: f'{tag[1]} role="img">\n<title>{title}</title>', svg, count=1)

    def titled(tag: re.Match[str]) -> str:
        return f"{tag[0]}<title>{titles[tag[1]]}</title>" if tag[1] in titles else tag[0]

    return _following(re.sub(r'<g id="([\w-]+)">', titled, svg))


def _smaller(svg: str) -> str:
    """The same drawing in fewer bytes: a thousandth of a point is enough, and a font is named once.

    >>> _smaller('<path d="M 1.23456 2 \\nL 3 4.5000001 \\n"/>')
    '<path d="M 1.234 2 L 3 4.500"/>'
    """
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d{3})\d+", r"\1", tag[0]), svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{" ".join(path[1].split())}"', svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", svg)
    svg = svg.replace("; stroke-linejoin: miter", "")
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    svg = re.sub(r"^ +", "", svg, flags=re.MULTILINE)
    return svg.replace('<style type="text/css">', f'<style type="text/css">text{{font-family: {FONTS}}} ', 1)


def _following(svg: str) -> str:
    """The SVG with a style sheet for readers who prefer dark pages."""
    rules = [
        f'[style*="{attribute}: {light}"]{{{attribute}:{dark} !important}}'
        for light, dark in sorted(DARK.items())
        for attribute in ("fill", "stroke")
        if f"{attribute}: {light}" in svg
    ]
    sheet = "\n".join(["@media (prefers-color-scheme: dark) {", *rules, "}"])
    return svg.replace("</style>", f"\n{sheet}\n</style>", 1)


def same_picture(one: Path, other: Path) -> bool:
    """Whether two SVGs have the same words and named marks within half a point; other files have to be equal."""
    try:
        (words, places), (other_words, other_places) = _content(one), _content(other)
    except ElementTree.ParseError:
        return one.read_bytes() == other.read_bytes()
    pairs = [(numbers, other_places.get(name, ())) for name, numbers in places.items()]
    return (words, places.keys()) == (other_words, other_places.keys()) and all(
        len(ours) == len(theirs) and all(abs(a - b) <= 0.5 for a, b in zip(ours, theirs, strict=True))
        for ours, theirs in pairs
    )


def _content(path: Path) -> tuple[list[str], dict[str, list[float]]]:
    """The texts of an SVG, and the coordinates below every id of ours: those with a dash."""
    root = ElementTree.parse(path).getroot()
    words = [element.text or "" for tag in ("text", "title") for element in root.iter(f"{_NAMESPACE}{tag}")]
    places: dict[str, list[float]] = {}
    for group in root.iter(f"{_NAMESPACE}g"):
        if re.fullmatch(r"[a-z]+(-[\w-]+)+", group.get("id") or ""):
            texts = [element.get(name) or "" for element in group.iter() for name in ("x", "y")]
            texts += [element.get("d") or "" for element in group if element.tag == f"{_NAMESPACE}path"]
            places[group.get("id") or ""] = list(map(float, re.findall(r"-?\d+(?:\.\d+)?", " ".join(texts))))
    return words, places


def draw_chart(chart: Chart) -> Figure:
    """The chart as a figure of matplotlib."""
    texts: list[str] = []
    _mapped(chart, texts.append)
    harmless = dict(zip(texts, terminal_texts(texts), strict=True))
    with _styled():
        return _drawn(_mapped(chart, harmless.__getitem__))


def _mapped(part: Any, change: Callable[[str], Any]) -> Any:
    """A part of a chart with all of its texts changed."""
    if isinstance(part, str):
        return change(part)
    if not isinstance(part, list | tuple):
        return part
    parts = [_mapped(each, change) for each in part]
    return type(part)(*parts) if hasattr(part, "_fields") else parts


@contextlib.contextmanager
def _styled() -> Iterator[None]:
    """matplotlib's settings while something is drawn or written."""
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that matplotlib's font lacks: an SVG leaves the choice of font to its reader.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def text_width(text: str, size: float) -> float:
    """About how many inches a text is wide.

    >>> text_width("heap", 10) < text_width("堆堆堆堆", 10)
    True
    """
    widths = [
        sum(1.7 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in line)
        for line in text.split("\n")
    ]
    return max(widths) * _LETTER * size


def _wrapped(texts: Sequence[str], size: float, inches: float) -> list[str]:
    letters = max(8, int(inches / (_LETTER * size)))
    return [line for text in texts for line in textwrap.wrap(text, letters) or [""]]


def _drawn(chart: Chart) -> Figure:
    from matplotlib.figure import Figure

    room = WIDTH - 2 * EDGE
    title = _wrapped([chart.title], TITLE, room)
    fewer_notes = at_most(MOST_NOTES, chart.notes, "python -m harness.table --notes")
    caption, notes = (_wrapped(lines, SMALL, room) for lines in (chart.caption, fewer_notes))
    key_columns = max(1, int(room / (max((text_width(entry.text, SMALL) for entry in chart.key), default=0) + 0.5)))
    key_height = 0.17 * -(-len(chart.key) // key_columns) + (0.1 if chart.key else 0.0)
    above = EDGE + TITLE_HEIGHT * len(title) + LINE_HEIGHT * len(caption) + 0.06 + key_height
    panels, sizes, lefts, rights = zip(*(_sized(panel, chart) for panel in chart.panels), strict=True)
    titles = [_wrapped([panel.title], LABEL, room) if panel.title else [] for panel in panels]
    heights = [
        (0.1 + LINE_HEIGHT * len(lines) if lines else 0.06, size, 0.54 if panel.x.title else 0.3)
        for panel, lines, size in zip(panels, titles, sizes, strict=True)
    ]
    below = LINE_HEIGHT * len(notes) + (0.12 if notes else 0.0)
    height = above + sum(map(sum, heights)) + below
    figure = Figure(figsize=(WIDTH, height), facecolor=CARD)
    left, right = max(lefts), chart.margin + max(rights)

    def write(lines: Sequence[str], top: float, size: float, colour: str, step: float = LINE_HEIGHT) -> None:
        weight = "bold" if size == TITLE else "normal"
        for number, line in enumerate(lines):
            place = (EDGE / WIDTH, 1 - (top + (number + 0.5) * step) / height)
            figure.text(*place, line, fontsize=size, color=colour, weight=weight, va="center")

    write(title, EDGE, TITLE, INK, TITLE_HEIGHT)
    write(caption, EDGE + TITLE_HEIGHT * len(title), SMALL, FAINT)
    write(notes, height - below + 0.06, SMALL, FAINT)
    _draw_key(figure, chart, key_columns, 1 - (above - key_height) / height)
    top = above
    for panel, lines, (titled, high, axis) in zip(panels, titles, heights, strict=True):
        inches = (room - left - right, high)
        bounds = ((EDGE + left) / WIDTH, 1 - (top + titled + high) / height, inches[0] / WIDTH, high / height)
        write(lines, top + 0.04, LABEL, INK)
        _draw_panel(figure.add_axes(bounds, facecolor=CARD), panel, inches)
        top += titled + high + axis
    return figure


def _sized(panel: Panel, chart: Chart) -> tuple[Panel, float, float, float]:
    """The panel with its long names on several lines, its height, and the room for texts at its left and right."""
    names = [
        text_width(_series_text(each), SMALL) + 0.2 for each in panel.marks if isinstance(each, Label) and each.line
    ]
    margins = [text_width(each.text, SMALL) for each in panel.marks if isinstance(each, Text) and each.x is None]
    right = max([*names, *margins], default=0.0)
    if isinstance(panel.y, Axis):
        return panel, chart.height, 0.72, right
    lines = [_wrapped([name], LABEL, WIDEST_LABEL) for name in panel.y]
    step = max(chart.step, 0.16 * max(map(len, lines), default=1) + 0.04)
    short = ["\n".join(texts) for texts in lines]
    left = max((text_width(name, LABEL) for name in short), default=0.0) + 0.1
    return panel._replace(y=short), max(1, len(lines)) * step, left, right


def _series_text(label: Label) -> str:
    return "\n".join(_wrapped([label.text], SMALL, WIDEST_LABEL))


def _draw_key(figure: Figure, chart: Chart, columns: int, top: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marker = {"linestyle": "none", "markersize": 7.0, "markeredgewidth": 0.7, "markeredgecolor": CARD}
    handles: list[Any] = [
        Patch(color=entry.colour, label=entry.text)
        if entry.marker is None
        else Line2D([], [], color=entry.colour, marker=entry.marker, label=entry.text, **marker)  # type: ignore[arg-type]
        for entry in chart.key
    ]
    if handles:
        legend = figure.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(EDGE / WIDTH, top), ncols=min(columns, len(handles)),
            frameon=False, fontsize=SMALL, labelcolor=INK, borderpad=0, borderaxespad=0, handletextpad=0.5,
            columnspacing=1.4, handlelength=1.4,
        )  # fmt: skip
        legend.set_gid("key")


def _draw_panel(axes: Axes, panel: Panel, inches: tuple[float, float]) -> None:
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", color=FAINT, labelcolor=FAINT, labelsize=SMALL, width=0.6)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom" or (side == "left" and isinstance(panel.y, Axis)))
        spine.set_color(FAINT)
        spine.set_linewidth(0.6)
    _draw_axis(axes, "x", panel.x, inches[0])
    if isinstance(panel.y, Axis):
        _draw_axis(axes, "y", panel.y, inches[1])
        axes.grid(color=LINE, linewidth=0.6)
    else:
        axes.set_ylim(len(panel.y) - 0.5, -0.5)
        axes.set_yticks(range(len(panel.y)), panel.y)
        axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=LABEL)
        for place, label in enumerate(axes.get_yticklabels()):
            label.set_fontweight("bold" if place in panel.bold else "normal")
        axes.grid(axis="x", color=LINE, linewidth=0.6)
    if panel.band is not None:
        axes.axvspan(*panel.band, color=BAND, zorder=0)
    for mark in panel.marks:
        drawn = _draw_mark(axes, mark)
        if drawn is not None and mark.name:
            drawn.set_gid(mark.name)
    _name_series(axes, [mark for mark in panel.marks if isinstance(mark, Label) and mark.line], inches)
    _name_points(axes, panel.marks, inches)


def _draw_mark(axes: Axes, mark: Mark) -> Any:
    """Draw it and return what can be found in the SVG."""
    if isinstance(mark, Point):
        return _draw_point(axes, mark)
    if isinstance(mark, Bar):
        fill: dict[str, Any] = {"color": mark.colour, "linewidth": 0}
        if mark.open:
            fill = {"facecolor": "none", "edgecolor": mark.colour, "linewidth": 1.2, "linestyle": (0, (3, 2))}
        return axes.barh(mark.y, mark.end - mark.start, 0.68, mark.start, clip_on=False, **fill)[0]
    if isinstance(mark, Text):
        where: Any = ((1.0, mark.y), axes.get_yaxis_transform()) if mark.x is None else ((mark.x, mark.y), "data")
        return axes.annotate(
            mark.text, where[0], (mark.offset, 0), xycoords=where[1], textcoords="offset points",
            va="center", fontsize=SMALL, style=mark.style, weight=mark.weight, color=mark.colour, annotation_clip=False,
        )  # fmt: skip
    if isinstance(mark, Dots):
        style: dict[str, Any] = {"marker": "o", "markersize": 3.4, "markeredgewidth": 0, "linestyle": "none"}
        return axes.plot(mark.xs, [mark.y] * len(mark.xs), color=mark.colour, alpha=0.45, zorder=2, **style)[0]
    if isinstance(mark, Label):
        return None  # named when everything is drawn
    xs, ys = zip(*mark.points, strict=True)
    dash: Any = (0, (5, 2)) if mark.dash == "--" else mark.dash
    style = {"drawstyle": "steps-post" if mark.steps else "default", "linestyle": dash, "linewidth": 1.1}
    return axes.plot(xs, ys, color=mark.colour, alpha=0.8, zorder=2, **style)[0]


def _draw_point(axes: Axes, point: Point) -> Any:
    if point.low is not None and point.high is not None:
        ends, place = [point.low, point.high], [point.x if point.upright else point.y] * 2
        dash: Any = (0, (2, 1.2)) if point.form == ESTIMATED else "-"
        style = {"color": point.look.colour, "linewidth": 1.4, "linestyle": dash, "clip_on": False, "zorder": 3}
        (line,) = axes.plot(*((place, ends) if point.upright else (ends, place)), **style)
        line.set_gid(f"interval-{point.name}" if point.name else None)
    return axes.plot([point.x], [point.y], linestyle="none", clip_on=False, zorder=4, **_marker(point))[0]


def _marker(point: Point) -> dict[str, Any]:
    """The settings of the marker of one figure: estimates are hollow, unproved ones half filled."""
    colour = point.look.colour
    plain: dict[str, Any] = {"marker": point.look.marker, "markersize": 7.0, "color": colour}
    plain |= {"markeredgewidth": 0.7, "markeredgecolor": CARD}
    if point.hollow or point.form == ESTIMATED:
        return plain | {"markerfacecolor": CARD, "markeredgecolor": colour, "markeredgewidth": 1.3}
    if point.form == UNCONFIRMED:
        return plain | {"fillstyle": "left", "markerfacecoloralt": CARD, "markeredgecolor": colour}
    if point.form == AT_LEAST:
        return plain | {"marker": _ARROW, "markersize": 9.8, "markeredgecolor": colour}
    return plain


def _draw_axis(axes: Axes, side: str, axis: Axis, inches: float) -> None:
    """Limits, a scale, ticks on round numbers, and what the numbers are of."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

    place, limit = (axes.xaxis, axes.set_xlim) if side == "x" else (axes.yaxis, axes.set_ylim)
    if axis.log:
        (axes.set_xscale if side == "x" else axes.set_yscale)("log")
        ticks = _log_ticks(axis.low, axis.high, max(3, int(inches / 0.7)))
    else:
        numbers = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(axis.low, axis.high)
        ticks = [tick for tick in numbers if axis.low <= tick <= axis.high]
    limit(axis.low, axis.high)
    place.set_major_locator(FixedLocator(ticks))
    place.set_major_formatter(FixedFormatter([_tick_text(tick, axis.unit) for tick in ticks]))
    place.set_minor_locator(NullLocator())
    scale = " (log scale)" if axis.log else ""
    place.set_label_text(f"{axis.title}{scale}" if axis.title else "", color=FAINT, fontsize=SMALL)


def _tick_text(number: float, unit: str) -> str:
    """
    >>> [_tick_text(number, "number") for number in (0.001, 2.0, 1500.0)], _tick_text(250_000, "bytes")
    (['0.001', '2', '1,500'], '250 kB')
    """
    if unit == "bytes":
        text, scale = bytes_text(round(number)).split(" ")
        return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {scale}"
    if number >= 1e6:
        return f"{number / 1e6:g}M"
    return f"{number:,.0f}" if number >= 1000 else f"{number:.10f}".rstrip("0").rstrip(".")


def _log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers between the two, evenly spread.

    >>> _log_ticks(0.002, 30)
    [0.01, 0.1, 1.0, 10.0]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
        round_numbers = [round(step * 10.0**decade, 12) for decade in decades for step in steps]
        ticks = [tick for tick in round_numbers if low <= tick <= high]
        if len(ticks) >= 3:
            break
    return ticks[:: max(1, math.ceil(len(ticks) / most))]


def _spread(places: Sequence[float], step: float) -> list[float]:
    """Places near those wished, from 0 to 1, at least `step` apart, in the same order.

    >>> _spread([0.5, 0.5, 0.0], 0.25)
    [0.375, 0.625, 0.0]
    """
    order = sorted(range(len(places)), key=lambda place: places[place])
    step, last = min(step, 1 / max(1, len(order) - 1)), len(order) - 1
    wishes = [places[place] for place in order]
    upwards = itertools.accumulate(wishes, lambda below, wish: max(wish, below + step))
    downwards = list(itertools.accumulate(wishes[::-1], lambda above, wish: min(wish, above - step)))[::-1]
    middles = [(high + low) / 2 for high, low in zip(upwards, downwards, strict=True)]
    spread = [min(max(middle, rank * step), 1 - (last - rank) * step) for rank, middle in enumerate(middles)]
    named = dict(zip(order, spread, strict=True))
    return [named[place] for place in range(len(places))]


def _name_series(axes: Axes, labels: Sequence[Label], inches: tuple[float, float]) -> None:
    """Names at the right edge of a panel, each with a line to its end."""
    places = [_place_in(axes, label.x, label.y) for label in labels]
    texts = [_series_text(label) for label in labels]
    lines = 1 + max((text.count("\n") for text in texts), default=0)
    levels = _spread([min(1.0, max(0.0, y)) for _, y in places], lines * SMALL * 1.3 / 72 / inches[1])
    gap = 0.12 / inches[0]
    style: dict[str, Any] = {"transform": axes.transAxes, "linewidth": 0.6, "alpha": 0.7, "clip_on": False, "zorder": 1}
    for (x, y), level, label, text in zip(places, levels, labels, texts, strict=True):
        axes.plot([x, 1 + gap * 0.25, 1 + gap], [y, level, level], color=label.line, **style)
        axes.text(1 + gap * 1.3, level, text, transform=axes.transAxes, fontsize=SMALL, va="center", color=INK)


def _place_in(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Where in the panel a point is, each way from 0 to 1."""
    across, up = (axes.transData + axes.transAxes.inverted()).transform((x, y))
    return float(across), float(up)


def _name_points(axes: Axes, marks: Sequence[Mark], inches: tuple[float, float]) -> None:
    """Names beside points, each where it hides least: best above and to the right, where no step of a line is."""
    from matplotlib.transforms import Bbox

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = _place_in(axes, x, y)
        return across * inches[0], up * inches[1]

    def overlap(one: Bbox, other: Bbox) -> float:
        shared = Bbox.intersection(one, other)
        return 0.0 if shared is None else shared.width * shared.height

    labels = [mark for mark in marks if isinstance(mark, Label) and mark.line is None]
    intervals = [mark for mark in marks if isinstance(mark, Point) and mark.low and mark.high and not mark.upright]
    taken = [Bbox([place(label.x, label.y)] * 2).padded(0.06) for label in labels]
    taken += [Bbox([place(each.low or 0, each.y), place(each.high or 0, each.y)]).padded(0.02) for each in intervals]
    panel = Bbox.from_bounds(0.0, 0.0, *inches)
    for label in labels:
        (x, y), wide, high = place(label.x, label.y), text_width(label.text, SMALL) * 0.92, SMALL * 1.25 / 72
        corners = [
            *((x + 0.06, y + 0.06), (x + 0.09, y - high / 2), (x - 0.09 - wide, y - high / 2)),
            *((x - wide / 2, y + 0.08), (x - wide / 2, y - 0.08 - high), (x + 0.06, y - 0.06 - high)),
        ]
        boxes = [Bbox.from_bounds(*corner, wide, high) for corner in corners]
        hidden = [sum(overlap(box, each) for each in taken) - 2 * overlap(box, panel) for box in boxes]
        best = min(zip(boxes, hidden, strict=True), key=lambda pair: round(pair[1], 6))[0]
        taken.append(best)
        middle = (best.x0 + best.x1) / 2 / inches[0], (best.y0 + best.y1) / 2 / inches[1]
        style: dict[str, Any] = {"fontsize": SMALL, "color": INK, "ha": "center", "va": "center", "zorder": 5}
        axes.text(*middle, label.text, transform=axes.transAxes, **style)
