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

from harness.common.comparison import Sample
from harness.common.printing import print_stderr
from harness.common.units import counted_text
from harness.proof import Identity
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
    Proof,
    Run,
    WholeBlock,
)

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
    def identity(self) -> Identity | None:
        return None if self.proof is None else self.proof.identity

    @property
    def sample(self) -> Sample | None:
        """Its clocks, and the shares of what disturbed its whole process; None without a total."""
        measurement, wall = self.measurement, self.measurement.seconds.get("total")
        if not wall:
            return None

        lasted = (measurement.witness or {}).get("wall_seconds") or wall
        disturbance: Any = measurement.disturbance or {}
        shares = {name: seconds / lasted for name, seconds in disturbance.items()}
        return Sample(
            self.run.run,
            measurement.block,
            wall,
            measurement.cpu_seconds,
            self.cell.threads or 1,
            cpu_wait_seconds=measurement.cpu_wait_seconds,
            cpu_wait_unknown=measurement.cpu_wait_unknown,
            pressure=shares.get("psi_cpu_seconds"),
            steal=shares.get("steal_seconds"),
        )

    @cached_property
    def flat(self) -> dict[str, Any]:
        """All keys of its lines in one mapping."""
        fields = {**asdict(self.run), **asdict(self.cell), **asdict(self.measurement)}
        fields["run_id"] = fields.pop("run")
        fields["cell"] = fields.pop("role")
        fields["data"] = msgspec.to_builtins(self.cell.data)
        fields["identity"] = self.identity and asdict(self.identity)
        fields["tokens"] = self.proof and self.proof.tokens
        fields["seconds"] = {**_SECONDS, **self.measurement.seconds}
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
        joined.read_sound(file)
        unfinished = joined.unfinished()
        for record in joined.records():
            records.append(replace(record, unfinished=record.run.run in unfinished))
    return records


def files_read(paths: Iterable[Path | str], below: str = "") -> list[Path]:
    """These files, and the files of records in these folders, each once; with `**/` also those in
    folders below them.
    """
    files: list[Path] = []
    for path in map(Path, paths):
        inside: list[Path] = []
        for name in (PACKED, FILE_NAME):
            inside += sorted(path.glob(below + name))
        files += (inside or [path / FILE_NAME]) if path.is_dir() else [path]
    return list(dict.fromkeys(files))


def unfinished_note(run: str) -> str:
    """Return a sentence on how to finish a run without an end."""
    return f"run {run[:16]} was interrupted: run the same command to finish it"


