"""What an unfinished run has measured, on disk as soon as it is measured, so that the same command goes on from there.

A run of a plan has a folder of its own below `<results>/unfinished`, a file for each measurement: a line of JSON, then
the merges. A file appears by being renamed after it has reached the disk, so it is there whole or not at all, whatever
ends the process. The folder is held under a lock while its run goes on, and goes when the records of the run are in
`records.jsonl`; each of these carries the run and the moment it began, by which it is known to be there already.

With a single block the cells that were measured count, and only the others are measured. With several, an interrupted
block is measured anew as a whole, since its cells are compared within it; what it had stays recorded as cut short.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness import worker
from harness.common.console import say
from harness.measure.source_digest import source_sha256
from harness.records.file import Record, RecordFile, read_lines, unwritable
from harness.records.load import join
from harness.runs import store
from harness.runs.cells import Reading, TrainCell, count_key
from harness.runs.outcome import Block, Counted, CountRun, Trained, stopped_at_the_limit
from harness.runs.settings import Settings
from harness.worker.merges_bytes import merges_from_bytes, merges_to_bytes
from variants.contract import Merge

UNFINISHED = "unfinished"
RUN = "run.json"
PARTIAL = ".partial"
WORKER_FOLDER = Path(worker.__file__).parent
"""The measured process' own half: with other clocks around them the same trainers are measured otherwise."""
CONCURRENT = "beside_others"
"""What `concurrent` is called in journals."""


@dataclass(frozen=True)
class Entry:
    """One measurement: what is needed to go on from it, the record it would be by itself, and where its merges are."""

    head: dict[str, Any]
    path: Path

    @property
    def record(self) -> Record:
        return self.head["record"]  # type: ignore[no-any-return]

    @property
    def attempt(self) -> int:
        """How often the run had been begun or gone on with by then."""
        return self.head["attempt"]  # type: ignore[no-any-return]

    def merges(self) -> list[Merge] | None:
        """Read when they are needed: those of all tasks together may be more than fits into memory."""
        if not self.head["has_merges"]:
            return None
        return merges_from_bytes(self.path.read_bytes().partition(b"\n")[2])


class Journal:
    """The folder of one unfinished run, which nobody else has."""

    def __init__(self, folder: Path, lock: int, run_id: str, entries: Sequence[Entry]) -> None:
        self.folder = folder
        self.lock = lock
        self.run_id = run_id
        self.entries = list(entries)
        self.continued = bool(entries)
        self.number = max((int(entry.path.name) for entry in self.entries), default=0)
        self.attempt = 1 + max((entry.attempt for entry in self.entries), default=0)

    def of_task(self, task: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.head["task"] == task]

    def add(self, head: Mapping[str, Any], merges: Sequence[Merge] | None) -> None:
        """Put a measurement on disk. Raises Refusal if that is full."""
        self.number += 1
        content = b"" if merges is None else merges_to_bytes(merges)
        line = json.dumps({**head, "attempt": self.attempt, "has_merges": merges is not None}).encode() + b"\n"
        try:
            write_whole(self.folder / f"{self.number:06}", line + content)
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def finish(self) -> None:
        """Its records are where they belong; nothing is left to go on from."""
        done = self.folder.with_name(f".{self.folder.name}-{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):  # somebody has removed the results meanwhile
            self.folder.rename(done)
            shutil.rmtree(done, ignore_errors=True)
            self.folder.parent.rmdir() if not any(self.folder.parent.iterdir()) else None

    def close(self) -> None:
        os.close(self.lock)


def open_journal(results: Path, plan_key: str, run_id: str) -> Journal:
    """The journal of the unfinished run of this plan that nobody is at, or a new one."""
    folder = results / UNFINISHED
    started = sorted(folder.glob(f"{plan_key}-*")) if folder.is_dir() else []
    for place in started:
        journal = held(place)
        if journal is not None and journal.entries:
            return journal
        if journal is not None:
            journal.close()
    for number in itertools.count(1):
        try:
            if (journal := begun(folder / f"{plan_key}-{number}", run_id)) is not None:
                return journal
        except OSError as error:
            raise unwritable(results, error) from error
    raise AssertionError("there is always a next number")


def begun(place: Path, run_id: str) -> Journal | None:
    """A new journal at this place; None if another run is at it."""
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):  # that of a run which has finished in this moment
        if not (place / RUN).exists():
            write_whole(place / RUN, json.dumps({"run_id": run_id}).encode())
    journal = held(place)
    if journal is None:
        return None
    if journal.entries:
        journal.close()
        return None
    write_whole(place / RUN, json.dumps({"run_id": run_id}).encode())
    journal.run_id = run_id
    return journal


