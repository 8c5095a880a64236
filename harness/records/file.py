"""`records.jsonl`: lines appended under a lock, each append whole and on disk; lines read one by one and joined.

Several commands may append to one file, and nothing is ever rewritten. A line that a kill cut short stays a line, which
readers report and skip. A record is a measurement joined with its run, its cell and its proof.
"""

from __future__ import annotations

import fcntl
import gzip
import io
import os
import shlex
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.common.console import say, well_formed
from harness.common.errors import UNMEASURED, Refusal, wrong_value
from harness.common.files import make_results_folder
from harness.records.schema import (
    DECODER,
    PHASES,
    SCHEMA,
    Block,
    Cell,
    End,
    Identity,
    Line,
    Measurement,
    Proof,
    Run,
)
from variants.contract import COUNTING_PHASES

FILE_NAME = "records.jsonl"
PACKED = f"{FILE_NAME}.gz"
"""The same file packed by gzip: complete, and not appended to."""
Record = dict[str, Any]
"""A measured process with all that is recorded of it: run, cell, measurement and proof as one mapping."""
KindOfLine = TypeVar("KindOfLine", bound=Line)
_AS_GIVEN = ("params", "environment")
"""Keys whose values are written as they are; elsewhere null is the same as a missing key, and floats are rounded."""
_DECIMALS = 12
asdict = msgspec.structs.asdict


