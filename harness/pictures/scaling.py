"""Seconds against the size of the corpus or of the vocabulary, or the number of threads, with the fitted power."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.legend import Legend
from harness.pictures import marks
from harness.pictures.labels import name_ends
from harness.pictures.page import EDGE, WIDTH, Page, text_width
from harness.pictures.questions import caption, failures, grouped, lacking, panel_title
from harness.pictures.request import Request
from harness.pictures.scales import Text, log_axis, log_range, number_text, size_text
from harness.pictures.values import EXPLAINED, MEASURED, SPOKEN, UNCONFIRMED, Value, fitted, value_of
from harness.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SOLID = (MEASURED, UNCONFIRMED)


@dataclass(frozen=True)
class Along:
    """What grows: its name, its symbol in an exponent, where it stands in a row, what else may differ, its axis."""

    name: str
    symbol: str
    of: Callable[[Row], int | None]
    without: tuple[str, ...]
    axis: str
    text: Text
    how: str

    @property
    def what(self) -> str:
        """As it is said in a title."""
        return self.name if self is THREADS else f"the size of the {self.name}"


SIZE = Along(
    "corpus",
    "n",
    lambda row: row.corpus.get("bytes"),
    ("sha256",),
    "corpus, bytes",
    size_text,
    "-m data.bytes=1MB,2MB,4MB",
)
VOCABULARY = Along(
    "vocabulary",
    "v",
    lambda row: row.record.get("vocab_size"),
    ("vocab_size",),
    "vocabulary, tokens",
    number_text,
    "-m vocab_size=1000,2000,4000",
)
THREADS = Along("threads", "t", lambda row: row.record.get("threads"), (), "threads", number_text, "-m threads=1,2,4")


@dataclass(frozen=True)
class Series:
    """One variant over sizes: the rows in order of size, with what may be drawn of each."""

    name: str
    points: tuple[tuple[int, Row, Value], ...]

    @property
    def plain(self) -> list[tuple[int, float]]:
        """The sizes that were measured, with their seconds."""
        return [(size, value.number) for size, _, value in self.points if value.form in _SOLID and value.number]

    def exponent(self, symbol: str) -> str:
        """The power of the size, with its error where more than two points give one."""
        plain = self.plain
        if len({size for size, _ in plain}) < 2:
            return ""
        slope, error, _ = fitted(plain)
        return f"{symbol}^{slope:.2f}" + ("" if error is None else f" ±{error:.2f}")


def draw_along(along: Along) -> Callable[[Sequence[Row], Request], Figure]:
    """The kind of picture that is drawn along one of the three."""
    return lambda shown, request: draw(shown, request, along)


def draw(shown: Sequence[Row], request: Request, along: Along) -> Figure:
    """A panel for each corpus, a line for each variant that was measured at two sizes or more."""
    panels = [(group, series_of(group, request, along)) for group in grouped(shown, along.without)]
    panels = [(group, series) for group, series in panels if series]
    if not panels:
        sizes = sorted({size for row in shown if (size := along.of(row)) is not None})
        raise lacking(
            f"{along.what}: no variant was measured at two, only at {', '.join(map(along.text, sizes)) or 'none'}; "
            f"python -m harness {along.how} measures some"
        )
    most = max(len(series) for _, series in panels)
    names = [f"{each.name}  {each.exponent(along.symbol)}" for _, series in panels for each in series]
    right = min(4.2, max(text_width(name, 7.5) for name in names) * 0.96 + 0.35)
    # Two beside each other only where the names leave them room.
    columns = 1 if len(panels) <= 2 or right > 0.4 * WIDTH / 2 else 2
    height = max(3.4 if len(panels) <= 2 else 2.7, most * 0.135)
    left, gap = 0.66, 0.12
    width = (WIDTH - 2 * EDGE - (columns - 1) * gap) / columns - left - right
    lines = -(-len(panels) // columns)
    values = [value for _, series in panels for each in series for *_, value in each.points]
    drawn = [row for _, series in panels for each in series for _, row, _ in each.points]
    # Of a variant that was tried at one size only there is nothing to say here, whatever became of it.
    tried = [row for row in shown if row.name in {each.name for each in drawn}]
    page = Page(
        request.theme,
        request.title or f"{SPOKEN[request.seconds]} against {along.what}",
        caption(drawn),
        [*_notes(drawn, panels, along), EXPLAINED[request.seconds], *failures(tried, drawn)],
        0.05 + lines * (height + 0.85),
        marks.form_key(values, request.theme),
    )
    groups = [group for group, _ in panels]
    for place, (group, series) in enumerate(panels):
        row, column = divmod(place, columns)
        x = EDGE + left + column * (left + width + right + gap)
        title = panel_title(group, groups, sizes=along is not SIZE)
        axes = page.panel(x, 0.3 + row * (height + 0.85), width, height, str(place), title)
        _draw_panel(axes, series, request, along, (width, height), place)
    return page.figure


def series_of(group: Sequence[Row], request: Request, along: Along) -> list[Series]:
    """The variants of a group that were measured at two sizes or more, the slowest at the largest size first."""
    lines: dict[str, list[tuple[int, Row, Value]]] = {}
    names = dict(zip(map(id, group), _names(group, along), strict=True))
    for row in group:
        size, value = along.of(row), value_of(row, request.seconds)
        if size is not None and value.number is not None:
            lines.setdefault(names[id(row)], []).append((size, row, value))
    found = [
        Series(name, tuple(sorted(points, key=lambda point: point[0])))
        for name, points in lines.items()
        if len({size for size, *_ in points}) > 1
    ]
    return sorted(found, key=lambda series: -(series.points[-1][2].number or 0.0))


def _names(group: Sequence[Row], along: Along) -> list[str]:
    """A name for each row that is the same at every size."""
    legend = Legend(group)
    own = {SIZE.name: ("data",), VOCABULARY.name: ("vocab size",), THREADS.name: ("threads",)}[along.name]
    kept = {title: texts for title, texts in legend.columns.items() if title not in (*own, "counting", "host")}
    names = [name.partition(" x")[0] for name in legend.names]
    return [
        ", ".join([name, *(f"{title} {texts[place]}" for title, texts in kept.items())])
        for place, name in enumerate(names)
    ]


def _notes(drawn: Sequence[Row], panels: Sequence[tuple[Sequence[Row], Sequence[Series]]], along: Along) -> list[str]:
    several = any(len(each.plain) > 2 for _, series in panels for each in series)
    two = any(len({size for size, _ in each.plain}) == 2 for _, series in panels for each in series)
    said = [
        f"{along.symbol}^x: the power of {along.what} that fits what was measured (dashed; least squares of logarithms)"
        + (", ± its standard error." if several else ".")
    ]
    if two:
        said.append("Two points lie on a line whatever they are: an exponent without ± is a slope, not a fit.")
    cores = {(row.record.get("environment") or {}).get("cores_usable") for row in drawn} - {None}
    if along is THREADS and len(cores) == 1:
        said.append(f"The machine has {cores.pop()} cores (dotted line); ideal is t^-1 up to there.")
    return [*said, *marks.bars_explained(drawn)]


def _draw_panel(
    axes: Axes, series: Sequence[Series], request: Request, along: Along, inches: tuple[float, float], panel: int
) -> None:
    theme = request.theme
    sizes = [size for each in series for size, *_ in each.points]
    seconds = [end for each in series for *_, value in each.points for end in value[1:] if end is not None]
    log_axis(axes, "x", min(sizes) / 1.12, max(sizes) * 1.12, along.axis, along.text, most=max(2, int(inches[0] / 0.7)))
    if _far_apart(sizes, inches[0]):
        _tick_at(axes, sorted(set(sizes)), along)
    log_axis(axes, "y", *log_range(seconds, 1.3, 1.3), "seconds", most=7)
    axes.grid(color=theme.line, linewidth=0.6)
    if along is THREADS:
        _mark_cores(axes, series, request)
    ends = []
    for line, each in enumerate(series):
        look = marks.row_look(each.points[0][1])
        colour = theme.of(look.colour)
        _draw_fit(axes, each, colour, f"{panel}-{line}")
        for number, (size, row, value) in enumerate(each.points):
            assert value.number is not None
            name = f"{panel}-{line}-{number}"
            marks.bar(axes, value, size, look, theme, name, upright=True, runs=len(row.samples))
            marks.mark(axes, value, size, value.number, look, theme, name, 5.5)
        size, _, value = each.points[-1]
        ends.append((float(size), value.number or 0.0, f"{each.name}  {each.exponent(along.symbol)}", colour))
    name_ends(axes, ends, theme.ink, inches[1], gap=0.12 / inches[0])


def _far_apart(sizes: Sequence[int], width: float) -> bool:
    """Whether every size that was measured finds room for its name below the axis."""
    known = sorted(set(sizes))
    if len(known) < 3:
        return False
    steps = [math.log(larger / size) for size, larger in itertools.pairwise(known)]
    return min(steps) / sum(steps) * width * 0.95 >= 0.62


def _tick_at(axes: Axes, sizes: Sequence[int], along: Along) -> None:
    """Ticks where measurements are."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.xaxis.set_major_formatter(FixedFormatter([along.text(size) for size in sizes]))


def _draw_fit(axes: Axes, each: Series, colour: str, name: str) -> None:
    """The fitted line over the sizes that were drawn; lines between the points where there is none."""
    if len({size for size, _ in each.plain}) < 2:
        axes.plot(
            [size for size, *_ in each.points],
            [value.number or 0 for *_, value in each.points],
            color=colour,
            linewidth=0.6,
            linestyle=":",
            zorder=2,
        )
        return
    slope, _, first = fitted(each.plain)
    ends = [each.points[0][0], each.points[-1][0]]
    (line,) = axes.plot(
        ends,
        [first * end**slope for end in ends],
        color=colour,
        linewidth=1.0,
        linestyle=(0, (5, 2)),
        alpha=0.8,
        zorder=2,
    )
    line.set_gid(f"fit-{name}")


def _mark_cores(axes: Axes, series: Sequence[Series], request: Request) -> None:
    cores = [(row.record.get("environment") or {}).get("cores_usable") for each in series for _, row, _ in each.points]
    known = [number for number in cores if number]
    if known:
        axes.axvline(statistics.mode(known), color=request.theme.faint, linewidth=0.8, linestyle=":")
