"""The record: one measured cell, one JSON line; and the file of them, appended to and never rewritten by a measurement.

Records are written whole or not at all, under a lock, so that several commands can share a results folder. A line that
cannot be read is reported with its number and skipped: it costs only itself.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import io
import itertools
import json
import marshal
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import orjson

from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import make_results_folder, readable
from harness.common.units import counted_text
from harness.runs.record_keys import complaints

SCHEMA = 1
FILE_NAME = "records.jsonl"
PACKED = f"{FILE_NAME}.gz"
"""The same, packed by gzip: what is kept for good and not added to."""
Record = dict[str, Any]
LeftOut = Mapping[str, Sequence[str]]
"""What a reader of many records has no use for: keys, and what is kept of each where it is a mapping."""
NOTHING_LEFT_OUT: LeftOut = MappingProxyType({})
NOTHING = object()
LONGEST_LINE = 64 << 20
BY_ITSELF = "itself"
"""What stands for the counter of a trainer that reads the file: how it counts, only it knows."""


class RecordFile:
    """`records.jsonl` in a results folder, unless it is called otherwise."""

    def __init__(self, folder: Path, name: str = FILE_NAME) -> None:
        """Make the folder if need be and prove that it can be written, before anything is measured."""
        self.path = folder / name
        try:
            make_results_folder(folder)
            if self.path.is_fifo():
                raise OSError(errno.EINVAL, f"{name} is a pipe")
            with self.path.open("ab"):
                pass
        except OSError as error:
            raise unwritable(folder, error) from error

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Add records at the end, all or none. Raises Refusal if the disk is full, or the folder gone for good."""
        lines = b"".join(_line(record) for record in records)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                _append_whole(file, lines)
        except OSError as error:
            raise unwritable(self.path.parent, error) from error


def unwritable(folder: Path, error: OSError) -> Refusal:
    return Refusal(
        f"cannot write records to {folder} ({error.strerror}); choose another folder with results=FOLDER", UNMEASURED
    )