def others(results: Path, own: Path | None) -> Iterator[Journal]:
    """The journals of other plans that nobody is at; each is closed again when the next is asked for."""
    folder = results / UNFINISHED
    for place in sorted(folder.iterdir()) if folder.is_dir() else []:
        if place == own or place.name.startswith("."):
            continue
        journal = held(place)
        if journal is not None:
            try:
                yield journal
            finally:
                journal.close()


def held(place: Path) -> Journal | None:
    """The journal at this place, locked; None if another run is at it, or it is gone or none."""
    try:
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), place.stat()):
            raise FileNotFoundError(place)  # its run has finished between the two lines above
        run_id = json.loads((place / RUN).read_text())["run_id"]
        return Journal(place, lock, run_id, list(read_entries(place)))
    except (OSError, ValueError, KeyError, TypeError):
        os.close(lock)
        return None


def read_entries(place: Path) -> Iterator[Entry]:
    """The measurements in a journal; one that the disk has damaged is reported and will be measured again."""
    for path in sorted(place.iterdir()):
        if path.name.isdigit():
            with path.open("rb") as file:
                line = file.readline()
            try:
                entry = Entry(json.loads(line), path)
                entry.head["task"], entry.record, entry.attempt, entry.merges()
            except (ValueError, KeyError, TypeError):
                say(f"{path}: skipped, not a whole measurement; it is measured again")
                path.unlink()
            else:
                yield entry


def write_whole(path: Path, content: bytes) -> None:
    """A file that is there whole, and on the disk, or not at all."""
    partial = path.with_name(path.name + PARTIAL)
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def append_once(store: RecordFile, records: Sequence[Record], run_id: str) -> None:
    """Add those records of a run that are not in the store yet, as they may be where a run was interrupted."""
    known = recorded(store.path, run_id)
    store.append([record for record in records if measurement_of(record) not in known])


def recorded(path: Path, run_id: str) -> set[tuple[Any, ...]]:
    """Which records of a run a store holds; a line that is cut short is none."""
    lines = [line for _, line in read_lines(path) if not isinstance(line, str) and line.run == run_id]
    return set(map(measurement_of, join(lines)))


