"""`records.jsonl`: lines appended under a lock, each append whole and on disk; lines read one by
one and joined.

Several commands may append to one file, and nothing is ever rewritten. A line that a kill cut short
stays a line, which readers report and skip. A record is a measurement joined with its run, its cell
and its proof.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import structs
from msgspec.structs import asdict

from harness.common.comparison import Sample, shares_of
from harness.common.console import print_stderr, well_formed
from harness.common.errors import UNMEASURED, Refusal, reason, wrong_value
from harness.common.files import make_results_folder, open_appending, sync
from harness.common.units import counted_text
from harness.records.schema import (
    DECODER,
    PHASES,
    SCHEMA,
    Cell,
    End,
    Line,
    Measurement,
    Proof,
    Run,
    StoredIdentity,
    WholeBlock,
)
from variants.contract import COUNTING_PHASES

FILE_NAME = "records.jsonl"
PACKED = f"{FILE_NAME}.gz"  # the same file packed by gzip: complete, and not appended to
ELSEWHERE = "choose another folder with results=FOLDER"
MOST_REPORTED = 2
KindOfLine = TypeVar("KindOfLine", bound=Line)
_AS_GIVEN = ("params", "environment")
"""Keys whose values are written as they are; elsewhere null is the same as a missing key, and
floats are rounded.
"""
_DECIMALS = 12


class RecordFile:
    """`records.jsonl` in a results folder, unless it has another name."""

    def __init__(self, folder: Path, name: str = FILE_NAME, instead: str = ELSEWHERE) -> None:
        """Create the folder if it is missing, and check that the file can be written.

        `instead` is what to do if it cannot.
        """
        self.path = folder / name
        self.instead = instead
        try:
            make_results_folder(folder)
            open_appending(self.path).close()
            sync(folder)
        except OSError as error:
            raise unwritable(self.path, error, instead) from error

    @contextlib.contextmanager
    def locked(self) -> Iterator[io.FileIO]:
        """The file open for appending, while no other process appends to it.

        Raises Refusal for what is not a plain file, and if the disk is full.
        """
        try:
            with open_appending(self.path) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
        except OSError as error:
            raise unwritable(self.path, error, self.instead) from error

    def append_lines(self, lines: Sequence[Line]) -> None:
        """Append lines in one write, all or none. Raises Refusal if the disk is full."""
        content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        with self.locked() as file:
            append_whole(file, content)


def unwritable(path: Path, error: OSError, instead: str = ELSEWHERE) -> Refusal:
    return Refusal(f"cannot write records to {path} ({reason(error)}); {instead}", UNMEASURED)


def append_whole(file: io.FileIO, content: bytes) -> None:
    """Append `content`; if that fails half-way, take back what was written."""
    end = file.seek(0, os.SEEK_END)
    if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
        # the rest of a line that a crash cut short stays a line of its own
        content = b"\n" + content
    try:
        written = 0
        # on a disk that is almost full, the first write succeeds in part
        while written < len(content):
            written += file.write(content[written:])
        os.fsync(file.fileno())
    except BaseException:
        if file.seek(0, os.SEEK_END) > end:
            file.truncate(end)
        raise


def checked(line: KindOfLine) -> KindOfLine:
    """The line as it is read again: in valid UTF-8, and with rounded floats.

    Raises msgspec.ValidationError or UnicodeEncodeError if it does not fit the schema.
    """
    text = msgspec.json.encode(_clean(msgspec.to_builtins(line), as_given=False))
    return msgspec.json.decode(text, type=type(line))


def _clean(value: Any, as_given: bool) -> Any:
    """The value in valid UTF-8; unless `as_given` without null, and with rounded floats."""
    if isinstance(value, str):
        return value if value.isascii() else well_formed(value)
    if isinstance(value, dict):
        return {
            name: _clean(inner, as_given or name in _AS_GIVEN)
            for name, inner in value.items()
            if as_given or inner is not None
        }
    if isinstance(value, float) and not as_given:
        return round(value, _DECIMALS)
    return (
        [_clean(inner, as_given) for inner in value] if isinstance(value, list | tuple) else value
    )


def read_lines(path: Path) -> Iterator[tuple[int, Line | str]]:
    """The lines of a file that are not blank by their number; of a broken line, what is wrong.

    Raises Refusal if the file cannot be read.
    """
    for number, text in read_texts(path):
        yield number, decoded(text)


def read_texts(path: Path) -> Iterator[tuple[int, bytes]]:
    """The same lines as they are in the file."""
    try:
        if path.is_fifo() and not path.is_relative_to("/dev"):  # where a shell puts its own pipes
            raise OSError("it is a named pipe")
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if not text.isspace():
                    yield number, text
    except (OSError, EOFError, zlib.error) as error:
        why = f"cannot read records from {path} ({getattr(error, 'strerror', None) or error})"
        raise Refusal(f"{why}; python -m harness makes some", UNMEASURED) from error


def decoded(text: bytes) -> Line | str:
    """A line, or what is wrong with it, the key first.

    >>> decoded(b'{"kind": "end", "run": 7}')
    'run: expected str, got int'
    """
    try:
        return DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return complaint_of(error)


def complaint_of(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object!a} is not Unicode text"
    what, key = wrong_value(error)
    if key == "schema":
        return f"not of schema {SCHEMA}, which this version reads; use the version of bpe-harness that wrote it"
    what = what.replace("`", "").replace(" | null", "")
    return f"{key}: {what[:1].lower()}{what[1:]}" if key else what


# Lines joined into records


@dataclass(frozen=True)
class Record(Mapping[str, Any]):
    """A measured process with all that is recorded of it.

    To those who only look up keys it is a mapping of all of them, as docs/reference/records.md
    describes.
    """

    run: Run
    cell: Cell
    measurement: Measurement
    proof: Proof | None = None
    block_whole: bool | None = None
    """Whether its block was measured whole; None if nobody has looked."""
    unfinished: bool = False
    """Whether its run has no end."""

    @property
    def trains(self) -> bool:
        return self.cell.role == "train"

    @property
    def status(self) -> str:
        return self.measurement.status

    @property
    def identity(self) -> StoredIdentity | None:
        return None if self.proof is None else self.proof.identity

    @property
    def sample(self) -> Sample | None:
        """What its clocks show; None without a total."""
        measurement, wall = self.measurement, self.measurement.seconds.get("total")
        if not wall:
            return None
        return Sample(
            self.run.run,
            measurement.block,
            wall,
            measurement.cpu_seconds,
            self.cell.threads or 1,
            cpu_wait_seconds=measurement.cpu_wait_seconds,
            cpu_wait_unknown=measurement.cpu_wait_unknown,
            **shares_of(wall, measurement.witness, measurement.disturbance),
        )

    @cached_property
    def flat(self) -> dict[str, Any]:
        """All keys of its lines in one mapping."""
        fields = {**asdict(self.run), **asdict(self.cell), **asdict(self.measurement)}
        fields["run_id"] = fields.pop("run")
        fields["cell"] = fields.pop("role")
        fields["data"] = msgspec.to_builtins(self.cell.data)
        fields["identity"] = None if self.identity is None else asdict(self.identity)
        fields["tokens"] = None if self.proof is None else self.proof.tokens
        fields["seconds"] = {**_SECONDS[self.cell.role], **self.measurement.seconds}
        if self.block_whole is not None:
            fields["block_whole"] = self.block_whole
        if self.unfinished:
            fields["unfinished"] = True
        return fields

    def __getitem__(self, key: str) -> Any:
        return self.flat[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.flat)

    def __len__(self) -> int:
        return len(self.flat)


def read_records(paths: Iterable[Path | str]) -> list[Record]:
    """The records in files, or in the `records.jsonl` of folders, in order; broken lines are
    reported and skipped.

    Raises Refusal for a file that cannot be read.
    """
    records: list[Record] = []
    for path in map(Path, paths):
        files = [path / name for name in (PACKED, FILE_NAME) if (path / name).exists()] or [
            path / FILE_NAME
        ]
        for file in files if path.is_dir() else [path]:
            joined = Joined()
            sound_lines(file, joined)
            unfinished = joined.unfinished()
            for record in joined.records():
                records.append(replace(record, unfinished=record.run.run in unfinished))
    return records


def joined_lines(path: Path, joined: Joined) -> Iterator[tuple[str, bytes, Line | str]]:
    """Join the lines of a file; yield each with its place and its text, or with what is wrong."""
    for number, text in read_texts(path):
        line = decoded(text)
        complaint = line if isinstance(line, str) else joined.join(line)
        yield f"{path}, line {number}", text, complaint or line


def sound_lines(path: Path, joined: Joined) -> list[tuple[Line, bytes]]:
    """Join the lines of a file and return them, each with its text; broken ones are skipped, and
    the first of them reported.
    """
    sound, broken = list[tuple[Line, bytes]](), list[str]()
    for place, text, line in joined_lines(path, joined):
        if isinstance(line, str):
            broken.append(f"{place}: skipped, {line}")
        else:
            sound.append((line, text))

    if (rest := len(broken) - MOST_REPORTED) > 0:
        more = f"{path}: skipped {counted_text(rest, 'more line')}; python -m harness.records check names each"
        broken[MOST_REPORTED:] = [more]
    for sentence in broken:
        print_stderr(sentence)
    return sound


def unfinished_note(run: str) -> str:
    """What to do about a run without an end, in a sentence."""
    return f"run {run[:16]} was interrupted: run the same command to finish it"


class Joined:
    """Lines joined into records; what measurements share is the same object in each."""

    def __init__(self) -> None:
        self.measured: list[Record] = []
        self.measurements: set[bytes] = set()
        """The lines that `measured` are made of."""
        self.shared: dict[tuple[Any, ...], Line] = {}
        """The runs, cells and proofs by what names each."""
        self.closed: set[Line] = set()
        """The blocks that one attempt measured whole, and the ends of runs."""

    def __contains__(self, line: Line) -> bool:
        """Whether joining this line would change nothing."""
        if isinstance(line, Measurement):
            return msgspec.json.encode(line) in self.measurements
        if isinstance(line, WholeBlock | End):
            return line in self.closed
        return self.shared.get(name_of(line)) == line

    def join(self, line: Line) -> str | None:
        """Join a line; returns what is wrong with it, if it needs a line that is missing, or is a
        measurement that is there already.
        """
        if isinstance(line, Measurement):
            return self._measurement(line)
        if isinstance(line, WholeBlock | End):
            self.closed.add(line)
        else:
            self.shared[name_of(line)] = line
        return None

    def _measurement(self, line: Measurement) -> str | None:
        name = name_of(line)
        run, cell, proof = (self.shared.get(name[:length]) for length in (1, 2, 3))
        if not isinstance(run, Run) or not isinstance(cell, Cell):
            missing = "run" if run is None else f"cell {line.cell}"
            return f"its {missing} has no line before it"
        if line in self:
            return "an earlier line is the same measurement; python -m harness.records merge copies each once"
        self.measurements.add(msgspec.json.encode(line))
        proof = proof if isinstance(proof, Proof) else None
        self.measured.append(Record(run, cell, line, proof))
        return None

    def unfinished(self) -> list[str]:
        """The runs that have no end."""
        runs = [line.run for line in self.shared.values() if isinstance(line, Run)]
        return [run for run in runs if End(run=run) not in self.closed]

    def records(self, task: int | None = None) -> list[Record]:
        """The records, or those of one task: counters first, then trainers block by block in the
        order of their cells.

        Each says whether its block was measured whole.
        """
        chosen = []
        runs: dict[str, int] = {}
        for record in self.measured:
            if task in (None, record.cell.task):
                whole = self._block_of(record) in self.closed
                chosen.append(replace(record, block_whole=whole))
                runs.setdefault(record.run.run, len(runs))

        def order(record: Record) -> tuple[Any, ...]:
            measured = record.measurement
            block = (not measured.warm_up, measured.block, record.cell.place)
            return runs[record.run.run], record.cell.task, block if record.trains else ()

        return sorted(chosen, key=order)

    def _block_of(self, record: Record) -> WholeBlock:
        """The line that closes its block."""
        measured = record.measurement
        names = ("run", "block", "warm_up", "attempt")
        shared = {name: getattr(measured, name) for name in names}
        return WholeBlock(task=record.cell.task, **shared)


_SECONDS: dict[str, dict[str, float | None]] = {
    "count": dict.fromkeys((*COUNTING_PHASES, "other", "total")),
    "train": dict.fromkeys(name for name in (*PHASES, "total") if name != "copy"),
}
"""What the seconds of a record hold at least; null was not measured."""


def name_of(line: Line) -> tuple[Any, ...]:
    """What names a run, a cell or a proof; of a measurement its proof, whose name begins with those
    of run and cell.
    """
    return tuple(
        getattr(line, name) for name in ("run", "cell", "merges_sha256") if hasattr(line, name)
    )


class RunLog(Joined):
    """The lines of one run, appended as soon as they are made; without a file they are only
    remembered.
    """

    def __init__(
        self,
        store: RecordFile | None,
        run_id: str,
        plan: str = "",
        overrides: Sequence[str] = (),
        lines: Iterable[Line] = (),
    ) -> None:
        """Start a run, or resume the one that has these lines."""
        super().__init__()
        for line in lines:
            self.join(line)
        self.store = store
        attempts = [record.measurement.attempt for record in self.measured]
        self.attempt = 1 + max(attempts, default=0)
        self.run = Run(run=run_id, schema=SCHEMA, plan=plan, overrides=list(overrides))

    def add(
        self,
        cell: Cell,
        measurement: Measurement,
        proof: Proof | None = None,
        closes: tuple[int, bool] | None = None,
    ) -> None:
        """Name run and cell in these lines and put them on disk; `closes` names the block that they
        complete.

        A measurement that does not fit the schema becomes one of an error, without figures.
        """
        try:
            lines = self._joined(cell, measurement, proof)  # shown even if the disk is full
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            failed = Measurement(
                run=measurement.run,
                cell=measurement.cell,
                block=measurement.block,
                warm_up=measurement.warm_up,
                started=measurement.started,
                status="error",
                reason=f"its figures are invalid: {complaint_of(error)}",
            )
            lines = self._joined(structs.replace(cell, feeding=None), failed, None)

        if closes is not None:
            number, warm_up = closes
            run, task = self.run.run, cell.task
            block = WholeBlock(
                run=run, task=task, block=number, warm_up=warm_up, attempt=self.attempt
            )
            self.join(block)
            lines.append(block)
        if self.store is not None:
            self.store.append_lines(lines)

    def _joined(self, cell: Cell, measurement: Measurement, proof: Proof | None) -> list[Line]:
        """Join the run and these lines; returns those that are not there yet. None is joined if one
        does not fit the schema.
        """
        run = self.run.run
        cell = self._numbered(checked(structs.replace(cell, run=run)))
        names = {"run": run, "cell": cell.cell}
        measurement = checked(structs.replace(measurement, **names, attempt=self.attempt))
        lines: list[Line] = [checked(self.run), cell]
        if proof is not None:
            lines.append(checked(structs.replace(proof, **names)))

        fresh = [line for line in lines if line not in self]
        fresh.append(measurement)
        for line in fresh:
            self.join(line)
        return fresh

    def _numbered(self, cell: Cell) -> Cell:
        """The cell with the number of the same cell, or with the next one."""
        cells = [line for line in self.shared.values() if isinstance(line, Cell)]
        for known in cells:
            if structs.replace(cell, cell=known.cell) == known:
                return known
        return structs.replace(cell, cell=len(cells))

    def finish(self) -> None:
        """Write that the run is complete."""
        if self.store is not None:
            self.store.append_lines([End(run=self.run.run)])
