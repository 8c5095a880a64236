"""Lines joined into records: a record is a measurement with its run, its cell and its proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs
from msgspec.structs import asdict

from harness.common.comparison import Sample, shares_of
from harness.common.printing import print_stderr
from harness.common.units import counted_text
from harness.records.lines import (
    FILE_NAME,
    PACKED,
    RecordFile,
    checked,
    complaint_of,
    decoded_line,
    read_texts,
)
from harness.records.schema import (
    PHASES,
    SCHEMA,
    Cell,
    End,
    Line,
    Measurement,
    Note,
    Proof,
    Run,
    StoredIdentity,
    WholeBlock,
)
from variants.contract import COUNTING_PHASES

MOST_REPORTED = 2


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
        """Its clocks; None without a total."""
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
    for file in files_read(paths):
        joined = Joined()
        sound_lines(file, joined)
        unfinished = joined.unfinished()
        for record in joined.records():
            records.append(replace(record, unfinished=record.run.run in unfinished))
    return records


def files_read(paths: Iterable[Path | str]) -> list[Path]:
    """These files, and the files of records in these folders."""
    files: list[Path] = []
    for path in map(Path, paths):
        names = [path / name for name in (PACKED, FILE_NAME) if (path / name).exists()]
        files += (names or [path / FILE_NAME]) if path.is_dir() else [path]
    return files


def joined_lines(path: Path, joined: Joined) -> Iterator[tuple[str, bytes, Line | str]]:
    """Join the lines of a file; yield each with its place and its text, or with what is wrong."""
    for number, text in read_texts(path):
        line = decoded_line(text)
        complaint = line if isinstance(line, str) else joined.join(line)
        yield f"{path}, line {number}", text, complaint or line


def sound_lines(path: Path, joined: Joined) -> list[tuple[Line, bytes]]:
    """Join the lines of a file and return them, each with its text; broken ones are skipped, and
    the first of them reported.
    """
    sound, broken = list[tuple[Line, bytes]](), list[str]()
    for position, text, line in joined_lines(path, joined):
        if isinstance(line, str):
            broken.append(f"{position}: skipped, {line}")
        else:
            sound.append((line, text))

    if (rest := len(broken) - MOST_REPORTED) > 0:
        more = f"{path}: skipped {counted_text(rest, 'more line')}; python -m harness.records check names each"
        broken[MOST_REPORTED:] = [more]
    for sentence in broken:
        print_stderr(sentence)
    return sound


def unfinished_note(run: str) -> str:
    """Return a sentence on how to finish a run without an end."""
    return f"run {run[:16]} was interrupted: run the same command to finish it"


class Joined:
    """Lines joined into records; what measurements share is the same object in each."""

    def __init__(self) -> None:
        self.measured: list[Record] = []
        self.measurements: set[bytes] = set()
        """The lines that `measured` are made of."""
        self.shared: dict[tuple[Any, ...], Line] = {}
        """The runs, cells and proofs by what names each."""
        self.closed: dict[Line, None] = {}
        """The blocks that one attempt measured whole, the ends of runs, and notes."""

    def __contains__(self, line: Line) -> bool:
        """Return whether joining this line would change nothing."""
        if isinstance(line, Measurement):
            return msgspec.json.encode(line) in self.measurements
        if isinstance(line, WholeBlock | Note | End):
            return line in self.closed
        return self.shared.get(key_of_line(line)) == line

    def join(self, line: Line) -> str | None:
        """Join a line; returns what is wrong with one that lacks another, or is there already."""
        if isinstance(line, Measurement):
            return self._measurement(line)
        if isinstance(line, WholeBlock | Note | End):
            self.closed[line] = None
        else:
            self.shared[key_of_line(line)] = line
        return None

    def _measurement(self, line: Measurement) -> str | None:
        name = key_of_line(line)
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


def key_of_line(line: Line) -> tuple[Any, ...]:
    """Return the key of a run, a cell or a proof; for a measurement the key of its proof, which
    starts with those of its run and cell.
    """
    return tuple(
        getattr(line, name) for name in ("run", "cell", "merges_sha256") if hasattr(line, name)
    )


# Writing


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
            shared: Any = {"run": self.run.run, "task": cell.task, "attempt": self.attempt}
            block = WholeBlock(block=number, warm_up=warm_up, **shared)
            self.join(block)
            lines.append(block)
        if self.store is not None:
            self.store.append_lines(lines)

    def _joined_fresh(self, *lines: Line) -> list[Line]:
        """Join the run and these lines, all or none; returns those that are not there yet."""
        fresh = [line for line in map(checked, (self.run, *lines)) if line not in self]
        for line in fresh:
            self.join(line)
        return fresh

    def _joined(self, cell: Cell, measurement: Measurement, proof: Proof | None) -> list[Line]:
        """The same, with run and cell named in them."""
        cell = self._numbered(checked(structs.replace(cell, run=self.run.run)))
        names = {"run": self.run.run, "cell": cell.cell}
        lines: list[Line] = [cell, structs.replace(measurement, **names, attempt=self.attempt)]
        if proof is not None:
            lines.insert(1, structs.replace(proof, **names))
        return self._joined_fresh(*lines)

    def _numbered(self, cell: Cell) -> Cell:
        """The cell with the number of the same cell, or with the next one."""
        cells = [line for line in self.shared.values() if isinstance(line, Cell)]
        for known in cells:
            if structs.replace(cell, cell=known.cell) == known:
                return known
        return structs.replace(cell, cell=len(cells))

    def append(self, *lines: Line) -> None:
        """Put the run and these lines on disk, unless they are there."""
        fresh = self._joined_fresh(*lines)
        if self.store is not None:
            self.store.append_lines(fresh)

    def finish(self) -> None:
        """Write that the run is complete."""
        self.append(End(run=self.run.run))
