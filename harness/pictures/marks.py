"""How a figure is marked: a plain marker for what was measured, another for whatever is less than that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from harness.colours import Look, counter_look, look_of
from harness.findings import ONE_RUN_CANNOT_TELL
from harness.pictures.theme import FAINT, Theme
from harness.pictures.values import AT_LEAST, ESTIMATED, MEASURED, UNCONFIRMED, WRONG, Value
from harness.rows import Row
from harness.units import share_text

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle-up": "^",
    "diamond": "D",
    "triangle-down": "v",
    "cross": "P",
    "star": "*",
    "triangle-left": "<",
    "triangle-right": ">",
    "pentagon": "p",
    "hexagon": "h",
    "diamond-tall": "d",
    "octagon": "8",
}
ARROW = ((-1.0, 0.14), (0.1, 0.14), (0.1, 0.55), (1.0, 0.0), (0.1, -0.55), (0.1, -0.14), (-1.0, -0.14), (-1.0, 0.14))
"""An arrow to the right: at least so much."""

_LARGER = {"star": 1.35, "diamond": 0.85, "square": 0.92, "diamond-tall": 1.15}
"""Shapes of one nominal size do not look equally large."""

_SAYS = {
    UNCONFIRMED: "nobody of another family has confirmed the merges",
    ESTIMATED: "stopped at the limit: extrapolated, with its interval",
    AT_LEAST: "stopped at the limit: at least this",
    WRONG: "wrong merges: no time is shown",
}


def row_look(row: Row) -> Look:
    return counter_look(row.name) if row.counting_only else look_of(row.name)


def style_of(form: str, look: Look, theme: Theme, size: float = 6.0) -> dict[str, Any]:
    """The settings of the marker of one figure."""
    colour = theme.of(look.colour)
    size *= _LARGER.get(look.shape, 1.0)
    plain = {"marker": MARKERS[look.shape], "markersize": size, "color": colour, "markeredgewidth": 0.7}
    if form == UNCONFIRMED:
        return {**plain, "fillstyle": "left", "markerfacecoloralt": theme.card, "markeredgecolor": colour}
    if form == ESTIMATED:
        return {**plain, "markerfacecolor": theme.card, "markeredgecolor": colour, "markeredgewidth": 1.2}
    if form == AT_LEAST:
        return {**plain, "marker": ARROW, "markersize": size * 1.5, "markeredgewidth": 0.2}
    if form == WRONG:
        return {**plain, "marker": "x", "color": theme.wrong, "markersize": size * 1.1, "markeredgewidth": 1.8}
    return {**plain, "markeredgecolor": theme.card}


def mark(axes: Axes, value: Value, x: float, y: float, look: Look, theme: Theme, name: str, size: float = 6.0) -> None:
    """One figure at its place; its id in the drawing is `value-NAME`."""
    style = style_of(value.form, look, theme, size)
    (marker,) = axes.plot([x], [y], linestyle="none", clip_on=False, zorder=4, **style)
    marker.set_gid(f"{'value' if value.form in (MEASURED, UNCONFIRMED) else value.form.replace(' ', '-')}-{name}")


def bar(
    axes: Axes, value: Value, place: float, look: Look, theme: Theme, name: str, upright: bool = False, runs: int = 1
) -> None:
    """From the least to the most that the figure may be; faint where only one run was made."""
    if value.low is None or value.high is None:
        return
    ends, places = [value.low, value.high], [place, place]
    single = value.form in (MEASURED, UNCONFIRMED) and runs < 2
    (line,) = axes.plot(
        *((places, ends) if upright else (ends, places)),
        color=theme.of(look.colour),
        alpha=0.35 if single else 0.9,
        linewidth=3.2 if single else 1.3,
        linestyle=(0, (2, 1.2)) if value.form == ESTIMATED else "-",
        solid_capstyle="butt",
        dash_capstyle="butt",
        clip_on=False,
        zorder=3,
    )
    line.set_gid(f"interval-{name}")


def form_key(values: Iterable[Value], theme: Theme) -> list[Artist]:
    """What the markers mean, for those forms that there are beside plain ones."""
    from matplotlib.lines import Line2D

    forms = dict.fromkeys(value.form for value in values)
    grey = Look(FAINT, "circle")
    return [
        Line2D([], [], linestyle="none", label=said, **style_of(form, grey, theme))
        for form, said in _SAYS.items()
        if form in forms
    ]


def family_key(shown: Sequence[Row], theme: Theme) -> list[Artist]:
    """A marker for each row's name: for few rows."""
    from matplotlib.lines import Line2D

    names = {row.name: row_look(row) for row in shown}
    return [
        Line2D([], [], linestyle="none", label=name, **style_of(MEASURED, look, theme)) for name, look in names.items()
    ]


def bars_explained(shown: Sequence[Row]) -> list[str]:
    """What the bars at the markers are."""
    timed = [row for row in shown if row.status == "ok"]
    single, several = (any(len(row.samples) < 2 for row in timed), any(len(row.samples) > 1 for row in timed))
    said = []
    if several:
        said.append("Bars: from the shortest of several runs to the longest; the marker is their median.")
    if single:
        share = share_text(ONE_RUN_CANNOT_TELL)
        said.append(f"Faint bars: one run, of which another may differ by {share} on a quiet machine.")
    return said
