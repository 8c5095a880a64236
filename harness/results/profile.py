"""The performance profile of Dolan and Moré: in what share of the cells each trainer is within so
many times of the best.

A cell is a text, a vocabulary, a pattern and a number of threads on one machine. A cell that a
trainer never reached, or in which it failed or was stopped, counts as never.
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
from harness.results.canvas import chart, log_scale, new_figure
from harness.results.claim import firsts_text
from harness.results.fields import together
from harness.results.legend import caption_of, names_of
from harness.results.lines import Line, draw_lines, height_beside
from harness.results.ratios import leader, ratio_of
from harness.results.rows import Row
from harness.results.writing import join_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMES = (2.0, 5.0, 10.0, 100.0)
NEVER = "Never: wrong or unproved merges, failed, stopped by a limit, or not run."


class Curve(NamedTuple):
    """A trainer, how many times the best one's time it took in the cells that it solved, in order,
    and in how many cells all others are slower.
    """

    name: str
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


def profile_of(rows: Sequence[Row]) -> Profile | None:
    """The profile over the cells in which two trainers or more ran; None if there are none."""
    others = [row.name for row in rows if row.other_merges]
    ran = []
    for row in rows:
        if not row.counting_only and row.status != "skipped" and row.name not in others:
            ran.append(row)
    names = dict(zip(ran, names_of(ran), strict=True))

    compared, alone = list[list[Row]](), list[list[Row]]()
    cells = together([((row.question, row.threads, row.record.run.host), row) for row in ran])
    for cell in cells.values():
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
    ratios = dict[str, list[float]]()
    firsts = Counter[str]()
    for cell in cells:
        first = leader(cell)
        if first is not None:
            firsts[names[first]] += 1
        for row in cell:
            ratios.setdefault(names[row], [])
        for name, ratio in _ratios(cell, names).items():
            ratios[name].append(ratio)

    curves = []
    for name, found in ratios.items():
        curves.append(Curve(name, sorted(found), firsts[name]))
    return sorted(curves, key=lambda curve: (-len(curve.ratios), curve.ratios))


def required_profile(rows: Sequence[Row]) -> Profile:
    """The profile. Raises Refusal if there is none."""
    profile = profile_of(rows)
    if profile is None:
        why = "profile: no cell was measured with two trainers"
        raise Refusal(f"{why}; python -m harness variants=A,B measures some", UNMEASURED)
    return profile


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
    firsts = Counter({curve.name: curve.firsts for curve in found.curves if curve.firsts})
    title, accent = firsts_text(firsts, found.cells, "cells")
    times = sorted({1.0, *chain(*(curve.ratios for curve in found.curves))})
    times.append(1.25 * times[-1])

    lines = []
    for curve in found.curves:
        shares = [100 * found.share(curve, bound) for bound in times]
        lines.append(Line(curve.name, times, shares, curve.name == accent))
    heights = [height_beside(lines)]
    figure, ((axes,),) = new_figure(title, found.caption, found.notes, heights)

    log_scale(axes, "x", times[:-1], "times the best")
    axes.set(ylim=(0, 102), ylabel="% of the cells")
    draw_lines(axes, lines, "steps-post")
    return figure
