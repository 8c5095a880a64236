"""How fast words are counted: megabytes a second of every counter, for every corpus with its language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.pictures import marks
from harness.pictures.page import EDGE, WIDTH, Page, label_room
from harness.pictures.questions import caption, failures, lacking, spoken
from harness.pictures.request import Request
from harness.pictures.scales import log_axis, log_range
from harness.pictures.values import MEASURED, Value, value_of
from harness.rows import Row
from harness.units import bytes_text, rate_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(shown: Sequence[Row], request: Request) -> Figure:
    """A panel for each corpus, a bar for each counter and number of threads, all on one scale."""
    drawn = [row for row in shown if row.counting_only and row.total and row.corpus.get("bytes")]
    if not drawn:
        raise lacking("counting: no record is of counting alone; python -m harness.counting_benchmark FILE makes some")
    corpora: dict[str, list[Row]] = {}
    for row in drawn:
        corpora.setdefault(str(row.corpus.get("sha256")), []).append(row)
    several = len({row.record.get("threads") for row in drawn}) > 1
    labels = {key: [_label(row, several) for row in group] for key, group in corpora.items()}
    left = EDGE + label_room([label for own in labels.values() for label in own], 8.5, 3.2)
    step = 0.27
    page = Page(
        request.theme,
        request.title or "Counting words: megabytes a second, by language",
        caption(drawn),
        [
            "Megabytes of text by wall seconds of the whole way from the file to the words; to the right is faster.",
            *marks.bars_explained(drawn),
            *failures(shown),
        ],
        0.3 + sum(step * len(group) + 0.36 for group in corpora.values()) + 0.3,
    )
    speeds = {id(row): speed_of(row) for row in drawn}
    ends = [end for speed in speeds.values() for end in speed[1:] if end is not None]
    low, high = log_range(ends, 1.6, 1.35)
    top = 0.3
    for place, (key, group) in enumerate(corpora.items()):
        axes = page.rows_panel(left, top, WIDTH - 2 * EDGE - left - 0.75, labels[key], step, str(place))
        corpus = group[0].corpus
        title = f"{spoken(str(corpus.get('name')))}, {bytes_text(corpus['bytes'])}"
        axes.set_title(title, fontsize=9, color=request.theme.ink, loc="left", weight="bold", pad=4)
        for number, row in enumerate(group):
            _draw_row(axes, row, speeds[id(row)], low, number, request, f"{place}-{number}")
        log_axis(axes, "x", low, high, "MB/s")
        if place < len(corpora) - 1:
            axes.set_xlabel("")
            axes.tick_params(axis="x", labelbottom=False, length=0)
        top += step * len(group) + 0.36
    return page.figure


def speed_of(row: Row) -> Value:
    """Megabytes a second; the fastest run is the shortest one."""
    seconds, size = value_of(row, "total"), row.corpus["bytes"] / 1e6
    assert seconds.number is not None
    assert seconds.low is not None
    assert seconds.high is not None
    return Value(MEASURED, size / seconds.number, size / seconds.high, size / seconds.low)


def _label(row: Row, several: bool) -> str:
    threads = row.record.get("threads")
    runs = f" x{row.runs}" if row.runs > 1 else ""
    return f"{row.name}, {threads} thread{'' if threads == 1 else 's'}{runs}" if several else f"{row.name}{runs}"


def _draw_row(axes: Axes, row: Row, speed: Value, low: float, place: int, request: Request, name: str) -> None:
    """A line from the edge to the speed; on a log axis its length means nothing, so it is thin."""
    theme, look = request.theme, marks.row_look(row)
    assert speed.number is not None
    axes.plot([low, speed.number], [place, place], color=theme.of(look.colour), linewidth=1.0, alpha=0.45, zorder=2)
    marks.bar(axes, speed, place, look, theme, name, runs=len(row.samples))
    marks.mark(axes, speed, speed.number, place, look, theme, name, 7)
    text = f"{rate_text(speed.number)} MB/s"
    axes.annotate(
        text,
        (speed.high or speed.number, place),
        (7, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=theme.ink,
    )
