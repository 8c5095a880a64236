"""What a run has measured, in `records.jsonl` as soon as it is measured; the same command continues
from there.

A run is continued if it has the same plan, no end, and no process is working on it. With a single
block the cells that have a measurement are done. With several, a block is done if one attempt
measured all of it; an interrupted one is measured again as a whole, since its cells are compared
with each other.

With measure.precision, the spread of the first six blocks says how many are needed; so many are
measured and no more. Each cell is compared with the first of its task that has as many threads,
which is measured as often as any other needs it. The number is computed once, from how far the
ratios lie apart and never from where they lie, so it moves no ratio. A cell that takes over 20
times as long as its reference is measured three times, and has no interval.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path

from harness.common.comparison import Sample, compare, interval
from harness.common.files import open_appending
from harness.common.printing import print_stderr
from harness.measure.quiet import lock
from harness.records.file import Record, RunLog
from harness.records.lines import RecordFile, read_lines, unwritable
from harness.records.schema import End, Line, Run
from harness.runs.cells import Block, Plan, Settings, TrainCell, digest
from harness.runs.imports import ImportedFiles

TIMEOUT = "timeout"  # the status of cells that were stopped at limits.wall
RUNNING = ".running-"
FAR, BLOCKS_OF_THE_FAR = 20, 3


def open_log(plan: Plan, machine: str, now: str, opened: contextlib.ExitStack) -> RunLog:
    """The log of the unfinished run of this plan that no process is working on, or of a new one;
    held while `opened`.

    Raises Refusal if the results cannot be written.
    """
    key, overrides = plan_key(plan, machine), plan.settings.overrides
    store = RecordFile(plan.settings.results)
    alone = hold(store.path.parent / f"{RUNNING}{key}", opened)
    lines = unfinished(store.path, key) if alone and not plan.settings.rerun else []
    if lines:
        started = f"the run of {lines[0].run[:16]}"
        imported = ImportedFiles(digest([lines[0].run, key]))
        if imported.states and not imported.changed():
            print_stderr(f"continuing {started} after what it has measured; rerun=true starts anew")
        else:
            print_stderr(f"{started} cannot be resumed: its code was changed since; starting anew")
            lines = []
    return RunLog(store, lines[0].run if lines else now, key, overrides, lines)


def unfinished(path: Path, plan: str) -> list[Line]:
    """The lines of the run of a plan that was started last, if it has no end."""
    runs: dict[str, list[Line]] = {}
    for _, line in read_lines(path):
        if isinstance(line, Run) and line.plan == plan:
            runs.setdefault(line.run, [])
        if not isinstance(line, str) and line.run in runs:
            runs[line.run].append(line)
    newest = list(runs.values())[-1] if runs else []  # not by its time: clocks are set back
    return [] if any(isinstance(line, End) for line in newest) else newest


def hold(path: Path, opened: contextlib.ExitStack) -> bool:
    """Lock a file while this process works on a plan; False if another process does."""
    try:
        file = open_appending(path)
    except OSError as error:
        raise unwritable(path, error) from error

    is_alone = lock(opened.enter_context(file))
    if is_alone:
        opened.callback(path.unlink, missing_ok=True)
    return is_alone


def plan_key(plan: Plan, machine: str) -> str:
    """Names a plan: the same cells, measured the same way on one machine; memory is not part of
    it.
    """
    settings = plan.settings
    how = settings._replace(results=Path(), plan=False, rerun=False, overwrite=False, overrides=())
    return digest([sorted(cell.key for cell in plan.cells), repr(how), machine])


# Which cells of a task are still to be measured.


def pending(
    cells: Sequence[TrainCell], settings: Settings, records: Sequence[Record]
) -> list[tuple[Block, list[TrainCell]]]:
    """The blocks of a task that are still to be measured, by its records so far, and which cells in
    each.
    """
    trained = [record for record in records if record.trains]
    stopped = {record.cell.run_key for record in trained if record.status == TIMEOUT}
    wanted = blocks_wanted(cells, settings, trained)
    blocks = settings.blocks()

    todo = []
    for block in blocks:
        there = []
        for record in trained:
            if (record.measurement.block, record.measurement.warm_up) == block:
                there.append(record)
        if len(blocks) > 1 and any(record.block_whole for record in there):
            continue

        done = set(stopped)
        if len(blocks) == 1:
            done.update(record.cell.run_key for record in there)
        due = []
        for cell in cells:
            is_wanted = block.warm_up or block.number < wanted[cell.key]
            if is_wanted and cell.key not in done:
                due.append(cell)
        if due:
            todo.append((block, due))
    return todo


def blocks_wanted(
    cells: Sequence[TrainCell], settings: Settings, trained: Sequence[Record]
) -> dict[str, int]:
    """Return how many blocks each cell gets by its ratios so far; a reference gets as many as any
    cell compared with it.
    """
    if settings.precision is None:
        return {cell.key: settings.repeat for cell in cells}
    samples: dict[str, list[Sample]] = {cell.key: [] for cell in cells}
    for record in trained:
        sample = record.sample
        if sample is not None and record.block_whole and not record.measurement.warm_up:
            samples[record.cell.run_key].append(sample)

    number = dict.fromkeys(samples, 0)
    for cell in cells:
        reference, needed = reference_of(cell, cells), settings.repeat
        compared = compare(samples[cell.key], samples[reference.key])
        if compared is not None and compared.blocks:
            ratios = list(map(math.log, compared.ratios))
            needed = (
                blocks_needed(ratios, settings.precision, settings.repeat, settings.max_blocks)
                + compared.left_out
            )
            needed = BLOCKS_OF_THE_FAR if compared.ratio > FAR else needed
        for key in (cell.key, reference.key):
            number[key] = max(number[key], min(needed, settings.max_blocks))
    return number


def blocks_needed(log_ratios: Sequence[float], within: float, fewest: int, most: int) -> int:
    """How many blocks make the interval that narrow, from the ratios of the first `fewest`.

    >>> blocks_needed([0.0, 0.01, 0.02, 0.03, 0.04, 0.05], 0.05, 6, 20), blocks_needed([0.0] * 5 + [0.15], 0.05, 6, 20)
    (6, 15)
    """
    first = log_ratios[:fewest]
    low, high = interval(first)
    if low is None or high is None:
        return fewest
    needed = len(first) * ((high - low) / 2 / math.log1p(within)) ** 2
    return max(fewest, min(math.ceil(needed), most))


def reference_of(cell: TrainCell, cells: Sequence[TrainCell]) -> TrainCell:
    """The cell that a cell is compared with: the first of its task that has as many threads."""
    return next(other for other in cells if other.count.threads == cell.count.threads)
