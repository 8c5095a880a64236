"""The published figures beside ours: seconds of each program, and the ratios that the series claims."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness import published
from harness.colours import Look
from harness.pictures import marks
from harness.pictures.page import EDGE, WIDTH, Page, label_room
from harness.pictures.questions import caption, lacking
from harness.pictures.request import Request
from harness.pictures.scales import log_axis, log_range
from harness.pictures.theme import FAINT, INK, WRONG, Theme
from harness.pictures.values import MEASURED, Value
from harness.rows import Row
from harness.units import ratio_text

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

THEIRS = Look(FAINT, "diamond")
QUANTITY = "merge"
"""Everything but reading and counting: the one figure that nearly every published program has."""


class Pair(NamedTuple):
    """One published figure with ours: of a program on a corpus of theirs, or of a claim."""

    label: str
    theirs: float
    ours: float
    row: Row
    held: bool = True
    least: float | None = None


def draw(shown: Sequence[Row], request: Request) -> Figure:
    """Above the programs' seconds, theirs and ours; below, how many times as long one takes as another."""
    usable = [row for row in shown if row.status == "ok" and not row.counting_only]
    known = published.programs()
    programs, claims = program_pairs(known, usable), claim_pairs(known, usable)
    if not programs and not claims:
        raise lacking(
            "published: no record is of a program of the series; experiment=series_python and series_cpp measure them"
        )
    labels = [[pair.label for pair in programs], ["\n".join(textwrap.wrap(pair.label, 50)) for pair in claims]]
    left = EDGE + label_room([label for each in labels for label in each], 7.5, 3.9)
    steps = (0.165, 0.34)
    heights = [0.0 if not own else step * len(own) + 0.9 for step, own in zip(steps, labels, strict=True)]
    rows = [row for row in usable if row in [pair.row for pair in (*programs, *claims)]]
    page = Page(
        request.theme,
        request.title or "Published against ours: seconds of merging, and what follows from them",
        caption(rows),
        [
            "Theirs are medians on their corpora (2 and 12 GB) and their machine, ours on ours: compare pattern and "
            "ratios, never two seconds.",
            f"A claim holds if ours reaches the factor at the bar (|): {sum(pair.held for pair in claims)} of the "
            f"{len(claims)} that these records can judge do.",
        ],
        0.02 + sum(heights),
        _key(request.theme, claims),
    )
    top = 0.3
    parts = zip((programs, claims), labels, steps, heights, ("programs", "claims"), strict=True)
    for pairs, own, step, height, name in parts:
        if not pairs:
            continue
        axes = page.rows_panel(left, top, WIDTH - 2 * EDGE - left - 0.85, own, step, name)
        _draw_pairs(axes, pairs, request, name)
        top += height
    return page.figure


def program_pairs(known: dict[str, published.Program], usable: Sequence[Row]) -> list[Pair]:
    """Every program that has a published figure and a row of ours, in the order of the series."""
    found = []
    for program in known.values():
        row = next((row for row in usable if program.is_measured_by(row)), None)
        ours = published.seconds_of(row, QUANTITY) if row is not None else None
        for data in program.data:
            theirs = program.seconds(QUANTITY, data)
            if theirs and ours and row is not None:
                found.append(Pair(f"{program.name} on {data}", theirs, ours, row))
    return found


def claim_pairs(known: dict[str, published.Program], usable: Sequence[Row]) -> list[Pair]:
    """Every claim that these rows can judge."""
    judged = [published.judge(claim, usable) for claim in published.claims(known)]
    return [
        Pair(each.claim.says, each.claim.published, each.ours, each.fast, each.verdict == "held", each.claim.factor)
        for each in judged
        if each.ours and each.claim.published and each.fast is not None
    ]


def _key(theme: Theme, claims: Sequence[Pair]) -> list[Artist]:
    from matplotlib.lines import Line2D

    ours = Look(INK, "circle")
    entries = [
        Line2D([], [], linestyle="none", label="theirs", **marks.style_of(MEASURED, THEIRS, theme)),
        Line2D(
            [],
            [],
            linestyle="none",
            label="ours (colour and shape of the variant)",
            **marks.style_of(MEASURED, ours, theme),
        ),
    ]
    if claims:
        entries.append(
            Line2D([], [], linestyle="none", marker="|", markersize=9, color=theme.ink, label="factor to reach")
        )
    if not all(pair.held for pair in claims):
        refuted = marks.style_of(MEASURED, Look(WRONG, "circle"), theme) | {
            "markerfacecolor": theme.card,
            "markeredgecolor": theme.wrong,
        }
        entries.append(Line2D([], [], linestyle="none", label="ours, which refutes the claim", **refuted))
    return list(entries)


def _draw_pairs(axes: Axes, pairs: Sequence[Pair], request: Request, name: str) -> None:
    theme = request.theme
    for place, pair in enumerate(pairs):
        look = marks.row_look(pair.row)
        axes.plot([pair.theirs, pair.ours], [place, place], color=theme.line, linewidth=1.4, zorder=1)
        theirs, ours = Value(MEASURED, pair.theirs), Value(MEASURED, pair.ours)
        marks.mark(axes, theirs, pair.theirs, place, THEIRS, theme, f"{name}-theirs-{place}", 5)
        if pair.least is not None:
            (least,) = axes.plot(
                [pair.least], [place], marker="|", markersize=10, color=theme.ink, linestyle="none", zorder=3
            )
            least.set_gid(f"least-{name}-{place}")
        if pair.held:
            marks.mark(axes, ours, pair.ours, place, look, theme, f"{name}-ours-{place}", 6)
        else:
            (marker,) = axes.plot(
                [pair.ours],
                [place],
                marker=marks.MARKERS[look.shape],
                markersize=6,
                linestyle="none",
                color=theme.card,
                markeredgecolor=theme.wrong,
                markeredgewidth=1.6,
                zorder=4,
            )
            marker.set_gid(f"value-{name}-ours-{place}")
        if pair.least is not None:
            axes.text(
                1.0,
                place,
                f"{ratio_text(pair.ours)} / {ratio_text(pair.theirs)}",
                transform=axes.get_yaxis_transform(),
                fontsize=7,
                color=theme.faint,
                va="center",
                ha="left",
            )
    numbers = [number for pair in pairs for number in (pair.theirs, pair.ours, pair.least) if number]
    unit = (
        "seconds of everything but reading and counting"
        if name == "programs"
        else "times as slow, ours / theirs at the right"
    )
    log_axis(axes, "x", *log_range(numbers), unit)
