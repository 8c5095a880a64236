"""What an unfinished run has measured, on disk as soon as it is measured, so that the same command goes on from there.

A run of a plan has a folder of its own below `<results>/unfinished`, a file for each measurement: a line of JSON, then
the merges. A file appears by being renamed after it has reached the disk, so it is there whole or not at all, whatever
ends the process. The folder is held under a lock while its run goes on, and goes when the records of the run are in
`records.jsonl`; each of these carries the run and the moment it began, by which it is known to be there already.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.record import Record, RecordFile, unwritable

UNFINISHED = "unfinished"
RUN = "run.json"
PARTIAL = ".partial"


@dataclass(frozen=True)
class Entry:
    """One measurement: what is needed to go on from it, the record it would be by itself, and its merges."""

    head: dict[str, Any]
    merges: bytes | None

    @property
    def record(self) -> Record:
        return self.head["record"]  # type: ignore[no-any-return]

    @property
    def attempt(self) -> int:
        """How often the run had been begun or gone on with by then."""
        return self.head["attempt"]  # type: ignore[no-any-return]


class Journal:
    """The folder of one unfinished run, which nobody else has."""

    def __init__(self, folder: Path, lock: int, run_id: str, entries: Sequence[Entry]) -> None:
        self.folder = folder
        self.lock = lock
        self.run_id = run_id
        self.entries = list(entries)
        self.continued = bool(entries)
        self.number = len(self.entries)
        self.attempt = 1 + max((entry.attempt for entry in self.entries), default=0)

    def add(self, head: Mapping[str, Any], merges: bytes | None) -> None:
        """Put a measurement on disk. Raises Refusal if that is full."""
        self.number += 1
        line = json.dumps({**head, "attempt": self.attempt, "has_merges": merges is not None}).encode() + b"\n"
        try:
            write_whole(self.folder / f"{self.number:06}", line + (merges or b""))
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
    for file in sorted(place.iterdir()):
        if file.name.isdigit():
            head, _, merges = file.read_bytes().partition(b"\n")
            known = json.loads(head)
            yield Entry(known, merges if known["has_merges"] else None)


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
    store.append([record for record in records if identity(record) not in known])


def recorded(path: Path, run_id: str) -> set[tuple[Any, ...]]:
    """Which records of a run a store holds; a line that is cut short is none."""
    known = set()
    told = json.dumps(run_id).encode()
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            if told in line:
                with contextlib.suppress(ValueError):
                    known.add(identity(json.loads(line)))
    return known


def identity(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Tells a measurement from all others: no two of a run begin at one moment."""
    return record.get("run_id"), record.get("cell"), record.get("run_key"), record.get("started")
