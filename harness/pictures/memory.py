"""Time against memory: which rows nobody beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.legend import SAMPLED, Legend
from harness.pictures import marks
from harness.pictures.labels import name_points
from harness.pictures.page import EDGE, WIDTH, Page
from harness.pictures.questions import caption, failures, grouped, lacking, panel_title
from harness.pictures.request import Request
from harness.pictures.scales import log_axis, log_range, size_text
from harness.pictures.values import EXPLAINED, MEASURED, SPOKEN, UNCONFIRMED, Value, value_of
from harness.rows import Row

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_NAMED = 14
"""So many names find room beside a panel; of more rows only those of the front are named there."""


class Point(NamedTuple):
    """One row as a place in the picture."""

    name: str
    row: Row
    value: Value
    seconds: float
    memory: int


def draw(shown: Sequence[Row], request: Request) -> Figure:
    """A panel for each question: seconds to the right, memory upwards, the front as a stair from corner to corner."""
    groups = grouped(shown)
    panels = [(group, points) for group in groups if len(points := points_of(group, request)) > 1]
    if not panels:
        raise lacking(
            "memory: it takes two rows with a time and a peak of memory on the same corpus, to the same vocabulary"
        )
    columns = 1 if len(panels) == 1 else 2
    right = 0.25
    left, gap, height = 0.68, 0.1, 3.6 if columns == 1 else 2.9
    width = (WIDTH - 2 * EDGE - (columns - 1) * gap) / columns - left - right
    lines = -(-len(panels) // columns)
    drawn = [point.row for _, points in panels for point in points]
    few = len({row.name for row in drawn}) <= MOST_NAMED
    sampled = any(row.memory_is_sampled for row in drawn)
    notes = [
        "The stair is the front: nobody beats in both what lies on it. Memory is the peak of the training process.",
        *([] if few else ["Named are the rows of the front; the colours of the others are those of their families."]),
        *([f"{SAMPLED} several processes together, sampled while they ran."] if sampled else []),
        *marks.bars_explained(drawn),
    ]
    key = ([] if few else _families(drawn, request)) + marks.form_key(
        [value_of(row, request.seconds) for row in drawn], request.theme
    )
    title = request.title or f"{SPOKEN[request.seconds]} against memory"
    page = Page(
        request.theme,
        title,
        caption(drawn),
        [*notes, EXPLAINED[request.seconds], *failures(shown, drawn)],
        0.05 + lines * (height + 0.85),
        key,
    )
    for place, (group, points) in enumerate(panels):
        row, column = divmod(place, columns)
        x = EDGE + left + column * (left + width + right + gap)
        axes = page.panel(x, 0.3 + row * (height + 0.85), width, height, str(place), panel_title(group, groups))
        _draw_panel(axes, points, request, (width, height), place)
    return page.figure


def points_of(group: Sequence[Row], request: Request) -> list[Point]:
    """The rows of a group that have both figures."""
    found = []
    for row, name in zip(group, Legend(group).short_labels(), strict=True):
        value = value_of(row, request.seconds)
        if value.form in (MEASURED, UNCONFIRMED) and value.number and row.peak_rss_bytes:
            mark = SAMPLED if row.memory_is_sampled else ""
            found.append(Point(f"{mark}{name}", row, value, value.number, row.peak_rss_bytes))
    return found


def front(points: Sequence[Point]) -> list[Point]:
    """Those that no other beats in both, from the fastest to the smallest."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (point.seconds, point.memory)):
        if not kept or point.memory < kept[-1].memory:
            kept.append(point)
    return kept


def _named(points: Sequence[Point]) -> Sequence[Point]:
    return points if len(points) <= MOST_NAMED else front(points)


def _families(drawn: Sequence[Row], request: Request) -> list[Artist]:
    from matplotlib.patches import Patch

    colours: dict[str, str] = {}
    for row in drawn:
        colours.setdefault(str(row.record.get("family")), request.theme.of(marks.row_look(row).colour))
    return [Patch(color=colour, label=family) for family, colour in colours.items()]


def _draw_panel(axes: Axes, points: Sequence[Point], request: Request, size: tuple[float, float], panel: int) -> None:
    theme = request.theme
    log_axis(
        axes,
        "x",
        *log_range([end for point in points for end in point.value[1:] if end]),
        f"{request.seconds}, seconds",
        most=6,
    )
    log_axis(axes, "y", *log_range([point.memory for point in points], 1.1, 1.1, 1.6), "peak memory", size_text, most=7)
    axes.grid(color=theme.line, linewidth=0.6)
    best = front(points)
    for number, point in enumerate(points):
        look, name = marks.row_look(point.row), f"{panel}-{number}"
        marks.bar(axes, point.value, point.memory, look, theme, name, runs=len(point.row.samples))
        marks.mark(axes, point.value, point.seconds, point.memory, look, theme, name, 6.5 if point in best else 5)
    _draw_front(axes, best, request, panel)
    named = [(point.seconds, float(point.memory), point.name) for point in _named(points)]
    hidden = [(end, float(point.memory)) for point in points for end in point.value[1:] if end is not None]
    hidden += [(x, best[-1].memory) for x in _stretch(best[-1].seconds, axes.get_xlim()[1])]
    name_points(axes, named, hidden, theme.ink, size)


def _stretch(start: float, end: float) -> list[float]:
    """Places along the last step of the stair, so close that no name fits between them."""
    return [start * (end / start) ** (part / 40) for part in range(41)]


def _draw_front(axes: Axes, best: Sequence[Point], request: Request, panel: int) -> None:
    """A stair through the front, out to the panel's edges."""
    xs = [best[0].seconds, *(point.seconds for point in best), axes.get_xlim()[1]]
    ys = [axes.get_ylim()[1], *(point.memory for point in best), best[-1].memory]
    (line,) = axes.plot(xs, ys, drawstyle="steps-post", color=request.theme.ink, linewidth=0.9, alpha=0.7, zorder=2)
    line.set_gid(f"front-{panel}")
