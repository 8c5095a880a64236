"""A chart as a figure of matplotlib: where everything stands, in inches, the same in bytes for equal records."""

from __future__ import annotations

import contextlib
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.results.charts.chart import Axis, Chart, Label, Panel
from harness.results.charts.drawing import LETTER, NAMES, draw_panel, key_marks, text_width
from harness.results.colours import CARD, FAINT, INK, LIGHT, LINE, Colour, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE_HEIGHT = 0.19
LABELS, WIDEST_LABEL = 8.5, 3.9
"""Points of the names of lines, and inches: a wider name is broken."""
EDGE = 0.15
_TITLE, _TICKS = 0.3, 0.55
"""Inches above a panel for its title, and below it for its axis and what parts it from the next."""

_STYLE: Any = {  # matplotlib names its settings in a type that changes with every release
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.fonttype": "none",  # text stays text: readable by programs and by those who cannot see
    "svg.hashsalt": "pictures",  # equal records give equal bytes
    "hatch.linewidth": 0.6,
    "path.simplify": False,
}


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """matplotlib's settings while something is drawn or written."""
    import matplotlib

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that matplotlib's font lacks: an SVG leaves the choice of font to its reader.
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)
        yield


def wrapped(lines: Sequence[str], size: float, width: float) -> list[str]:
    """The lines, those that are wider than the page broken."""
    letters = max(20, int((width - 2 * EDGE) / (LETTER * size)))
    return [part for line in lines for part in textwrap.wrap(line, letters)]


def figure_of(chart: Chart, theme: Theme = LIGHT) -> Figure:
    """The chart, drawn."""
    with styled():
        return _drawn(chart, theme)