class RecordFile:
    """`records.jsonl` in a results folder, unless it has another name."""

    def __init__(self, folder: Path, name: str = FILE_NAME) -> None:
        """Create the folder if it is missing, and check that the file can be written."""
        self.path = folder / name
        try:
            make_results_folder(folder)
            with self.path.open("ab"):
                pass
        except OSError as error:
            raise unwritable(folder, error) from error

    def append_lines(self, lines: Sequence[Line]) -> None:
        """Append lines in one write, all or none. Raises Refusal if the disk is full."""
        self.append_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    def append_bytes(self, content: bytes) -> None:
        try:
            with self.path.open("a+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                _append_whole(file, content)
        except OSError as error:
            raise unwritable(self.path.parent, error) from error


def unwritable(folder: Path, error: OSError) -> Refusal:
    return Refusal(
        f"cannot write records to {folder} ({error.strerror}); choose another folder with results=FOLDER", UNMEASURED
    )


def _append_whole(file: io.FileIO, content: bytes) -> None:
    """Append `content`; if that fails half-way, take back what was written."""
    end = file.seek(0, os.SEEK_END)
    if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
        content = b"\n" + content  # the rest of a line that a crash cut short stays a line of its own
    try:
        written = 0
        while written < len(content):  # on a disk that is almost full, the first write succeeds in part
            written += file.write(content[written:])
        os.fsync(file.fileno())
    except BaseException:
        if file.seek(0, os.SEEK_END) > end:
            file.truncate(end)
        raise


class Splitter:
    """Splits records into lines; a run, cell or proof becomes a line once."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.cells: dict[tuple[str, str], int] = {}
        self.proofs: dict[tuple[str, int, str], Proof] = {}

    def lines(self, record: Mapping[str, Any]) -> list[Line]:
        """The lines of a record that were not returned before: its run, cell and proof, then its measurement.

        Raises msgspec.ValidationError for a record that does not fit the schema.
        """
        fields = {**record, "run": record["run_id"], "role": record["cell"], "schema": SCHEMA, "cell": 0}
        lines: list[Line] = []
        if (run := _line(Run, fields)) != self.runs.get(run.run):
            lines.append(run)
        cell = _line(Cell, fields)
        key = _key_of(cell)
        number = fields["cell"] = self.cells.get(key, sum(run_id == run.run for run_id, _ in self.cells))
        msgspec.structs.force_setattr(cell, "cell", number)
        if key not in self.cells:
            lines.append(cell)
        if record.get("merges_sha256") is not None and record.get("identity") is not None:
            proof = _line(Proof, fields)
            if self.proofs.get((proof.run, proof.cell, proof.merges_sha256)) != proof:
                lines.append(proof)
        for line in lines:
            self.note(line)
        return [*lines, _line(Measurement, fields)]

    def note(self, line: Line) -> None:
        """Remember a line that is in the file."""
        if isinstance(line, Run):
            self.runs[line.run] = line
        elif isinstance(line, Cell):
            self.cells[_key_of(line)] = line.cell
        elif isinstance(line, Proof):
            self.proofs[line.run, line.cell, line.merges_sha256] = line


def _key_of(cell: Cell) -> tuple[str, str]:
    """What two lines of one cell have in common: all but its number."""
    return cell.run, repr({**asdict(cell), "cell": 0})


def _line(kind: type[KindOfLine], fields: Mapping[str, Any]) -> KindOfLine:
    known = {name: fields[name] for name in kind.__struct_fields__ if fields.get(name) is not None}
    values = {name: _clean(value, name in _AS_GIVEN) for name, value in known.items()}
    return msgspec.convert({"kind": kind.__struct_config__.tag, **values}, kind)


def _clean(value: Any, as_given: bool) -> Any:
    """The value in valid UTF-8; unless `as_given` without null, and with rounded floats."""
    if isinstance(value, str):
        return value if value.isascii() else well_formed(value)
    if isinstance(value, dict):
        return {name: _clean(inner, as_given) for name, inner in value.items() if as_given or inner is not None}
    if isinstance(value, float) and not as_given:
        return round(value, _DECIMALS)
    return [_clean(inner, as_given) for inner in value] if isinstance(value, list | tuple) else value


def read_lines(path: Path) -> Iterator[tuple[int, Line | str]]:
    """The lines of a file that are not blank by their number; of a broken line, what is wrong.

    Raises Refusal if the file cannot be read.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from ((number, decoded(text)) for number, text in enumerate(file, 1) if not text.isspace())
    except OSError as error:
        reason = error.strerror or error
        raise Refusal(
            f"cannot read records from {path} ({reason}); python -m harness makes some", UNMEASURED
        ) from error
    except (EOFError, zlib.error) as error:
        raise Refusal(f"{path} is cut short or broken ({error}); fetch it again", UNMEASURED) from error


def decoded(text: bytes) -> Line | str:
    """A line, or what is wrong with it, the key first.

    >>> decoded(b'{"kind": "end", "run": 7}')
    'run: expected str, got int'
    """
    try:
        return DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        what, key = wrong_value(error)
        if key == "schema":
            return f"not of schema {SCHEMA}, which this version reads; use the version of bpe-harness that wrote it"
        what = what.replace("`", "").replace(" | null", "")
        return f"{key}: {what[:1].lower()}{what[1:]}" if key else what


def files_in(folder: Path) -> list[Path]:
    """The files of records in a folder, the packed one first; the name of the plain one if there are none."""
    return [path for path in (folder / PACKED, folder / FILE_NAME) if path.exists()] or [folder / FILE_NAME]


# Lines joined into records


def read_records(paths: Iterable[Path | str]) -> list[Record]:
    """The records in files, or in the `records.jsonl` of folders, in order; broken lines are reported and skipped.

    Raises Refusal for a file that cannot be read.
    """
    records: list[Record] = []
    for path in map(Path, paths):
        for file in files_in(path) if path.is_dir() else [path]:
            joined = Joined()
            for number, line in sound_lines(file):
                if (missing := joined.add(line)) is not None:
                    say(f"{file}, line {number}: skipped, {missing}")
            records += [
                record if record["run_id"] in joined.ended else {**record, "unfinished": True}
                for record in joined.whole()
            ]
    return records


def sound_lines(path: Path) -> Iterator[tuple[int, Line]]:
    """The lines of a file that are not broken, with their numbers; the others are reported and skipped."""
    for number, line in read_lines(path):
        if isinstance(line, str):
            say(f"{path}, line {number}: skipped, {line}")
        else:
            yield number, line


def unfinished_note(run: str) -> str:
    """What to do about a run without an end, in a sentence."""
    return f"run {run[:16]} was interrupted: run the same command to finish it"


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


class RunLog:
    """The lines of one run, appended as soon as they are made; without a file they are only remembered."""

    def __init__(
        self,
        store: RecordFile | None,
        run_id: str,
        plan: str = "",
        overrides: Sequence[str] = (),
        lines: Iterable[Line] = (),
    ) -> None:
        """Start a run, or resume the one that has these lines."""
        self.store = store
        self.about: dict[str, Any] = {"run_id": run_id, "plan": plan, "overrides": list(overrides)}
        self.splitter, self.joined = Splitter(), Joined()
        for line in lines:
            self.splitter.note(line)
            self.joined.add(line)
        self.about["attempt"] = self.attempt = 1 + max((record["attempt"] for record in self.joined.records), default=0)

    def add(self, record: Mapping[str, Any], closes: tuple[int, bool] | None = None) -> None:
        """Put a measurement on disk with its proof; `closes` names the block that it completes."""
        lines = self.splitter.lines({**record, **self.about})
        if closes is not None:
            number, warm_up = closes
            block = {"task": record["task"], "block": number, "warm_up": warm_up, "attempt": self.attempt}
            lines.append(Block(run=lines[-1].run, **block))
        for line in lines:  # first, so that a full disk does not keep it from being shown
            self.joined.add(line)
        if self.store is not None:
            self.store.append_lines(lines)

    def records(self, task: int | None = None) -> list[Record]:
        """The records of the run, or of one of its tasks: counters first, then trainers in the order of their cells."""
        return self.joined.whole(task)

    def finish(self) -> None:
        """Write that the run is complete."""
        if self.store is not None:
            self.store.append_lines([End(run=self.about["run_id"])])