def _line(record: Mapping[str, Any]) -> bytes:
    """A record as a line. What is no text, such as a file name in another encoding, becomes JSON's own escapes."""
    return json.dumps(record, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"


def _append_whole(file: io.FileIO, lines: bytes) -> None:
    """Write `lines` behind what there is; if that fails half-way, what was written is taken back."""
    end = file.seek(0, os.SEEK_END)
    if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
        lines = b"\n" + lines  # what a crash of the machine cut short stays a line of its own, to be reported
    try:
        written = 0
        while written < len(lines):  # on a disk that is almost full the first write takes what fits, without an error
            written += file.write(lines[written:])
        os.fsync(file.fileno())
    except BaseException:
        if file.seek(0, os.SEEK_END) > end:
            file.truncate(end)
        raise


class Line(NamedTuple):
    """A line of a file of records: what stands there, or what is wrong with it."""

    path: Path
    number: int
    record: Record | None
    complaints: tuple[str, ...] = ()


def lines_of(path: Path, without: LeftOut = NOTHING_LEFT_OUT) -> Iterator[Line]:
    """The lines of a file that are not blank. Raises Refusal if it cannot be read."""
    reader = Reader(path, without)
    try:
        with readable(path) as plain, gzip.open(plain) if path.suffix == ".gz" else plain as file:
            yield from (reader.line(number, text) for number, text in texts_in(file))
    except OSError as error:
        told = error.strerror or error
        raise Refusal(f"cannot read records from {path} ({told}); python -m harness makes some", UNMEASURED) from error
    except (EOFError, zlib.error) as error:
        raise Refusal(f"{path} is cut short or broken ({error}); fetch it again", UNMEASURED) from error


def texts_in(file: BinaryIO | gzip.GzipFile) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not blank by their numbers; None in the place of one that is longer than any record."""
    for number in itertools.count(1):
        text = file.readline(LONGEST_LINE)
        if len(text) == LONGEST_LINE:
            while text and not text.endswith(b"\n"):
                text = file.readline(LONGEST_LINE)
            yield number, None
        elif not text:
            return
        elif not text.isspace():
            yield number, text


def files_of(folder: Path) -> list[Path]:
    """The files of records in a folder, what is packed first; the name of the plain one where there is none."""
    return [path for path in (folder / PACKED, folder / FILE_NAME) if path.exists()] or [folder / FILE_NAME]


class Reader:
    """Reads lines one after the other; what a record shares with the one before it is kept, and checked, once."""

    def __init__(self, path: Path, without: LeftOut = NOTHING_LEFT_OUT) -> None:
        self.path = path
        self.without = without
        self.before: Record = {}

    def line(self, number: int, text: bytes | None) -> Line:
        """A record of our schema that is whole and holds together, or all reasons why the line is not one."""
        if text is None:
            return Line(self.path, number, None, (f"longer than {LONGEST_LINE >> 20} MiB, the limit for a record",))
        try:
            record = read_json(text)
        except (ValueError, RecursionError) as error:
            return Line(self.path, number, None, (str(error),))
        schema = record.get("schema") if isinstance(record, dict) else None
        if type(schema) is int and schema > SCHEMA:
            newer = f"schema {schema} is newer than {SCHEMA}, which this program reads; update it"
            return Line(self.path, number, None, (newer,))
        if schema != SCHEMA or "status" not in record:
            return Line(self.path, number, None, (f"not a record of schema {SCHEMA}",))
        if wrong := tuple(complaints(record, self.fresh_values(record))):
            return Line(self.path, number, None, wrong)
        self.before = record
        self.leave_out(record)
        return Line(self.path, number, record)

    def fresh_values(self, record: Record) -> Record:
        """The values that differ from those of the record before; the others become the same objects."""
        fresh: Record = {}
        for name, value in record.items():
            shared = self.before.get(name, NOTHING)
            if value == shared and exactly(value) == exactly(shared):
                record[name] = shared
            else:
                fresh[name] = value
        return fresh

    def leave_out(self, record: Record) -> None:
        """Take what nobody will ask for out of a record."""
        for name, kept in self.without.items():
            if not kept:
                record.pop(name, None)
            elif type(value := record.get(name)) is dict:
                record[name] = {inner: value[inner] for inner in kept if inner in value}


def read_json(content: bytes) -> Any:
    """Return the value. Raises ValueError, or RecursionError, if it is not JSON.

    Python reads what orjson refuses, such as half a character.
    """
    try:
        return orjson.loads(content)
    except ValueError:
        return json.loads(content)


def exactly(value: Any) -> bytes:
    """What is equal for equal JSON alone: to Python 1, 1.0 and true are equal."""
    return marshal.dumps(value, 2)


def report(line: Line) -> None:
    """Say which line is skipped, and why."""
    skipped = f"{line.path}, line {line.number}: skipped, {'; '.join(line.complaints)}"
    say(skipped)


def read_records(paths: Sequence[Path | str], without: LeftOut = NOTHING_LEFT_OUT) -> list[Record]:
    """The records in files, or in the `records.jsonl` of folders, in order; broken lines are reported and skipped."""
    records = []
    for given in map(Path, paths):
        for file in files_of(given) if given.is_dir() else [given]:
            incomplete = 0
            for line in lines_of(file, without):
                if line.record is None:
                    report(line)
                elif is_without_counting(line.record):
                    incomplete += 1
                else:
                    records.append(line.record)
            if incomplete:
                told = counted_text(incomplete, "record")
                say(f"{file}: skipped {told} with words counted in an earlier run; measure them again")
    return records


def is_without_counting(record: Record) -> bool:
    """Whether its total leaves out counting, as those of earlier versions may; today a run counts for itself."""
    total = (record.get("seconds") or {}).get("total")
    return bool(record.get("counts_reused")) and (total is not None or bool(record.get("extrapolated")))
