"""How long the rest of a run will take, where every cell that is still to come has been seen before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.budget import SECONDS_TO_START
from harness.kept_costs import exact_cost
from harness.outcome import Block, stopped_at_the_limit
from harness.plan import TrainCell

if TYPE_CHECKING:
    from harness.schedule import Run


def seconds_left(run: Run, block: Block, waiting: Sequence[TrainCell]) -> float | None:
    """The seconds of those that wait in this block and of the blocks after it; None if one of them is unknown."""
    if not run.display.console.is_terminal:
        return None
    blocks = run.blocks()
    stopped = stopped_at_the_limit(run.trained)
    later = [cell for cell in run.cells if cell.key() not in stopped] * (len(blocks) - 1 - blocks.index(block))
    costs = {cell.key(): cost_of(run, cell) for cell in run.cells}
    known = [cost for cell in (*waiting, *later) if (cost := costs[cell.key()]) is not None]
    return sum(known) if len(known) == len(waiting) + len(later) else None


def cost_of(run: Run, cell: TrainCell) -> float | None:
    """What a cell takes by what is kept of it, up to its limit."""
    known = run.forecast.known.get(cell.key()) or exact_cost(cell, run.machine)
    if known is None:
        return None
    wall = cell.limits.wall_seconds
    return SECONDS_TO_START + (known.seconds if wall is None else min(known.seconds, wall))
