"""What each row did, beside what it took: its seconds and every count of work, each on a log axis of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.frame import WORK
from harness.legend import Legend
from harness.pictures import marks
from harness.pictures.page import EDGE, WIDTH, Page, label_room
from harness.pictures.questions import caption, failures, lacking
from harness.pictures.request import Request
from harness.pictures.scales import log_axis, log_range
from harness.pictures.values import EXPLAINED, NOTHING, SPOKEN, value_of
from harness.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MANY = 24
AT_EDGE = 0.1
"""Which share of a panel's width is its edge."""


def draw(shown: Sequence[Row], request: Request) -> Figure:
    """One line for each row that counted its work, one panel for each count that any of them has."""
    drawn = [
        row for row in shown if row.status == "ok" and row.tallies and value_of(row, request.seconds).form != NOTHING
    ]
    names = [name for name in WORK if any(row.tallies.get(name) for row in drawn)]
    if not names:
        raise lacking(f"work: no row counted {', '.join(name.replace('_', ' ') for name in WORK)}")
    labels = Legend(drawn).short_labels()
    step = 0.24 if len(drawn) < MANY else 0.165
    left = EDGE + label_room(labels, 8.5 if step > 0.17 else 7, 3.2)
    gap = 0.09
    # The first panel, of seconds, is half as wide again as the others.
    width = (WIDTH - 1.5 * EDGE - left - gap * len(names)) / (len(names) + 1.5)
    page = Page(
        request.theme,
        request.title or f"{SPOKEN[request.seconds]}, and the work that they were spent on",
        caption(drawn),
        [
            "Counts are the same on every machine. A row without a dot did nothing of the kind, or does not count it.",
            *marks.bars_explained(drawn),
            EXPLAINED[request.seconds],
            *failures(shown),
        ],
        0.52 + step * len(drawn) + 0.5,
        marks.form_key([value_of(row, request.seconds) for row in drawn], request.theme),
    )
    axes = page.rows_panel(left, 0.52, 1.5 * width, labels, step, "seconds")
    _draw_seconds(axes, drawn, request)
    for place, name in enumerate(names):
        x = left + 1.5 * width + gap + place * (width + gap)
        axes = page.rows_panel(x, 0.52, width, labels, step, name)
        axes.set_yticklabels([])
        _draw_tally(axes, drawn, name, request)
    return page.figure


def _draw_seconds(axes: Axes, drawn: Sequence[Row], request: Request) -> None:
    values = [value_of(row, request.seconds) for row in drawn]
    for place, (row, value) in enumerate(zip(drawn, values, strict=True)):
        assert value.number is not None
        look = marks.row_look(row)
        marks.bar(axes, value, place, look, request.theme, str(place), runs=len(row.samples))
        marks.mark(axes, value, value.number, place, look, request.theme, str(place), 5)
    log_axis(axes, "x", *log_range([end for value in values for end in value[1:] if end is not None]), "", most=5)
    _name(axes, request.seconds, "seconds", request)
    _keep_numbers_inside(axes)


def _draw_tally(axes: Axes, drawn: Sequence[Row], name: str, request: Request) -> None:
    low, high = log_range((row.tallies[name] for row in drawn if row.tallies.get(name)), 2, 2, 25)
    for place, row in enumerate(drawn):
        if row.tallies.get(name):
            colour = request.theme.of(marks.row_look(row).colour)
            (line,) = axes.plot(
                [low, row.tallies[name]],
                [place, place],
                color=colour,
                linewidth=2.4,
                alpha=0.55,
                zorder=2,
                solid_capstyle="butt",
            )
            line.set_gid(f"stem-{name}-{place}")
            (dot,) = axes.plot(
                [row.tallies[name]],
                [place],
                marker="o",
                markersize=3.6,
                color=colour,
                linestyle="none",
                clip_on=False,
                zorder=3,
            )
            dot.set_gid(f"work-{name}-{place}")
    log_axis(axes, "x", low, high, "", power_text, most=2)
    _name(axes, name.replace("_", " "), "times", request)
    _keep_numbers_inside(axes)


def power_text(number: float) -> str:
    """
    >>> [power_text(number) for number in (1, 200, 1000, 300_000, 10_000_000, 2e9)]
    ['1', '200', '1k', '300k', '10M', '2G']
    """
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:g}{unit}"
    return f"{number:g}"


def _name(axes: Axes, name: str, unit: str, request: Request) -> None:
    """The name above the panel, in two lines where it has two words; the unit below it."""
    axes.set_title(name.replace(" ", "\n", 1), fontsize=8, color=request.theme.ink, loc="left", pad=4)
    axes.set_xlabel(f"{unit} (log)")
    axes.tick_params(axis="x", labelsize=7.5)
    axes.xaxis.label.set_fontsize(8)


def _keep_numbers_inside(axes: Axes) -> None:
    """Let a number at an edge of the panel grow inwards, or it would touch that of the next panel."""
    low, high = axes.get_xlim()
    for tick, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        place = math.log(tick / low, high / low)
        label.set_horizontalalignment("left" if place < AT_EDGE else "right" if place > 1 - AT_EDGE else "center")
