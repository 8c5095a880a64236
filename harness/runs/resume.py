"""What a run has measured, in `records.jsonl` as soon as it is measured; the same command continues from there.

A run is continued if it has the same plan, no end, and nobody is at it. With a single block the cells that have a
measurement are done. With several, a block is done if one attempt measured all of it; an interrupted one is measured
again as a whole, since its cells are compared with each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from harness import worker
from harness.common.console import say
from harness.measure.source_digest import source_sha256
from harness.records.file import Record, RecordFile, Splitter, read_lines, unwritable
from harness.records.load import Joined
from harness.records.schema import Block as BlockLine
from harness.records.schema import End, Line, Run
from harness.runs.cells import TrainCell
from harness.runs.precision import wanted
from harness.runs.settings import Settings

STOPPED = ("timeout", "extrapolated")
"""The statuses of what was stopped at limits.wall."""
WORKER_FOLDER = Path(worker.__file__).parent
"""The measured process's own half of `harness`: with other clocks around them, times are others."""
RUNNING = ".running-"
FILES = ("seeds", "protected")
"""A path, or tokens in brackets."""
PATHS = (*FILES, "data.path", "extend", "save", "results", "interpreter", "variant.params", "counting.params")
"""Overrides whose values may hold paths."""
FOLDERS = re.compile(r"[^][{}(),'\"=\s]*/")
ABSOLUTE = re.compile(r"(?<![\w.])/(?:[^\s/'\",]+/)+")


class Block(NamedTuple):
    """A pass over the cells of a task."""

    number: int
    warm_up: bool = False


def blocks_of(settings: Settings) -> list[Block]:
    """The blocks of a task in their order, warm-up first."""
    preset = settings.measure
    warm_up = [Block(number, warm_up=True) for number in range(preset.warm_up)]
    return warm_up + [Block(number) for number in range(preset.blocks(settings.repeat))]


def pending(
    cells: Sequence[TrainCell], settings: Settings, records: Sequence[Record], missing: Collection[str] = ()
) -> tuple[Block, list[TrainCell]] | None:
    """The next block of a task and the cells that it still has to measure; None if the task is done.

    `records` are those of this task; `missing` are the keys of cells whose saved tokenizer is gone.
    """
    blocks = blocks_of(settings)
    trained = [record for record in records if record["cell"] == "train"]
    stopped = {record["run_key"] for record in trained if record["status"] in STOPPED}
    for block in blocks:
        there = [record for record in trained if (record["block"], record["warm_up"]) == block]
        due = wanted(cells, block.number, settings.measure.precision, trained, warm_up=block.warm_up) - stopped
        lost = set(missing) if block == Block(0) else set()
        if len(blocks) == 1:
            due -= {record["run_key"] for record in there} - lost
        elif any(record["block_whole"] for record in there) and not lost:
            continue
        if due:
            return block, [cell for cell in cells if cell.key() in due]
    return None


class RunLog:
    """The lines of one run; without a file they are only remembered."""

    def __init__(self, store: RecordFile | None, run_id: str, plan: str = "", overrides: Sequence[str] = ()) -> None:
        self.store = store
        self.run_id = run_id
        self.about = {"run_id": run_id, "plan": plan, "overrides": list(overrides)}
        self.splitter = Splitter()
        self.joined = Joined()
        self.attempt = 1

    def resume(self, lines: Iterable[Line]) -> None:
        """Continue from the lines of an unfinished run."""
        for line in lines:
            self.splitter.note(line)
            self.joined.add(line)
        attempts = [record["attempt"] for record in self.joined.records]
        self.attempt = 1 + max(attempts, default=0)

    def add(self, record: Mapping[str, Any], closes: Block | None = None) -> Record:
        """Put a measurement on disk with its proof; it may close its block. Returns it as it is read."""
        lines = self.splitter.lines({**record, **self.about, "attempt": self.attempt})
        if closes is not None:
            number, warm_up = closes
            task, attempt = record["task"], self.attempt
            lines.append(BlockLine(run=self.run_id, task=task, block=number, warm_up=warm_up, attempt=attempt))
        for line in lines:  # first, so that a full disk does not keep it from being shown
            self.joined.add(line)
        if self.store is not None:
            self.store.append_lines(lines)
        return self.joined.records[-1]

    def records(self, task: int | None = None) -> list[Record]:
        """The records of the run, or of one of its tasks, in order."""
        return self.joined.whole(task)

    def finish(self) -> None:
        """Write that the run is complete."""
        if self.store is not None:
            self.store.append_lines([End(run=self.run_id)])


