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
import hashlib
import math
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from harness.common import cache
from harness.common.cards import MeasureCard
from harness.common.comparison import Sample, compare, interval
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import open_appending
from harness.common.printing import print_stderr
from harness.measure.process import PACKAGES
from harness.measure.quiet import lock
from harness.records.file import Joined, Record, RunLog
from harness.records.lines import RecordFile, unwritable
from harness.records.schema import End, Line, Run
from harness.runs.cells import Block, Plan, Side, TrainCell, blocks_of
from harness.runs.jobs import redacted_override
from harness.worker.exchange import file_state

TIMEOUT = "timeout"  # the status of cells that were stopped at limits.wall
RUNNING = ".running-"
FAR, BLOCKS_OF_THE_FAR = 20, 3


def open_log(plan: Plan, machine: str, now: str, opened: contextlib.ExitStack) -> RunLog:
    """The log of the unfinished run of this plan that no process is working on, or of a new one;
    held while `opened`.

    Raises Refusal if the results cannot be written.
    """
    key = plan_key(plan, machine)
    store = RecordFile(Path(plan.settings.results))
    alone = hold(store.path.parent / f"{RUNNING}{key}", opened)
    lines = unfinished(store.path, key) if alone and not plan.settings.rerun else []
    if lines:
        started = f"the run of {lines[0].run[:16]}"
        imported = ImportedFiles(cache.key_of(lines[0].run, key))
        if imported.states and not imported.changed():
            print_stderr(f"continuing {started} after what it has measured; rerun=true starts anew")
        else:
            print_stderr(f"{started} cannot be resumed: its code was changed since; starting anew")
            lines = []
    overrides = list(map(redacted_override, plan.overrides))
    return RunLog(store, lines[0].run if lines else now, key, overrides, lines)


def unfinished(path: Path, plan: str) -> list[Line]:
    """The lines of the run of a plan that was started last, if it has no end."""
    runs: dict[str, list[Line]] = {}
    for _, _, line in Joined().read(path):
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
    how = replace(plan.settings, results="", plan=False, rerun=False, overwrite=False)
    return cache.key_of(sorted(cell.key for cell in plan.cells), repr(how), machine)


# Which cells of a task are still to be measured.


def pending(
    cells: Sequence[TrainCell], how: MeasureCard, records: Sequence[Record]
) -> list[tuple[Block, list[TrainCell]]]:
    """The blocks of a task that are still to be measured, by its records so far, and which cells in
    each.
    """
    trained = [record for record in records if record.trains]
    stopped = {record.cell.run_key for record in trained if record.status == TIMEOUT}
    wanted = blocks_wanted(cells, how, trained)
    blocks = blocks_of(how)

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
    cells: Sequence[TrainCell], how: MeasureCard, trained: Sequence[Record]
) -> dict[str, int]:
    """Return how many blocks each cell gets by its ratios so far; a reference gets as many as any
    cell compared with it.
    """
    if how.precision is None:
        return {cell.key: how.repeat for cell in cells}
    samples: dict[str, list[Sample]] = {cell.key: [] for cell in cells}
    for record in trained:
        sample = record.sample
        if sample is not None and record.block_whole and not record.measurement.warm_up:
            samples[record.cell.run_key].append(sample)

    number = dict.fromkeys(samples, 0)
    for cell in cells:
        # a cell is compared with the first of its task that has as many threads
        reference = next(other for other in cells if other.count.threads == cell.count.threads)
        needed = how.repeat
        compared = compare(samples[cell.key], samples[reference.key])
        if compared is not None and compared.blocks:
            ratios = list(map(math.log, compared.ratios))
            needed = (
                blocks_needed(ratios, how.precision, how.repeat, how.max_blocks) + compared.left_out
            )
            needed = BLOCKS_OF_THE_FAR if compared.ratio > FAR else needed
        for key in (cell.key, reference.key):
            number[key] = max(number[key], min(needed, how.max_blocks))
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


# The code that was measured: the files that the processes of a run say they have imported. Their
# digest is part of each record. If one of them changes, times would be of two programs: the run
# ends, and an interrupted run is not resumed. For that their states are kept in the cache until the
# run is complete.

State = list[int]
WITHOUT_LINKS = 4  # a new link to a file, as package managers make, changes only its last time


class WrongCode(Refusal):
    """What was measured is not the code that was asked about."""

    def __init__(self, message: str) -> None:
        super().__init__(message, UNMEASURED)


def file_changed(path: str) -> WrongCode:
    why = f"{path} was changed after this run had imported it"
    return WrongCode(f"{why}, so its times would be of two programs; run the same again")


class ImportedFiles:
    """The imported files of a run by path, with their states; kept in the cache by a `key` if the
    run can be resumed.
    """

    def __init__(self, key: str | None) -> None:
        self.key = key
        entry = None if key is None else cache.find("imported", key)
        self.states: dict[str, State] = {} if entry is None else entry.facts
        self.digests = dict[str, str]()

    def changed(self) -> list[str]:
        """Return those that have changed."""
        return [path for path, state in self.states.items() if import_state(path) != state]

    def add(
        self, imported: Mapping[str, State], params: Mapping[str, Any], side: Side | None = None
    ) -> str | None:
        """Add what a process of a side has imported, and the programs that parameters name; return
        the digest of all these files, None without one.

        Raises WrongCode if one was changed since, or differs from what another process has
        imported, or may not be imported by the side.
        """
        if side is not None and side.forbidden:
            check_side(imported, side)

        before = len(self.states)
        programs = {path: import_state(path) for path in programs_in(params)}
        found = set()
        for path, whole_state in {**imported, **programs}.items():
            now, state = import_state(path), whole_state[:WITHOUT_LINKS]
            if not now and path not in self.states:
                continue  # of a folder that was the process's own, and is gone with it
            if self.states.setdefault(path, state) != state or now != state:
                raise file_changed(path)
            if path not in self.digests:
                self.digests[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            found.add(self.digests[path])

        if self.key is not None and len(self.states) > before:
            cache.put("imported", self.key, lambda _: self.states)
        return cache.key_of(*sorted(found)) if found else None

    def forget(self) -> None:
        """Remove what is kept: the run is complete."""
        if self.key is not None:
            cache.remove("imported", self.key)


def programs_in(params: Mapping[str, Any]) -> list[str]:
    """Return the files that parameters name, as a command does: by a path, or by a name with a
    suffix.
    """
    named = []
    for value in params.values():
        try:
            named += shlex.split(value) if isinstance(value, str) else []
        except ValueError:  # a quotation that does not end
            continue
    return [word for word in named if ("/" in word or "." in word) and Path(word).is_file()]


def check_side(imported: Iterable[str], side: Side) -> None:
    """Raise WrongCode if a file lies in the folder that is forbidden to a side.

    The harness that measures both sides, and what is installed for this interpreter, may.
    """
    made = Path(side.import_folders[0]).parent  # the checkout of the side, wherever that is
    allowed = [path.resolve() for path in (made, Path(PACKAGES, "harness"), Path(sys.prefix))]
    for name in imported:
        path = Path(name).resolve()
        inside = path.is_relative_to(side.forbidden)
        if inside and not any(path.is_relative_to(folder) for folder in allowed):
            advice = "import it from a package that is committed with the trainer"
            raise WrongCode(f"{side.name} imported {path}, a file of the working tree; {advice}")


def import_state(path: str) -> State:
    """The state of an imported file; empty if it is gone."""
    return (file_state(path) or [])[:WITHOUT_LINKS]
