"""plan=true: what would be measured, in which blocks, and how long that may take where limits.wall says so."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from harness.common.console import terminal_text
from harness.common.units import counted_text, duration_text
from harness.runs.cells import CountCell, TrainCell, task_key
from harness.runs.schedule import count_cells
from harness.runs.settings import Settings


def show_plan(cells: Sequence[TrainCell], settings: Settings, console: Console) -> None:
    """A line for each counter and cell, and one for the whole; nothing is run for it."""
    lines = [count_line(cell) for cell in count_cells(cells)]
    lines += [cell_line(cell) for cell in cells]
    for line in [*lines, summary(cells, settings)]:
        console.print(terminal_text(line), soft_wrap=True, highlight=False, markup=False)


def count_line(cell: CountCell) -> str:
    return f"counting {cell.reading.file.name} ({cell.counter.name}, threads={cell.threads}), once in every block"


def cell_line(cell: TrainCell) -> str:
    return (
        f"{cell.variant.name} on {cell.reading.file.name} ({cell.reading.file.bytes:,} bytes), "
        f"{cell.num_merges:,} merges, counting={cell.count.counter.name}, threads={cell.threads}"
    )


def summary(cells: Sequence[TrainCell], settings: Settings) -> str:
    """How often all of it is run, and the longest that the trainers can take."""
    warm_up, rule = settings.measure.warm_up, settings.measure.precision
    blocks = counted_text(settings.repeat, "block") if rule is None else f"{rule.fewest} to {rule.most} blocks"
    blocks += f" after {warm_up} of warm-up" if warm_up else ""
    blocks += f", as many as ratios within {rule.within:.0%} need" if rule is not None else ""
    tasks = len({task_key(cell) for cell in cells})
    told = f"{counted_text(len(cells), 'cell')} in {counted_text(tasks, 'task')}, {blocks}"
    walls = [cell.limits.wall_seconds for cell in cells]
    if None not in walls:
        # What is stopped is stopped once, and may take as long again for the estimate of its total.
        times = max(2, settings.measure.blocks(settings.repeat) + warm_up)
        told += f", trainers at most {duration_text(times * sum(filter(None, walls)))} by limits.wall"
    return f"{told}; nothing was run (plan=true)"