@contextlib.contextmanager
def open_log(store: RecordFile, plan: str, overrides: Sequence[str], now: str, *, rerun: bool) -> Iterator[RunLog]:
    """The log of the unfinished run of this plan that nobody is at, or of a new one; nobody else can have it."""
    clear_abandoned(store.path.parent)
    with contextlib.ExitStack() as stack:
        for lines in [] if rerun else unfinished(store.path, plan):
            run_id = lines[0].run
            if stack.enter_context(held(store.path.parent, run_id)):
                log = RunLog(store, run_id, plan, overrides)
                log.resume(lines)
                trained = sum(record["cell"] == "train" for record in log.joined.records)
                say(
                    f"continuing the run of {run_id[:16]}, {trained} trainer runs were measured; rerun=true starts anew"
                )
                break
        else:
            stack.enter_context(held(store.path.parent, now))
            log = RunLog(store, now, plan, overrides)
        yield log


def unfinished(path: Path, plan: str) -> list[list[Line]]:
    """The lines of each run of a plan that has no end and is newer than those that have, the newest run first."""
    runs: dict[str, list[Line]] = {}
    ended = set()
    for _, line in read_lines(path):
        if isinstance(line, Run) and line.plan == plan:
            runs.setdefault(line.run, [])
        if not isinstance(line, str) and line.run in runs:
            runs[line.run].append(line)
        if isinstance(line, End):
            ended.add(line.run)
    finished = max((run for run in runs if run in ended), default="")
    return [runs[run] for run in sorted(runs, reverse=True) if run > finished]


@contextlib.contextmanager
def held(folder: Path, run_id: str) -> Iterator[bool]:
    """Hold a run while this process is at it; False if another process is."""
    path = folder / f"{RUNNING}{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise unwritable(folder, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def clear_abandoned(folder: Path) -> None:
    """Remove what a killed run left: the kernel has unlocked it."""
    for path in folder.glob(f"{RUNNING}*"):
        with contextlib.suppress(OSError), path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def plan_key(cells: Sequence[TrainCell], settings: Settings, machine: str) -> str:
    """Names a plan: the same cells by the same code under the same limits, measured the same way on one machine."""
    work = sorted(
        [
            cell.key(),
            cell.memory_said,
            source_sha256(cell.variant.target, cell.variant.params),
            source_sha256(cell.count.counter.target),
        ]
        for cell in cells
    )
    preset = settings.measure
    how: list[Any] = [settings.repeat, settings.seed, settings.affinity, settings.concurrent, settings.tokens]
    how += [preset.name, preset.kind, preset.warm_up, preset.quiet_seconds]
    how += [] if preset.precision is None else [asdict(preset.precision)]
    worker_files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(WORKER_FOLDER.glob("*.py"))]
    parts = [work, how, machine, worker_files]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def without_folders(override: str) -> str:
    """An override as records keep it: of a path its last name alone.

    >>> without_folders("data.path=/home/me/book.txt"), without_folders("seeds=[a/b]")
    ('data.path=book.txt', 'seeds=[a/b]')
    """
    key, equals, value = override.partition("=")
    if not key.lstrip("+").startswith(PATHS) or (key in FILES and value.startswith("[")):
        return override if key == "pattern.regex" else ABSOLUTE.sub("", override)
    return f"{key}{equals}{FOLDERS.sub('', value)}"
