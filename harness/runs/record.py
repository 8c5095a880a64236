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
from typing import Any, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import make_results_folder, readable
from harness.common.quick_json import read_json
from harness.common.streams import say
from harness.runs.record_keys import complaints

SCHEMA = 1
FILE_NAME = "records.jsonl"
PACKED = f"{FILE_NAME}.gz"
"""The same, packed by gzip: what is kept for good and not added to."""
Record = dict[str, Any]
NOTHING = object()
LONGEST_LINE = 64 << 20
ENDING = b', "environment": {'
"""With what the long end of a line begins that the records of one run have in common."""
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


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file that are not blank. Raises Refusal if it cannot be read."""
    reader = Reader(path)
    try:
        with readable(path) as plain, gzip.open(plain) if path.suffix == ".gz" else plain as file:
            for number in itertools.count(1):
                text = file.readline(LONGEST_LINE)
                if len(text) == LONGEST_LINE:
                    while text and not text.endswith(b"\n"):
                        text = file.readline(LONGEST_LINE)
                    yield Line(path, number, None, (f"it is of over {LONGEST_LINE >> 20} MiB, and no record is",))
                elif not text:
                    return
                elif text.strip():
                    yield reader.line(number, text)
    except OSError as error:
        told = error.strerror or error
        raise Refusal(f"cannot read records from {path} ({told}); python -m harness makes some", UNMEASURED) from error
    except (EOFError, zlib.error) as error:
        raise Refusal(f"{path} is cut short or broken ({error}); fetch it again", UNMEASURED) from error


def files_of(folder: Path) -> list[Path]:
    """The files of records in a folder, what is packed first; the name of the plain one where there is none."""
    return [path for path in (folder / PACKED, folder / FILE_NAME) if path.exists()] or [folder / FILE_NAME]


class Reader:
    """Reads the lines of a file one after the other.

    What a record shares with the one before it is kept, and checked, once: most of it, where one cell was run often.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before: Record = {}
        self.exact: dict[str, bytes] = {}
        """Mappings and lists of the record before as bytes, where they were needed."""
        self.end = b""
        """How the line before ends, from its last ENDING on; what stands there is told by `end_names`."""
        self.end_names: tuple[str, ...] = ()

    def line(self, number: int, line: bytes) -> Line:
        """A record of our schema that is whole and holds together, or all reasons why the line is none."""
        try:
            record = self.parsed(line)
        except (ValueError, RecursionError) as error:
            return Line(self.path, number, None, (str(error),))
        schema = record.get("schema") if isinstance(record, dict) else None
        if type(schema) is int and schema > SCHEMA:
            newer = f"schema {schema} is newer than {SCHEMA}, which this program reads; update it"
            return Line(self.path, number, None, (newer,))
        if schema != SCHEMA or "status" not in record:
            return Line(self.path, number, None, (f"not a record of schema {SCHEMA}",))
        before, exact = self.before, self.exact
        spelled: dict[str, bytes] = {}
        fresh: Record = {}
        for name, value in record.items():
            known = before.get(name, NOTHING)
            if value is known:
                continue
            kind = type(value)
            if kind is dict or kind is list:
                if value == known:
                    content = spelled[name] = exactly(value)
                    if (exact.get(name) or exactly(known)) == content:
                        record[name] = known
                        continue
            elif value == known and kind is type(known) and kind is not float:
                record[name] = known
                continue
            fresh[name] = value
        wrong = tuple(complaints(record, fresh))
        if wrong:
            return Line(self.path, number, None, wrong)
        self.before, self.exact = record, spelled
        self.note_end(line)
        return Line(self.path, number, record)

    def parsed(self, line: bytes) -> Any:
        """What a line says. Where it ends as the one before, that end, mostly half of it, is not read again.

        A quote in a text is escaped, so what is cut off are members of a mapping; and of the record itself, for only
        then the beginning is a mapping without them, as that of the line before was.
        """
        start = len(line) - len(self.end)
        if self.end and start > 0 and line.endswith(self.end):
            try:
                record = read_json(line[:start] + b"}")
            except ValueError:
                return read_json(line)
            if type(record) is dict and record:
                for name in self.end_names:
                    record[name] = self.before[name]
                return record
        return read_json(line)

    def note_end(self, line: bytes) -> None:
        """Remember how the line of a sound record ends, if it is another end, and a beginning can be cut from it."""
        start = line.rfind(ENDING)
        if start < 0:
            self.end = b""
        elif line[start:] != self.end:
            self.end = b""
            try:
                beginning, members = read_json(line[:start] + b"}"), read_json(b"{" + line[start + 1 :])
            except ValueError:
                return
            if type(beginning) is dict and type(members) is dict:
                self.end, self.end_names = line[start:], tuple(members)


def exactly(value: Any) -> bytes:
    """What is equal for equal JSON alone: to Python 1, 1.0 and true are equal."""
    return marshal.dumps(value, 2)


def report(line: Line) -> None:
    """Say which line is skipped, and why."""
    skipped = f"{line.path}, line {line.number}: skipped, {'; '.join(line.complaints)}"
    say(skipped)


def read_records(paths: Sequence[Path | str]) -> list[Record]:
    """The records in files, or in the `records.jsonl` of folders, in order; broken lines are reported and skipped."""
    records = []
    for given in map(Path, paths):
        for file in files_of(given) if given.is_dir() else [given]:
            for line in lines_of(file):
                if line.record is None:
                    report(line)
                else:
                    records.append(line.record)
    return records
