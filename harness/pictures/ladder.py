"""The ladder: every stage's seconds on a log axis, with its gain over the stage before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.findings import ONE_RUN_CANNOT_TELL
from harness.legend import Legend
from harness.pictures import marks
from harness.pictures.page import EDGE, WIDTH, Page, label_room
from harness.pictures.questions import caption, failures, grouped, lacking, panel_title
from harness.pictures.request import Request
from harness.pictures.scales import log_axis, log_range
from harness.pictures.values import (
    AT_LEAST,
    ESTIMATED,
    EXPLAINED,
    MEASURED,
    NOTHING,
    SPOKEN,
    UNCONFIRMED,
    Value,
    by_itself,
    value_of,
)
from harness.rows import Row
from harness.units import ratio_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GAP = 0.8
"""Inches between the panels, for the axis of one and the title of the next."""


def draw(shown: Sequence[Row], request: Request) -> Figure:
    """A panel for each question, its rungs from above in the order of the records."""
    groups = [[row for row in group if _drawn(row, request)] for group in grouped(shown)]
    groups = [group for group in groups if group]
    if not groups:
        raise lacking(f"ladder: no row has {SPOKEN[request.seconds].lower()}; python -m harness measures some")
    columns = 1 if len(groups) == 1 else 2
    labels = {id(group): Legend(group).short_labels() for group in groups}
    step = 0.27 if max(map(len, groups)) <= 16 else 0.165
    size = 8.5 if step > 0.17 else 7
    left = label_room([label for group in labels.values() for label in group], size, 3.6 if columns == 1 else 2.6)
    width = (WIDTH - 2 * EDGE - columns * left - (columns - 1) * 0.25) / columns
    heights = [step * max(map(len, groups[start : start + columns])) for start in range(0, len(groups), columns)]
    values = {id(row): value_of(row, request.seconds) for group in groups for row in group}
    page = Page(
        request.theme,
        request.title or f"The ladder: {SPOKEN[request.seconds].lower()}, and each rung's gain over the one before",
        caption(shown),
        _notes(shown, groups, request),
        sum(heights) + len(heights) * _GAP,
        marks.form_key(values.values(), request.theme),
    )
    top = 0.28
    for place, group in enumerate(groups):
        row, column = divmod(place, columns)
        x = EDGE + left + column * (width + left + 0.25)
        axes = page.rows_panel(x, top, width, labels[id(group)], step, str(place))
        # Where two stand side by side it begins above the names, or it would end beyond the page.
        begins = 0.0 if columns == 1 else -0.9 * left / width
        title = panel_title(group, groups)
        axes.set_title(title, fontsize=9, color=request.theme.ink, loc="left", weight="bold", pad=4, x=begins)
        axes.tick_params(axis="y", labelsize=size)
        _climb(axes, group, [values[id(each)] for each in group], request, width, place)
        if column == columns - 1:
            top += heights[row] + _GAP
    return page.figure


def _drawn(row: Row, request: Request) -> bool:
    """Whether a row has a rung: what never ran has none, nor has what does not tell training from counting."""
    value = value_of(row, request.seconds)
    return value.form != NOTHING


def _notes(shown: Sequence[Row], groups: Sequence[Sequence[Row]], request: Request) -> list[str]:
    drawn = [row for group in groups for row in group]
    said = ["×N: so many times as fast as the rung above, ÷N: as slow. ≈: within what single runs can tell."]
    left_out = dict.fromkeys(row.name for row in shown if row.status == "ok" and not _drawn(row, request))
    if left_out and any(by_itself(row) for row in shown):
        said.append(f"Not drawn, since they do not tell training from counting: {', '.join(left_out)}.")
    return [*said, *marks.bars_explained(drawn), EXPLAINED[request.seconds], *failures(shown, drawn)]


def _climb(
    axes: Axes, group: Sequence[Row], values: Sequence[Value], request: Request, width: float, panel: int
) -> None:
    theme = request.theme
    known = [end for value in values for end in value[1:] if end is not None]
    low, high = log_range(known)
    high *= (high / low) ** (0.5 / width)  # half an inch for the gain at the right of the slowest
    previous: tuple[int, float, bool] | None = None
    for place, (row, value) in enumerate(zip(group, values, strict=True)):
        look, name = marks.row_look(row), f"{panel}-{place}"
        if value.number is None:
            marks.mark(axes, value, low, place, look, theme, name)
            continue
        plain = value.form in (MEASURED, UNCONFIRMED)
        if previous is not None:
            line = axes.plot(
                [previous[1], previous[1], value.number],
                [previous[0], place, place],
                color=theme.faint,
                linewidth=0.7,
                linestyle="-" if plain else ":",
                zorder=2,
            )
            line[0].set_gid(f"step-{name}")
            text = gain_text(previous[1], value, previous[2])
            axes.annotate(
                text,
                (max(value.high or value.number, previous[1]), place),
                (6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8 if len(group) <= 16 else 6.5,
                color=theme.ink if text.startswith("×") else theme.faint,
            )
        marks.bar(axes, value, place, look, theme, name, runs=len(row.samples))
        marks.mark(axes, value, value.number, place, look, theme, name, 6 if len(group) <= 16 else 5)
        previous = (place, value.number, not plain) if plain or previous is None else previous
    log_axis(axes, "x", low, high, f"{request.seconds}, seconds")


def gain_text(before: float, value: Value, estimated: bool = False) -> str:
    """How many times as fast as the one before; `>` where only a bound is known.

    >>> [gain_text(before, Value("measured", after)) for before, after in ((2.0, 1.0), (1.0, 1.5), (1.0, 1.04))]
    ['×2.00', '÷1.50', '≈']
    >>> gain_text(1.0, Value("at least", 20.0))
    '÷20.0 or more'
    """
    assert value.number is not None
    if value.form == AT_LEAST:
        return f"÷{ratio_text(value.number / before)} or more" if value.number > before else ""
    sign = "~" if estimated or value.form == ESTIMATED else ""
    ratio = before / value.number
    if 1 / (1 + ONE_RUN_CANNOT_TELL) <= ratio <= 1 + ONE_RUN_CANNOT_TELL:
        return "≈"
    return f"×{sign}{ratio_text(ratio)}" if ratio > 1 else f"÷{sign}{ratio_text(1 / ratio)}"
