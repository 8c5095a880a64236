"""How the seconds grow as merges are made: in sum, and those of one merge, in finding the maximum and in updating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.extrapolation import rising
from harness.legend import Legend
from harness.pictures import marks
from harness.pictures.labels import name_ends
from harness.pictures.page import EDGE, WIDTH, Page, text_width
from harness.pictures.questions import caption, failures, lacking, one_question
from harness.pictures.request import Request
from harness.pictures.scales import log_axis, log_range, plain_axis
from harness.pictures.values import AT_LEAST, MEASURED
from harness.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = {"max": "finding the maximum", "update": "updating the counts"}
FEWEST_POINTS = 3
"""With fewer, a curve says nothing about how anything grows."""
_LOOKS = 25
"""Into so many stretches the merges are cut for the seconds of one; shorter ones would show the clock's grain."""


class Curve(NamedTuple):
    """One row's seconds in a phase at a number of merges, from the first merge to the last that was made."""

    name: str
    row: Row
    merges: tuple[int, ...]
    seconds: dict[str, tuple[float, ...]]

    def each(self, phase: str) -> list[tuple[float, float]]:
        """(merges, milliseconds of one merge) between points that are some way apart."""
        found: list[tuple[float, float]] = []
        points = list(zip(self.merges, self.seconds[phase], strict=True))
        before = points[0]
        for point in points[1:]:
            merges, seconds = point[0] - before[0], point[1] - before[1]
            if seconds > 0 and (merges * _LOOKS >= self.merges[-1] or point is points[-1]):
                found.append(((before[0] + point[0]) / 2, 1000 * seconds / merges))
                before = point
        return found


def draw(shown: Sequence[Row], request: Request) -> Figure:
    """Above what all merges so far took, below what one merge takes; left the maximum, right the update."""
    shown = one_question(shown, "growth")
    curves = curves_of(shown)
    if not curves:
        raise lacking(
            "growth: no row has a curve of three points or more; one is looked at ten times a second, so a larger "
            "corpus or vocabulary gives it"
        )
    height = max(2.5, 0.135 * len(curves))
    right = min(3.4, max(text_width(curve.name, 7.5) for curve in curves) * 0.96 + 0.3)
    left, gap = 0.72, 0.15
    width = (WIDTH - 2 * EDGE - right - 2 * left - gap) / 2
    short = [
        name
        for row, name in zip(shown, Legend(shown).short_labels(), strict=True)
        if row.seconds and row not in [curve.row for curve in curves]
    ]
    notes = ["From the curve that each run leaves, looked at ten times a second; a dot is where it was looked at."]
    if short:
        notes.append(f"Over before a curve could form: {'; '.join(short)}.")
    if any(curve.row.status != "ok" for curve in curves):
        notes.append("A curve that ends in → was stopped at the limit.")
    title = request.title or "How training seconds grow with the merges"
    drawn = [curve.row for curve in curves]
    page = Page(request.theme, title, caption(drawn), [*notes, *failures(shown, drawn)], 0.05 + 2 * (height + 0.8))
    for column, (phase, spoken) in enumerate(SHOWN.items()):
        x = EDGE + left + column * (width + left + gap)
        for line, name in enumerate(("sum", "each")):
            top = 0.3 + line * (height + 0.8)
            title = f"{spoken}: {'all merges so far' if name == 'sum' else 'one merge'}"
            axes = page.panel(x, top, width, height, f"{name}-{phase}", title)
            _draw_panel(axes, curves, request, phase, name, height if column else 0.0)
    return page.figure


def curves_of(shown: Sequence[Row]) -> list[Curve]:
    """The curves that have enough points, the longest time first."""
    found = []
    for row, name in zip(shown, Legend(shown).short_labels(), strict=True):
        points = rising(row.record.get("curve") or ()) if row.status != "mismatch" else []
        if len(points) >= FEWEST_POINTS:
            seconds = {phase: tuple(point.seconds.get(phase, 0.0) for point in points) for phase in SHOWN}
            found.append(Curve(name, row, tuple(point.merges for point in points), seconds))
    return sorted(found, key=lambda curve: -sum(line[-1] for line in curve.seconds.values()))


def _draw_panel(axes: Axes, curves: Sequence[Curve], request: Request, phase: str, name: str, height: float) -> None:
    theme = request.theme
    drawn = []
    for number, curve in enumerate(curves):
        sums = [(merges, spent) for merges, spent in zip(curve.merges, curve.seconds[phase], strict=True) if spent > 0]
        points = sums if name == "sum" else curve.each(phase)
        if points:
            drawn.append((number, curve, points))
    most = max(curve.merges[-1] for curve in curves)
    plain_axis(axes, "x", 0, most, "merges made")
    axes.grid(color=theme.line, linewidth=0.6)
    if not drawn:
        return
    unit = "seconds" if name == "sum" else "milliseconds for one merge"
    log_axis(axes, "y", *log_range((spent for *_, points in drawn for _, spent in points), 1.3, 1.3), unit)
    ends = []
    for number, curve, points in drawn:
        look = marks.row_look(curve.row)
        colour = theme.of(look.colour)
        (line,) = axes.plot(
            *zip(*points, strict=True),
            color=colour,
            linewidth=1.3,
            marker=".",
            markersize=3,
            zorder=3,
            markeredgewidth=0,
        )
        line.set_gid(f"curve-{name}-{phase}-{number}")
        x, y = points[-1]
        form = MEASURED if curve.row.status == "ok" else AT_LEAST
        style = marks.style_of(form, look, theme, 5)
        axes.plot([x], [y], linestyle="none", clip_on=False, zorder=4, **style)
        ends.append((float(x), float(y), curve.name, colour))
    if height:
        name_ends(axes, ends, theme.ink, height)