def measurement_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Tells a measurement from all others: no two of a run begin at one moment."""
    return record.get("run_id"), record.get("cell"), record.get("run_key"), record.get("started")


def plan_key(cells: Sequence[TrainCell], settings: Settings, machine: str) -> str:
    """Names a plan: the same cells by the same code under the same limits, measured the same way on one machine."""
    wanted = sorted(
        [
            cell.key(),
            cell.memory_said,
            source_sha256(cell.variant.target, cell.variant.params),
            source_sha256(cell.count.counter.target),
        ]
        for cell in cells
    )
    preset = settings.measure
    how: list[Any] = [settings.repeat, settings.seed, settings.affinity, settings.concurrent]
    how += [preset.name, preset.kind, preset.warm_up, preset.quiet_seconds]
    how += [] if preset.precision is None else [asdict(preset.precision)]
    worker_files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(WORKER_FOLDER.glob("*.py"))]
    parts = [wanted, how, machine, worker_files]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def entry_of_count(measured: CountRun) -> dict[str, Any]:
    cell = measured.cell
    return {
        "cell": "count",
        "key": [cell.reading.key, cell.key()],
        **moment(measured),
        **counted_as(measured.counted),
    }


def entry_of_trained(trained: Trained) -> dict[str, Any]:
    own = {"cell": "train", "key": trained.cell.key(), "answer": trained.answer}
    return {**own, **moment(trained), **counted_as(trained.counted)}


def moment(measured: CountRun | Trained) -> dict[str, Any]:
    return {
        "block": measured.block.number,
        "warm_up": measured.block.warm_up,
        "started": measured.started,
        CONCURRENT: measured.concurrent,
    }


def counted_as(counted: Counted) -> dict[str, Any]:
    return {
        "counted": counted.answer,
        "has_words": counted.words is not None,
        "failed_by": counted.failed_by,
    }


def words_are_there(cells: Sequence[TrainCell], entries: Sequence[Entry]) -> bool:
    """Whether the words that the entries were made from are still kept."""
    readings = {cell.reading.key: cell.reading for cell in cells}
    by_train = {cell.key(): cell.reading.key for cell in cells}
    needed = {
        entry.head["key"][0] if entry.head["cell"] == "count" else by_train.get(entry.head["key"])
        for entry in entries
        if entry.head["has_words"]
    }
    return all(key in readings and store.words_of(readings[key]) is not None for key in needed)


class TakenUp(NamedTuple):
    """What an unfinished run has measured: what each counter came to, and every measurement."""

    counts: dict[tuple[str, str], Counted]
    counted: list[CountRun]
    trained: list[Trained]


Wanted = Callable[[Block, Sequence[Trained]], set[str]]
"""The keys of the cells that a block is whole with, by what was measured before it."""


def taken_up(entries: Sequence[Entry], cells: Sequence[TrainCell], blocks: Sequence[Block], wanted: Wanted) -> TakenUp:
    """The measurements of a journal, of these cells in these blocks."""
    by_key = {cell.key(): cell for cell in cells}
    counters = {count_key(cell.count): cell.count for cell in cells}
    counts: dict[tuple[str, str], Counted] = {}
    measured = TakenUp(counts, [], [])
    attempts: list[int] = []
    for entry in entries:
        head = entry.head
        block, started = Block(head["block"], head["warm_up"]), head["started"]
        if head["cell"] == "count":
            counter = counters[tuple(head["key"])]
            counts[count_key(counter)] = counted = counted_before(head, counter.reading)
            measured.counted.append(CountRun(counter, block, started, counted, concurrent=head[CONCURRENT]))
        else:
            cell = by_key[head["key"]]
            counts[count_key(cell.count)] = counted = counted_before(head, cell.reading)
            trained = Trained(
                cell, block, started, head["answer"], counted, entry.merges(), concurrent=head[CONCURRENT]
            )
            measured.trained.append(trained)
            attempts.append(entry.attempt)
    mark_attempts(attempts, measured.trained, blocks)
    mark_cut_short(wanted, measured.counted, measured.trained, blocks)
    return measured


def counted_before(head: Mapping[str, Any], reading: Reading) -> Counted:
    words = store.words_of(reading) if head["has_words"] else None
    return Counted(head["counted"], words, head["failed_by"])


def mark_attempts(attempts: Sequence[int], trained: Sequence[Trained], blocks: Sequence[Block]) -> None:
    """Mark what was not measured in one go: a block that was begun again whole has its earlier beginnings in it too."""
    for block in blocks:
        there = [(attempt, each) for attempt, each in zip(attempts, trained, strict=True) if each.block == block]
        begun = {attempt for attempt, _ in there}
        for attempt, each in there:
            each.cut_short = len(begun) > 1 and not (len(blocks) > 1 and attempt == max(begun))


def mark_cut_short(
    wanted: Wanted, counted: Sequence[CountRun], trained: Sequence[Trained], blocks: Sequence[Block]
) -> None:
    """Mark what was measured in a block in which not every cell was that it wanted."""
    stopped = stopped_at_the_limit(trained)
    for block in blocks:
        there = [each for each in trained if each.block == block and not each.cut_short]
        if not wanted(block, trained) - stopped <= {each.cell.key() for each in there}:
            for each in there:
                each.cut_short = True
            for counter in counted:
                counter.cut_short = counter.cut_short or counter.block == block
