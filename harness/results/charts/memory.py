"""Time against memory."""

from __future__ import annotations

from collections.abc import Sequence

from harness.common.units import bytes_text, decimals_for
from harness.results.charts.chart import (
    Axis,
    Chart,
    Entry,
    Label,
    Line,
    Mark,
    Panel,
    Request,
    form_key,
    point_of,
    row_look,
)
from harness.results.charts.questions import (
    bars_explained,
    caption,
    failures,
    grouped,
    lacking,
    panel_title,
)
from harness.results.charts.values import (
    EXPLAINED,
    PROVED,
    SPOKEN,
    log_range,
    seconds_of,
    value_of,
)
from harness.results.colours import INK
from harness.results.legend import SAMPLED, Legend
from harness.results.rows import Row

MOST_NAMED = 14
"""So many names find room beside a panel; of more rows only those of the front are named there."""


def memory(rows: Sequence[Row], request: Request) -> Chart:
    """A panel for each question: seconds to the right, memory upwards, the front as a stair from corner to corner."""
    groups = [with_both(group, request) for group in grouped(rows, ("tie_break",))]
    groups = [group for group in groups if len(group) > 1]
    if not groups:
        raise lacking(
            "memory: it takes two rows with a time and a peak of memory on the same corpus, to the same vocabulary"
        )
    drawn = [row for group in groups for row in group]
    few = len({row.name for row in drawn}) <= MOST_NAMED
    families = {str(row.record.get("family")): row_look(row).colour for row in reversed(drawn)}
    notes = [
        "The stair is the front: no confirmed row is both faster and smaller than a row on it. "
        "Memory is the peak of the training process.",
        *([] if few else ["Named are the rows of the front; the colours of the others are those of their families."]),
        *([f"{SAMPLED} several processes together, sampled while they ran."] if _sampled(drawn) else []),
    ]
    key = [] if few else [Entry(*family) for family in reversed(families.items())]
    return Chart(
        request.title or f"{SPOKEN[request.seconds]} against memory",
        caption(drawn),
        [*notes, *bars_explained(drawn), EXPLAINED[request.seconds], *failures(rows, drawn)],
        [memory_panel(str(place), group, groups, request) for place, group in enumerate(groups)],
        key + form_key(value_of(row, request.seconds) for row in drawn),
        widths=(1.0,) if len(groups) == 1 else (1.0, 1.0),
        height=3.6 if len(groups) == 1 else 2.9,
        margin=0.25,
    )


def _sampled(rows: Sequence[Row]) -> bool:
    return any(row.memory_is_sampled for row in rows)


def with_both(group: Sequence[Row], request: Request) -> list[Row]:
    """The rows of a group that have a time and a peak of memory."""
    return [row for row in group if value_of(row, request.seconds).form in PROVED and row.peak_rss_bytes]


def memory_panel(name: str, group: Sequence[Row], groups: Sequence[Sequence[Row]], request: Request) -> Panel:
    values = [value_of(row, request.seconds) for row in group]
    low, high = log_range([number for value in values for number in value.numbers])
    least, most = log_range([row.peak_rss_bytes or 0 for row in group], 1.1, 1.1, 1.6)
    stair, marks = front(group, request), list[Mark]()
    decimals = decimals_for(value.number for value in values if value.number)
    for number, (row, value, label) in enumerate(zip(group, values, Legend(group).short_labels(), strict=True)):
        size, best = row.peak_rss_bytes or 0, any(row is other for other in stair)
        figures = {f"{request.seconds}, s": f"{value.number or 0:,.{decimals}f}", "memory": bytes_text(size)}
        words = f"{{{request.seconds}, s}} s, {{memory}}"
        place = (value.number or 0.0, size)
        radius = 6.5 if best else 5.0
        marks.append(point_of(row, value, f"{name}-{number}", *place, size=radius, words=words, figures=figures))
        if best or len(group) <= MOST_NAMED:
            marks.append(Label(*place, f"{SAMPLED if row.memory_is_sampled else ''}{label}", row=row))
    if stair:
        corners = [(seconds_of(row, request.seconds) or 0.0, float(row.peak_rss_bytes or 0)) for row in stair]
        stairs = [(corners[0][0], most), *corners, (high, corners[-1][1])]
        marks.append(Line(stairs, INK, 0.9, opacity=0.7, steps=True, name=f"front-{name}", row=stair[0]))
    axes = Axis(f"{request.seconds}, seconds", low, high), Axis("peak memory", least, most, unit="bytes")
    return Panel(name, panel_title(group, groups), *axes, marks)


def front(group: Sequence[Row], request: Request) -> list[Row]:
    """The confirmed rows that no other beats in both, from the fastest to the smallest; other work is no rival."""
    fair = [row for row in group if row.confirmed and not row.by_design]
    kept: list[Row] = []
    for row in sorted(fair, key=lambda row: (seconds_of(row, request.seconds) or 0.0, row.peak_rss_bytes or 0)):
        if not kept or (row.peak_rss_bytes or 0) < (kept[-1].peak_rss_bytes or 0):
            kept.append(row)
    return kept
