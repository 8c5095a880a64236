"""Each row's total, stacked from its phases.

Where one row takes many times as long as another, stacked bars would hide the small ones, and stacking on a log axis
would lie about every phase but the first. Then the totals stand on a log axis, and beside them what each is made of.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.colours import phase_colour
from harness.legend import REUSED, UNCONFIRMED, Legend, divergence_text, failure_text
from harness.pictures import marks
from harness.pictures.page import EDGE, WIDTH, Page, broken, label_room
from harness.pictures.questions import caption, listed
from harness.pictures.request import Request
from harness.pictures.scales import log_axis, log_range, plain_axis
from harness.pictures.values import WRONG, Value, value_of
from harness.rows import Row, measured_phases
from harness.units import decimals_for, seconds_texts

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOO_WIDE = 8
"""From this ratio of the longest total to the shortest on, the shortest bar is too short to show what it is made of."""
MANY = 24
"""From so many rows on, they stand closer."""


def draw(shown: Sequence[Row], request: Request) -> Figure:
    """The picture of these rows; `request.log` asks for totals on a log axis whatever their spread."""
    legend = Legend(shown)
    totals = [row.total for row in shown if row.total]
    split = bool(totals) and (request.log or max(totals) > TOO_WIDE * min(totals))
    labels = broken(legend.labels(), 42) if len(shown) < MANY else legend.short_labels()
    tallest = max((label.count("\n") for label in labels), default=0) + 1
    step = max(0.4, 0.16 * tallest) if len(shown) < MANY else 0.175
    left = EDGE + label_room(labels, 8.5 if step > 0.17 else 7.5, 3.4)
    values = [value_of(row, "total") for row in shown]
    key = _key(shown, request) + (marks.form_key(values, request.theme) if split else [])
    subject = "Counting words" if all(row.counting_only for row in shown) else "BPE training"
    title = request.title or f"{subject}: seconds by phase"
    page = Page(request.theme, title, caption(shown), _notes(legend), step * len(shown) + 0.62, key)
    room = WIDTH - 2 * EDGE - left
    if split:
        first = page.rows_panel(left, 0.08, 0.40 * room, labels, step, "totals")
        _draw_totals(first, shown, values, request)
        second = page.rows_panel(left + 0.43 * room, 0.08, 0.57 * room, labels, step, "phases")
        second.set_yticklabels([])
        _draw_phases(second, shown, request, shares=True)
    else:
        _draw_phases(page.rows_panel(left, 0.08, room, labels, step, "phases"), shown, request, shares=False)
    return page.figure


def _notes(legend: Legend) -> list[str]:
    """Marks by meaning, each with a few of the rows that it is about."""
    return [
        f"{sentence}: {listed(names.removesuffix('.').split('; '))}." if names else sentence
        for sentence, _, names in (note.partition(": ") for note in legend.marks())
    ]


def _draw_totals(axes: Axes, shown: Sequence[Row], values: Sequence[Value], request: Request) -> None:
    """Totals as points on a log axis: the length of a bar would mean nothing there."""
    known = [end for value in values for end in value[1:] if end is not None]
    low, high = log_range(known, 1.6, 1.6)
    # Room at the right for the text of the largest: a third of the axis, whatever its length.
    high *= (high / low) ** 0.4
    for place, (row, value, (text, _)) in enumerate(zip(shown, values, _texts(shown), strict=True)):
        x = low if value.form == WRONG else value.number
        if x is None:
            continue
        look = marks.row_look(row)
        marks.bar(axes, value, place, look, request.theme, str(place), runs=len(row.samples))
        marks.mark(axes, value, x, place, look, request.theme, str(place), 5.5)
        if row.total is not None:
            offset = 7 if len(shown) < MANY else 5
            axes.annotate(
                text,
                (value.high or x, place),
                (offset, 0),
                textcoords="offset points",
                va="center",
                fontsize=7.5,
                color=request.theme.ink,
            )
    log_axis(axes, "x", low, high, "total, seconds", most=6)


def _draw_phases(axes: Axes, shown: Sequence[Row], request: Request, shares: bool) -> None:
    """Stacked bars: seconds, or shares of the total with the seconds written in them."""
    theme = request.theme
    longest = 1.0 if shares else max((row.total for row in shown if row.total), default=1.0)
    close = len(shown) >= MANY
    for place, (row, (total_text, texts)) in enumerate(zip(shown, _texts(shown), strict=True)):
        if row.total is None:
            told = f"≠ {divergence_text(row, 16)}" if row.status == "mismatch" else failure_text(row)
            letters = 62 if shares else 90
            wrapped = "\n".join(textwrap.wrap(told, letters, max_lines=1 if close else 2, placeholder=" …"))
            axes.text(
                0.01 * longest,
                place,
                wrapped,
                va="center",
                fontsize=7 if close else 8,
                style="italic",
                color=theme.wrong if row.status == "mismatch" else theme.faint,
            )
            continue
        scale, start = row.total if shares else 1.0, 0.0
        for phase, text in texts.items():
            length = row.seconds[phase] / scale
            colour = theme.of(phase_colour(phase))
            # Nobody sees a bar of a few hundredths of an inch, and seventy rows of them make a large file.
            if length >= longest / (400 if close else 1000):
                (drawn,) = axes.barh(place, length, 0.74, start, color=colour, edgecolor=theme.card, linewidth=0.5)
                drawn.set_gid(f"bar-{place}-{phase}")
                drawn.set_clip_on(False)
            if length > (0.07 if close else 0.085) * longest:
                axes.text(
                    start + length / 2,
                    place,
                    text,
                    ha="center",
                    va="center",
                    fontsize=6.5 if close else 7.5,
                    color=theme.ink_on(phase_colour(phase).light),
                )
            start += length
        if not shares:
            axes.annotate(
                total_text,
                (start, place),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                color=theme.ink,
            )
    if shares:
        plain_axis(axes, "x", 0, 1, "share of the total (seconds in the bars)", lambda share: f"{share:.0%}")
    else:
        plain_axis(axes, "x", 0, 1.16 * longest, "seconds")


def _key(shown: Sequence[Row], request: Request) -> list[Artist]:
    """The colours of the phases in which some time was spent."""
    from matplotlib.patches import Patch

    spent = [phase for phase in measured_phases(shown) if any(row.seconds.get(phase) for row in shown)]
    return [Patch(color=request.theme.of(phase_colour(phase)), label=phase) for phase in spent]


def _texts(shown: Sequence[Row]) -> list[tuple[str, dict[str, str]]]:
    """Each row's total with its marks, and its phases, written as the table writes them."""
    decimals = decimals_for(row.total for row in shown if row.total is not None)
    written = []
    for row in shown:
        total, parts = seconds_texts(list(row.seconds.values()), decimals)
        signs = (REUSED if row.counts_reused else "") + ("" if row.confirmed else UNCONFIRMED)
        written.append((f"{total} s{signs}", dict(zip(row.seconds, parts, strict=True))))
    return written