def _drawn(chart: Chart, theme: Theme) -> Figure:
    from matplotlib.figure import Figure

    chart = _with_labels_that_fit(chart)
    grid, page = Grid(chart), chart.width
    caption, notes = wrapped(chart.caption, 8.5, page), wrapped(chart.notes, 8, page)
    key = key_marks(chart.key, theme)
    widest = max((text_width(entry.text, 8) for entry in chart.key), default=0.0) + 0.42
    key_columns = max(1, min(len(key), int((page - 2 * EDGE) / widest)))
    key_height = 1.05 * LINE_HEIGHT * -(-len(key) // key_columns)
    above = LINE_HEIGHT * (len(caption) + 2.4) + (key_height + 0.08 if key else 0)
    below = LINE_HEIGHT * (len(notes) + 0.9) if notes else 0.1
    height = above + grid.height + below
    figure = Figure(figsize=(page, height), facecolor=theme.of(CARD))

    def write(lines: Sequence[str], top: float, size: float, colour: Colour, weight: str = "normal") -> None:
        """Lines of text from `top`, in inches from the figure's lower edge, downwards."""
        for number, line in enumerate(lines):
            y = (top - number * LINE_HEIGHT) / height
            figure.text(EDGE / page, y, line, fontsize=size, color=theme.of(colour), weight=weight, va="center")

    write([chart.title], height - LINE_HEIGHT, 12, INK, "bold")
    write(caption, height - 2.3 * LINE_HEIGHT, 8.5, FAINT)
    write(notes, below - 0.9 * LINE_HEIGHT, 8, FAINT)
    if key:
        legend = figure.legend(
            handles=key,
            loc="upper left",
            bbox_to_anchor=(EDGE / page - 0.004, (height - above + key_height + 0.12) / height),
            ncols=key_columns,
            frameon=False,
            fontsize=8,
            labelcolor=theme.of(INK),
            borderpad=0,
            handletextpad=0.5,
            columnspacing=1.4,
            handlelength=1.6,
        )
        legend.set_gid("key")
    for panel, (left, top, wide, high) in zip(chart.panels, grid.places, strict=True):
        bounds = (left / page, (height - above - top - high) / height, wide / page, high / height)
        axes = figure.add_axes(bounds, facecolor=theme.of(CARD))
        _dress(axes, panel, theme, grid.label_size)
        beside = len(chart.widths) > 1 and not isinstance(panel.y, Axis) and panel.named and not grid.shared
        # Where two stand side by side a title begins above the names, or it would end beyond the page.
        begins = -0.9 * grid.lefts[0] / wide if beside else 0.0
        narrow = wide < 1.5
        title = panel.title.replace(" ", "\n", 1) if narrow else panel.title
        size, weight = (8, "normal") if narrow else (9, "bold")
        axes.set_title(title, fontsize=size, color=theme.of(INK), loc="left", pad=4, weight=weight, x=begins)
        draw_panel(axes, panel, theme, (wide, high), grid.shared)
    return figure


def _dress(axes: Axes, panel: Panel, theme: Theme, label_size: float) -> None:
    """What axes look like before anything is drawn in them."""
    axes.set_gid(f"panel-{panel.name}")
    axes.set_axisbelow(True)
    axes.tick_params(axis="both", color=theme.of(FAINT), labelcolor=theme.of(FAINT), labelsize=8.5, width=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(theme.of(INK))
        axis.label.set_fontsize(8.5)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom" or (side == "left" and isinstance(panel.y, Axis)))
        spine.set_color(theme.of(FAINT))
        spine.set_linewidth(0.6)
    if isinstance(panel.y, Axis):
        axes.grid(color=theme.of(LINE), linewidth=0.6)
    else:
        axes.set_ylim(len(panel.y) - 0.5, -0.5)
        axes.set_yticks(range(len(panel.y)), panel.y if panel.named else [""] * len(panel.y))
        axes.tick_params(axis="y", length=0, labelcolor=theme.of(INK), labelsize=label_size)
        axes.grid(axis="x", color=theme.of(LINE), linewidth=0.6)


def _with_labels_that_fit(chart: Chart) -> Chart:
    """The chart, with those names broken that would leave the page, or the panels no room."""
    return replace(chart, panels=[_with_broken_labels(panel, chart) for panel in chart.panels])


def _with_broken_labels(panel: Panel, chart: Chart) -> Panel:
    size, most, at_end = _label_size(chart), _widest_label(chart), _widest_end(chart)
    lines = panel.y if isinstance(panel.y, Axis) else [_broken(name, size, most) for name in panel.y]
    marks = [
        replace(mark, text=_broken(mark.text, NAMES, at_end))
        if isinstance(mark, Label) and mark.end is not None
        else mark
        for mark in panel.marks
    ]
    return replace(panel, y=lines, marks=marks)


def _broken(name: str, size: float, inches: float) -> str:
    """
    >>> _broken("heap", 9, 2.0), _broken("an_uncommonly_long_name", 9, 1.0)
    ('heap', 'an_uncommonly\\n_long_name')
    """
    wide = text_width(name, size)
    if wide <= inches:
        return name
    letters = max(1, int(max(map(len, name.split("\n"))) * inches / wide))
    return "\n".join(part for line in name.split("\n") for part in textwrap.wrap(line, letters))


def _label_size(chart: Chart) -> float:
    return LABELS if chart.step > 0.17 else 7.0


def _widest_label(chart: Chart) -> float:
    """The inches that a name of a line may take: less where the names of two columns stand on one page."""
    return 2.6 if len(chart.widths) > 1 and all(panel.named for panel in chart.panels) else WIDEST_LABEL


def _widest_end(chart: Chart) -> float:
    """The same of a name at the end of a line."""
    return 2.0 if len(chart.widths) > 1 else WIDEST_LABEL


class Grid:
    """Where the panels of a chart stand: for each (left, top, width, height), in inches from the body's corner."""

    def __init__(self, chart: Chart) -> None:
        panels, columns = chart.panels, len(chart.widths)
        self.shared = any(not panel.named for panel in panels)
        self.label_size = _label_size(chart)
        self.lefts = [self._left(panels[column::columns]) for column in range(columns)]
        rights = [chart.margin + _room_of_names(panels[column::columns]) for column in range(columns)]
        room = chart.width - 2 * EDGE - sum(self.lefts) - sum(rights)
        widths = [room * share / sum(chart.widths) for share in chart.widths]
        self.places: list[tuple[float, float, float, float]] = []
        top = 0.0
        for start in range(0, len(panels), columns):
            line = panels[start : start + columns]
            above, below, tallest = self._above(line, widths), _TICKS, 0.0
            left = EDGE
            for column, panel in enumerate(line):
                height = chart.height if isinstance(panel.y, Axis) else len(panel.y) * _step(panel.y, chart.step)
                left += self.lefts[column]
                self.places.append((left, top + above, widths[column], height))
                left += widths[column] + rights[column]
                tallest = max(tallest, height)
            top += above + tallest + below
        self.height = top

    def _left(self, panels: Sequence[Panel]) -> float:
        """The inches that a column needs at its left, for the names of lines or the numbers of an axis."""
        names = [name for panel in panels if panel.named and not isinstance(panel.y, Axis) for name in panel.y]
        if names:
            return max(text_width(name, self.label_size) for name in names) + 0.12
        return 0.66 if any(isinstance(panel.y, Axis) for panel in panels) else 0.0

    def _above(self, line: Sequence[Panel], widths: Sequence[float]) -> float:
        if not any(panel.title for panel in line):
            return 0.1
        return 0.52 if min(widths) < 1.5 else _TITLE


def _step(names: Sequence[str], step: float) -> float:
    tallest = max((name.count("\n") for name in names), default=0) + 1
    return step if tallest == 1 else max(step, 0.02 + 0.16 * tallest)


def _room_of_names(panels: Sequence[Panel]) -> float:
    """The inches that the names at the right edges of a column's panels need."""
    names = [mark.text for panel in panels for mark in panel.marks if isinstance(mark, Label) and mark.end is not None]
    return max((text_width(name, NAMES) for name in names), default=0.0) * 0.96 + (0.25 if names else 0.0)