class Joined:
    """Lines joined into records; what measurements share is the same object in each."""

    def __init__(self) -> None:
        self.measured: list[Record] = []
        self.shared: dict[tuple[Any, ...], Line] = {}
        """The runs, cells and proofs by what names each."""
        self.others: dict[bytes, Line] = {}
        """Every other line by its text: measurements, the blocks that one attempt measured whole,
        the ends of runs, and notes.
        """

    def __contains__(self, line: Line) -> bool:
        """Return whether joining this line would change nothing."""
        if isinstance(line, Run | Cell | Proof):
            return self.shared.get(key_of_line(line)) == line
        return msgspec.json.encode(line) in self.others

    def join(self, line: Line) -> str | None:
        """Join a line; returns what is wrong with one that lacks another, or is there already."""
        if isinstance(line, Run | Cell | Proof):
            self.shared[key_of_line(line)] = line
            return None

        text = msgspec.json.encode(line)
        if isinstance(line, Measurement):
            name = key_of_line(line)
            run, cell, proof = (self.shared.get(name[:length]) for length in (1, 2, 3))
            if not isinstance(run, Run) or not isinstance(cell, Cell):
                missing = "run" if run is None else f"cell {line.cell}"
                return f"its {missing} has no line before it"
            if text in self.others:
                return "an earlier line is the same measurement; python -m harness.records merge copies each once"
            proof = proof if isinstance(proof, Proof) else None
            self.measured.append(Record(run, cell, line, proof))

        self.others[text] = line
        return None

    def read(self, path: Path) -> Iterator[tuple[str, bytes, Line | str]]:
        """Join the lines of a file; yield each with its place and its text, or with what is wrong.

        Raises Refusal if the file cannot be read.
        """
        for number, text in read_texts(path):
            line = decoded_line(text)
            complaint = line if isinstance(line, str) else self.join(line)
            yield f"{path}, line {number}", text, complaint or line

    def read_sound(self, path: Path) -> list[tuple[Line, bytes]]:
        """Join the lines of a file and return them, each with its text; broken ones are skipped,
        and the first of them reported.
        """
        sound, broken = list[tuple[Line, bytes]](), 0
        for position, text, line in self.read(path):
            if not isinstance(line, str):
                sound.append((line, text))
                continue
            broken += 1
            if broken <= MOST_REPORTED:
                print_stderr(f"{position}: skipped, {line}")

        if broken > MOST_REPORTED:
            rest = counted_text(broken - MOST_REPORTED, "more line")
            print_stderr(f"{path}: skipped {rest}; python -m harness.records check names each")
        return sound

    def unfinished(self) -> list[str]:
        """The runs that have no end."""
        runs = [line.run for line in self.shared.values() if isinstance(line, Run)]
        return [run for run in runs if End(run=run) not in self]

    def records(self, task: int | None = None) -> list[Record]:
        """The records, or those of one task: counters first, then trainers block by block in the
        order of their cells.

        Each says whether its block was measured whole.
        """
        chosen = []
        for record in self.measured:
            if task in (None, record.cell.task):
                chosen.append(replace(record, block_whole=block_of(record) in self))

        # runs stay in the order of the file; clocks are set back, so their times say less
        started = list(dict.fromkeys(record.run.run for record in chosen))
        numbers = {run: number for number, run in enumerate(started)}
        return sorted(chosen, key=lambda record: (numbers[record.run.run], *place_of(record)))


def place_of(record: Record) -> tuple[Any, ...]:
    """Return where a record stands within its run: by task, then by block."""
    measured = record.measurement
    block = (not measured.warm_up, measured.block, record.cell.place)
    return record.cell.task, block if record.trains else ()


def block_of(record: Record) -> WholeBlock:
    """The line that closes the block of a record."""
    measured = record.measurement
    return WholeBlock(
        run=measured.run,
        task=record.cell.task,
        block=measured.block,
        warm_up=measured.warm_up,
        attempt=measured.attempt,
    )


_SECONDS: dict[str, float | None] = dict.fromkeys((*PHASES, "total"))
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
        closing: list[Line] = []
        if closes is not None:
            number, warm_up = closes
            names: Any = {"run": self.run.run, "task": cell.task, "attempt": self.attempt}
            closing.append(WholeBlock(block=number, warm_up=warm_up, **names))

        try:
            self.append(*self._named(cell, measurement, proof), *closing)
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
            unfed = structs.replace(cell, feeding=None)
            self.append(*self._named(unfed, failed), *closing)

    def _named(
        self, cell: Cell, measurement: Measurement, proof: Proof | None = None
    ) -> list[Line]:
        """These lines with run and cell named in them; an equal cell keeps its number."""
        cell = checked(structs.replace(cell, run=self.run.run))
        cells = [line for line in self.shared.values() if isinstance(line, Cell)]
        same = [known for known in cells if structs.replace(cell, cell=known.cell) == known]
        number = same[0].cell if same else len(cells)

        names = {"run": self.run.run, "cell": number}
        lines: list[Line] = [structs.replace(cell, cell=number)]
        if proof is not None:
            lines.append(structs.replace(proof, **names))
        return [*lines, structs.replace(measurement, **names, attempt=self.attempt)]

    def append(self, *lines: Line) -> None:
        """Put the run and these lines on disk, all or none, unless they are there; they are
        remembered even if the disk is full.
        """
        fresh = [line for line in map(checked, (self.run, *lines)) if line not in self]
        for line in fresh:
            self.join(line)
        if self.store is not None:
            self.store.append_lines(fresh)

    def finish(self) -> None:
        """Write that the run is complete."""
        self.append(End(run=self.run.run))
