"""From lines to records: each measurement joined with its run, its cell and its proof."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.common.console import say
from harness.common.units import counted_text
from harness.records.file import OLD, Record, files_in, read_lines
from harness.records.schema import PHASES, Block, Cell, End, Identity, Line, Measurement, Proof, Run
from variants.contract import COUNTING_PHASES

asdict = msgspec.structs.asdict


def read_records(paths: Iterable[Path | str]) -> list[Record]:
    """The records in files, or in the `records.jsonl` of folders, in order; broken lines are reported and skipped.

    Raises Refusal for a file that cannot be read.
    """
    records: list[Record] = []
    for path in map(Path, paths):
        for file in files_in(path) if path.is_dir() else [path]:
            joined, old = Joined(), 0
            for number, line in read_lines(file):
                complaint = line if isinstance(line, str) else joined.add(line)
                if complaint == OLD:
                    old += 1
                elif complaint is not None:
                    say(f"{file}, line {number}: skipped, {complaint}")
            if old:
                say(f"{file}: skipped {counted_text(old, 'line')}; each is {OLD}")
            records += [
                record if record["run_id"] in joined.ended else {**record, "unfinished": True}
                for record in joined.whole()
            ]
    return records


def unfinished_note(run: str) -> str:
    """What to do about a run without an end, in a sentence."""
    return f"run {run[:16]} was interrupted: run the same command to finish it"


def join(lines: Iterable[Line]) -> list[Record]:
    """The records of lines that belong together."""
    joined = Joined()
    for line in lines:
        joined.add(line)
    return joined.whole()


def command_of(record: Mapping[str, Any]) -> str:
    """The command that measured a record, as it was typed; of a path its last name alone.

    >>> command_of({"overrides": ["variants=naive,heap", "data.path=a book.txt"]})
    "python -m harness variants=naive,heap 'data.path=a book.txt'"
    """
    return shlex.join(["python", "-m", "harness", *record.get("overrides", ())])


class Joined:
    """Joins lines in their order; what measurements share is the same object in each of their records."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.runs: dict[str, Record] = {}
        self.cells: dict[tuple[str, int], Record] = {}
        self.proofs: dict[tuple[str, int, str | None], Record] = {}
        self.closed: set[tuple[Any, ...]] = set()
        """The blocks that one attempt measured whole."""
        self.ended: set[str] = set()

    def add(self, line: Line) -> str | None:
        """Join a line; returns what is wrong with it, if it needs a line that is missing."""
        if isinstance(line, Run):
            self.runs[line.run] = _without(line, "run")
        elif isinstance(line, Cell):
            self.cells[line.run, line.cell] = {**_without(line, "run", "cell", "role"), "cell": line.role}
        elif isinstance(line, Proof):
            identity = {**dict.fromkeys(Identity.__annotations__), **line.identity}
            self.proofs[line.run, line.cell, line.merges_sha256] = {"identity": identity, "tokens": line.tokens}
        elif isinstance(line, Block):
            self.closed.add((line.run, line.task, line.warm_up, line.block, line.attempt))
        elif isinstance(line, End):
            self.ended.add(line.run)
        elif isinstance(line, Measurement):
            return self.measurement(line)
        return None

    def measurement(self, line: Measurement) -> str | None:
        run, cell = self.runs.get(line.run), self.cells.get((line.run, line.cell))
        if run is None or cell is None:
            missing = "run" if run is None else f"cell {line.cell}"
            return f"its {missing} has no line before it"
        proof = self.proofs.get((line.run, line.cell, line.merges_sha256), _UNPROVED)
        record = {**run, "run_id": line.run, **cell, **proof, **_without(line, "run", "cell")}
        record["seconds"] = {**_SECONDS[cell["cell"]], **line.seconds}
        self.records.append(record)
        return None

    def whole(self, task: int | None = None) -> list[Record]:
        """The records, or those of one task, in order; each says whether its block was measured whole."""
        chosen = [record for record in self.records if task in (None, record["task"])]
        for record in chosen:
            record["block_whole"] = _block(record) in self.closed
        runs = {run: place for place, run in enumerate(dict.fromkeys(record["run_id"] for record in chosen))}
        return sorted(chosen, key=lambda record: (runs[record["run_id"]], *_order(record)))


_UNPROVED: Record = {"identity": None, "tokens": None}
_SECONDS: dict[str, dict[str, float | None]] = {
    "count": dict.fromkeys((*COUNTING_PHASES, "other", "total")),
    "train": dict.fromkeys(name for name in (*PHASES, "total") if name != "copy"),
}
"""What the seconds of a record hold at least; null was not measured."""


def _without(line: Line, *names: str) -> Record:
    values = asdict(line)
    for name in names:
        del values[name]
    return values


def _order(record: Record) -> tuple[Any, ...]:
    """The counters of a task first, then its trainers block by block."""
    if record["cell"] == "count":
        return record["task"], False
    return record["task"], True, not record["warm_up"], record["block"], record["place"]


def _block(record: Record) -> tuple[Any, ...]:
    return record["run_id"], record["task"], record["warm_up"], record["block"], record["attempt"]
