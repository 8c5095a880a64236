"""The performance profile of Dolan and Moré: in what share of the cells each trainer is within so
many times of the best.

A cell is a text, a vocabulary, a pattern and a number of threads on one machine, and a tie-break if
a trainer was run under several. A cell that a trainer never reached, or in which it failed or was
stopped, counts as never.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import counted_text, share_text
from harness.results.canvas import (
    LINE,
    LONGEST_LABEL,
    SMALL,
    Words,
    chart,
    hover,
    look_of,
    new_axes,
    new_figure,
    scale,
    short,
)
from harness.results.fields import together
from harness.results.legend import caption_of, names_of
from harness.results.ratios import leader, ratio_of
from harness.results.rows import Row
from harness.results.writing import join_names
from harness.worker.calling import OWN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TIMES = (2.0, 5.0, 10.0, 100.0)
NEVER = "Never: wrong or unproved merges, failed, stopped by a limit, or not run."
PANEL_POINTS, LABEL_POINTS = 175.0, 12.0
"""The height of the axes at least, and of the name of a curve."""


class Curve(NamedTuple):
    """A trainer, how many times the best one's time it took in the cells that it solved, in order,
    and in how many cells all others are slower.
    """

    name: str
    colour: str
    ratios: Sequence[float]
    firsts: int = 0


class Profile(NamedTuple):
    """The curves over so many cells, those of trainers that solve most first."""

    curves: Sequence[Curve]
    cells: int
    caption: Sequence[str]
    notes: Sequence[str]

    def share(self, curve: Curve, times: float = math.inf) -> float:
        """The share of the cells that the trainer solves within so many times of the best."""
        return bisect_right(curve.ratios, times) / self.cells

    def steps(self, curve: Curve) -> dict[float, float]:
        """The share at each number of times where it rises."""
        return {times: self.share(curve, times) for times in (1.0, *curve.ratios)}


def profile_of(rows: Sequence[Row]) -> Profile | None:
    """The profile over the cells in which two trainers or more ran; None if there are none."""
    others = [row.name for row in rows if row.other_merges]
    ran = []
    for row in rows:
        if not row.counting_only and row.status != "skipped" and row.name not in others:
            ran.append(row)
    names = dict(zip(ran, names_of(ran), strict=True))

    compared, alone = list[list[Row]](), list[list[Row]]()
    for cell in _cells(names):
        trainers = {names[row] for row in cell}
        (compared if len(trainers) > 1 else alone).append(cell)
    if not compared:
        return None

    number = counted_text(len(compared), "cell")
    text = f"{number} of text, vocabulary, pattern and threads"
    if alone:
        text += f"; {len(alone)} more in which only one trainer ran"
    notes = [NEVER]
    if others:
        left_out = join_names([*dict.fromkeys(others)])
        notes.append(f"Left out, for it makes other merges on purpose: {left_out}.")
    caption = [text, *caption_of(list(chain(*compared)))[-1:]]
    return Profile(_curves(compared, names), len(compared), caption, notes)


def _curves(cells: Sequence[Sequence[Row]], names: Mapping[Row, str]) -> list[Curve]:
    """A curve for each trainer that ran in any of the cells; who solves most comes first."""
    colours, ratios = dict[str, str](), dict[str, list[float]]()
    firsts = Counter[str]()
    for cell in cells:
        first = leader(cell)
        if first is not None:
            firsts[names[first]] += 1
        for row in cell:
            colours[names[row]] = look_of(row.name).colour
            ratios.setdefault(names[row], [])
        for name, ratio in _ratios(cell, names).items():
            ratios[name].append(ratio)

    curves = []
    for name, found in ratios.items():
        curves.append(Curve(name, colours[name], sorted(found), firsts[name]))
    return sorted(curves, key=lambda curve: (-len(curve.ratios), curve.ratios))


def required_profile(rows: Sequence[Row]) -> Profile:
    """The profile. Raises Refusal if there is none."""
    profile = profile_of(rows)
    if profile is None:
        why = "profile: no cell was measured with two trainers"
        raise Refusal(f"{why}; python -m harness variants=A,B measures some", UNMEASURED)
    return profile


def _cells(names: Mapping[Row, str]) -> list[list[Row]]:
    """The rows of each cell. A stopped trainer of its own tie-break has not shown which that is."""
    finished = {row: name for row, name in names.items() if row.values["tie_break"] != OWN}
    learned = {(name, row.values["tie_break"]) for row, name in finished.items()}
    has_several = len(learned) > len({*finished.values()})

    keyed = []
    for row in names:
        tie_break = row.values["tie_break"] if has_several else None
        keyed.append(((row.question, tie_break, row.threads, row.record.run.host), row))
    return list(together(keyed).values())


def _ratios(cell: Sequence[Row], names: Mapping[Row, str]) -> dict[str, float]:
    """How many times the best one's time each trainer took that solved the cell, by its fastest
    row.
    """
    solved = sorted((row for row in cell if row.is_ranked), key=lambda row: row.total or 0.0)
    ratios: dict[str, float] = {}
    for row in solved:
        ratio = ratio_of(row, solved[0])
        if ratio is not None:
            # the best one by its median may be the slower one within blocks
            ratios.setdefault(names[row], max(1.0, ratio.number))
    return ratios


def profile_sheet(profile: Profile) -> Sheet:
    """A line for each trainer with its shares."""
    bounds = {}
    for times in TIMES:
        bounds[f"within {times:g} ×"] = times
    bounds["solved"] = math.inf

    curves = profile.curves
    columns = [
        Column("trainer", [curve.name for curve in curves], figures=False),
        Column("fastest", [share_text(curve.firsts / profile.cells) for curve in curves]),
    ]
    for heading, times in bounds.items():
        shares = [share_text(profile.share(curve, times)) for curve in curves]
        columns.append(Column(heading, shares))
    return Sheet(profile.caption, columns, notes=profile.notes)


@chart
def profile(rows: Sequence[Row]) -> Figure:
    """A step line for each trainer over how many times the best one's time it may take."""
    found = required_profile(rows)
    winner = max(found.curves, key=lambda curve: curve.firsts)
    title = f"{winner.name} is fastest in {winner.firsts} of {found.cells} cells"
    if not winner.firsts:
        title = f"Too close to rank in all {found.cells} cells"
    points = max(PANEL_POINTS, LABEL_POINTS * len(found.curves))
    figure, (spec,) = new_figure(Words(title, found.caption, found.notes), [points / 72 + 0.6])

    axes = new_axes(figure, spec)
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    ratios = [ratio for curve in found.curves for ratio in curve.ratios]
    scale(axes, "x", [1.0, *ratios], "times the best", is_log=True)
    scale(axes, "y", [100.0], "% of the cells", is_log=False)
    colours = list[str]()
    for index, curve in enumerate(found.curves):
        steps = {**found.steps(curve), axes.get_xlim()[1]: found.share(curve)}
        (line,) = axes.step([*steps], [100 * share for share in steps.values()], where="post")
        # the first ones lie on top, and the second one of a colour is dashed
        dashes = "--" if curve.colour in colours else "-"
        line.set(color=curve.colour, linestyle=dashes, clip_on=False, zorder=3 - index / 100)
        colours.append(curve.colour)
        hover(line, f"{curve.name}: {share_text(found.share(curve))} of the cells solved")
    _write_names(axes, found, points)
    return figure


def _write_names(axes: Axes, found: Profile, points: float) -> None:
    """The name of each curve at its end, or as near to it as the other names leave room; the axes
    are at least so many points high.
    """
    highest, below = math.inf, len(found.curves)
    for curve in found.curves:
        share = found.share(curve)
        below -= 1
        height = max(LABEL_POINTS * below, min(points * share, highest))
        highest = height - LABEL_POINTS
        axes.annotate(
            short(curve.name, LONGEST_LABEL), (axes.get_xlim()[1], 100 * share), (6, height - points * share),
            textcoords="offset points", va="center", fontsize=SMALL, color=curve.colour, annotation_clip=False,
        )  # fmt: skip
