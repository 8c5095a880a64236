"""plan=true: what would be measured, in which blocks, and what it would cost by what earlier runs have shown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from harness.common.media import terminal_text
from harness.common.units import counted_text, duration_text
from harness.runs import store
from harness.runs.cells import CountCell, TrainCell
from harness.runs.costs import MOST_SECONDS, SHARE_OF_LIMIT, expected_cost
from harness.runs.extrapolation import Estimate
from harness.runs.record_of import by_itself
from harness.runs.settings import Settings

UNKNOWN = "time unknown"


def show_plan(cells: Sequence[TrainCell], settings: Settings, machine: str, console: Console) -> None:
    """A line for each counter and cell with its predicted cost, and one for the whole; nothing is run for it."""
    counters = list({(cell.reading.key, cell.count.key()): cell.count for cell in cells}.values())
    costs = [expected_cost(cell, machine) for cell in cells]
    lines = [count_line(cell, settings, machine) for cell in counters]
    lines += [f"{cell_line(cell)}: {cost_text(cell, cost)}" for cell, cost in zip(cells, costs, strict=True)]
    for line in [*lines, summary(cells, costs, settings)]:
        console.print(terminal_text(line), soft_wrap=True, highlight=False, markup=False)


def took_text(seconds: float) -> str:
    """
    >>> took_text(0.0123), took_text(75)
    ('12 ms', '75 s')
    """
    return duration_text(seconds) if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def count_line(cell: CountCell, settings: Settings, machine: str) -> str:
    known = store.measured_count(cell, machine)
    told = f"counting {cell.reading.file.name} ({cell.counter.name}, threads={cell.threads})"
    if known is None:
        return f"{told}: {UNKNOWN}"
    took = took_text(known["total"])
    return f"{told}: {took} in every block" if settings.fresh_counts else f"{told}: kept, took {took}"


def cell_line(cell: TrainCell) -> str:
    return (
        f"{cell.variant.name} on {cell.reading.file.name} ({cell.reading.file.bytes:,} bytes), "
        f"{cell.num_merges:,} merges, counting={cell.count.counter.name}, threads={cell.threads}"
    )


def cost_text(cell: TrainCell, cost: Estimate | None) -> str:
    """What a cell takes in one block, and whether limits.wall lets it."""
    if cost is None:
        return UNKNOWN
    told = took_text(cost.seconds)
    if (between := f"{took_text(cost.low)} to {took_text(cost.high)}") != f"{told} to {told}":
        told += f" ({between})"
    wall = cell.limits.wall_seconds
    if wall is not None and cost.low > wall:
        return f"{told}; stops at limits.wall={wall:g} s, once"
    return told


def longest(cells: Sequence[TrainCell], settings: Settings) -> float | None:
    """What all of it can take where every cell has a limit: slices to predict it, every block, and beginnings."""
    walls = [cell.limits.wall_seconds for cell in cells if cell.limits.wall_seconds is not None]
    if len(walls) < len(cells):
        return None
    predicting = sum(min(SHARE_OF_LIMIT * wall, MOST_SECONDS) for wall in walls)
    predicting += sum(wall for cell, wall in zip(cells, walls, strict=True) if by_itself(cell, {}))
    return predicting + sum(walls) * (settings.measure.blocks(settings.repeat) + settings.measure.warm_up)


def summary(cells: Sequence[TrainCell], costs: Sequence[Estimate | None], settings: Settings) -> str:
    """How often all of it is run, and how long that takes where it is known."""
    warm_up = settings.measure.warm_up
    rule = settings.measure.precision
    blocks = counted_text(settings.repeat, "block") if rule is None else f"{rule.fewest} to {rule.most} blocks"
    blocks += f" after {warm_up} of warm-up" if warm_up else ""
    blocks += f" until ratios are known within {rule.within:.0%}" if rule is not None else ""
    seconds, missing = 0.0, 0
    for cell, cost in zip(cells, costs, strict=True):
        wall = cell.limits.wall_seconds
        if cost is None:
            missing += 1
        elif wall is not None and cost.low > wall:
            seconds += wall
        else:
            seconds += cost.seconds * (settings.repeat + warm_up)
    least = "about" if rule is None else "at least"
    told = f"{least} {took_text(seconds)} for the trainers" if missing < len(cells) else UNKNOWN
    if 0 < missing < len(cells):
        told += f", without the {missing} whose time is unknown"
    most = longest(cells, settings)
    if missing and most is not None:
        told += f", trainers at most {took_text(most)} by limits.wall"
    return f"{counted_text(len(cells), 'cell')}, {blocks}, {told}; nothing was run (plan=true)"
