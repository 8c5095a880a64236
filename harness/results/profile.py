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
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import counted_text, share_text
from harness.results.canvas import chart, log_scale, new_figure
from harness.results.fields import together
from harness.results.lines import DrawnLine, draw_lines, height_beside
from harness.results.notes import firsts_text
from harness.results.ratios import leader, ratio_of
from harness.results.rows import Row, Time
from harness.results.writing import caption_of, join_names, names_of

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
    firsts: int


class Profile(NamedTuple):
    """The curves over so many cells, those of trainers that solve most first."""

    curves: Sequence[Curve]
    cells: int
    caption: Sequence[str]
    notes: Sequence[str]

    def share(self, curve: Curve, times: float) -> float:
        """The share of the cells that the trainer solves within so many times of the best."""
        return bisect_right(curve.ratios, times) / self.cells


def profile_of(rows: Sequence[Row]) -> Profile:
    """The profile over the cells in which two trainers or more ran. Raises Refusal if there are
    none.
    """
    others = dict.fromkeys(row.name for row in rows if row.other_merges)
    ran = []
    for row in rows:
        if not row.counting_only and row.status != "skipped" and row.name not in others:
            ran.append(row)
    names = dict(zip(ran, names_of(ran), strict=True))

    cells = together([((row.question, row.threads, row.record.run.host), row) for row in ran])
    compared = list[list[Row]]()
    for cell in cells.values():
        if len({names[row] for row in cell}) > 1:
            compared.append(cell)
    if not compared:
        why = "profile: no cell was measured with two trainers"
        raise Refusal(f"{why}; python -m harness variants=A,B measures some", UNMEASURED)

    number, alone = len(compared), len(cells) - len(compared)
    text = f"{counted_text(number, 'cell')} of text, vocabulary, pattern and threads"
    if alone:
        text += f"; {alone} more in which only one trainer ran"
    notes = [NEVER]
    if others:
        left_out = join_names(list(others))
        notes.append(f"Left out, for it makes other merges on purpose: {left_out}.")
    caption = [text, *caption_of(list(chain(*compared)))[-1:]]
    return Profile(_curves(compared, names), number, caption, notes)


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

    curves = [Curve(name, sorted(found), firsts[name]) for name, found in ratios.items()]
    return sorted(curves, key=lambda curve: (-len(curve.ratios), curve.ratios))


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
    curves = profile.curves
    columns = [
        Column("trainer", [curve.name for curve in curves], figures=False),
        Column("fastest", [share_text(curve.firsts / profile.cells) for curve in curves]),
    ]
    for times in (*TIMES, math.inf):
        heading = "solved" if times == math.inf else f"within {times:g} ×"
        shares = []
        for curve in curves:
            shares.append(share_text(profile.share(curve, times)))
        columns.append(Column(heading, shares))
    return Sheet(profile.caption, columns, notes=profile.notes)


@chart
def profile(rows: Sequence[Row]) -> Figure:
    """A step line for each trainer over how many times the best one's time it may take."""
    found = profile_of(rows)
    best = max(found.curves, key=attrgetter("firsts"))
    title = firsts_text(best.name, best.firsts, found.cells, "cells")
    times = sorted({1.0, *chain(*(curve.ratios for curve in found.curves))})
    times.append(1.25 * times[-1])

    lines = []
    for curve in found.curves:
        shares = [Time(100 * found.share(curve, bound)) for bound in times]
        lines.append(DrawnLine(curve.name, curve.name, times, shares))
    figure, ((axes,),) = new_figure(title, found.caption, found.notes, [height_beside(lines)])

    log_scale(axes, "x", times[:-1], "times the best")
    axes.set(ylim=(0, 102), ylabel="% of the cells")
    draw_lines(axes, lines, best.name if best.firsts else None, steps=True)
    return figure
