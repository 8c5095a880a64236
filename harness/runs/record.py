"""The record: one measured cell, one JSON line; and the file of them, appended to and never rewritten by a measurement.

Records are written whole or not at all, under a lock, so that several commands can share a results folder. A line that
cannot be read is reported with its number and skipped: it costs only itself.
"""

from __future__ import annotations

import contextlib
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

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import make_results_folder, readable
from harness.common.quick_json import read_json
from harness.common.streams import say
from harness.common.units import counted_text
from harness.runs.alike import all_sound, columns_of
from harness.runs.record_keys import complaints, is_sound

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
FIGURES, ENDING, SOURCE = b', "seconds": {', b', "environment": {', b', "source_sha256": '
"""Between what the records of one cell have in common, at the beginning of a line, and those of one run, at its end.

That end may begin a little before the machine is described.
"""
LITTLE = 400
FEWEST_TOGETHER, MOST_TOGETHER = 8, 48
"""So many lines of one form are checked at once: with more, what they hold would not stay in a processor's cache."""
_SHARED = frozenset((dict, list, str))
MOST_PARTS, MOST_MET = 4096, 65_536
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
            yield from reader.lines(texts_in(file))
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


class Held(NamedTuple):
    """A line of a form that is known: what it shares with others at its beginning and end, and its own members."""

    number: int
    text: bytes
    first: Record
    own: Record
    last: Record


class Reader:
    """Reads the lines of a file one after the other.

    What a record shares with the one before it is kept, and checked, once; and how lines begin and end that were met
    before is not parsed again: most of each, where one cell was run often.
    """

    def __init__(self, path: Path, without: LeftOut = NOTHING_LEFT_OUT) -> None:
        self.path = path
        self.without = without
        self.before: Record = {}
        self.exact: dict[str, bytes] = {}
        """Mappings and lists of the record before as bytes, where they were needed."""
        self.parts: dict[bytes, Record] = {}
        """The beginnings and ends of lines that have come twice, and what they say, known to be sound."""
        self.met: set[int] = set()
        """The hashes of those that have come."""
        self.beginning = self.end = b""
        """Those of the line before: the same object has its hash already."""
        self.forms: dict[tuple[bytes, bytes], tuple[str, ...]] = {}
        """The keys that stood between a beginning and an end, both known, in a sound record."""
        self.shared: dict[bytes, Any] = {}
        """Mappings and lists that came again and again, by their bytes."""

    def lines(self, texts: Iterator[tuple[int, bytes | None]]) -> Iterator[Line]:
        """What `line` says of each text. Those of one form that follow each other are checked together."""
        held: list[Held] = []
        try:
            for number, text in texts:
                one = None if text is None else self.of_known_form(number, text)
                if one is None or len(held) == MOST_TOGETHER or (held and held[0].own.keys() != one.own.keys()):
                    yield from self.together(held)
                    held = []
                if one is not None:
                    held.append(one)
                elif text is not None:
                    yield self.line(number, text)
                else:
                    yield Line(self.path, number, None, (f"it is of over {LONGEST_LINE >> 20} MiB, and no record is",))
        except (OSError, EOFError, zlib.error):
            yield from self.together(held)  # what came before is told
            raise
        yield from self.together(held)

    def of_known_form(self, number: int, text: bytes) -> Held | None:
        """The line's parts, where it begins, ends and has the keys of a sound one that was met before."""
        self.beginning, self.end = beginning, end = self.cut(text)
        form = self.forms.get((beginning, end))
        first, last = self.parts.get(beginning), self.parts.get(end)
        if form is None or first is None or last is None:
            return None
        try:
            own = read_json(b"".join((b"{", text[len(beginning) + 2 : len(text) - len(end)], b"}")))
        except (ValueError, RecursionError):
            return None
        return Held(number, text, first, own, last) if type(own) is dict and tuple(own) == form else None

    def together(self, held: Sequence[Held]) -> Iterator[Line]:
        """The lines of one form; each by itself if there are few, or if not all are certainly sound."""
        if len(held) >= FEWEST_TOGETHER:
            columns = columns_of([one.own for one in held])
            self.share(held, columns)
            records = [{**one.first, **one.own, **one.last} for one in held]
            if all_sound(records, columns):
                self.before, self.exact = records[-1], {}
                for one, record in zip(held, records, strict=True):
                    self.leave_out(record)
                    yield Line(self.path, one.number, record)
                return
        for one in held:
            yield self.line(one.number, one.text)

    def share(self, held: Sequence[Held], columns: Mapping[str, list[Any]]) -> None:
        """Let records share the mappings, lists and texts that come again and again in them."""
        for name, values in columns.items():
            if _SHARED.isdisjoint(map(type, values)):
                continue
            if len(set(map(exactly, values[:FEWEST_TOGETHER]))) > FEWEST_TOGETHER // 2:
                continue
            if len(self.shared) > MOST_MET:
                self.shared.clear()
            values[:] = [self.shared.setdefault(exactly(value), value) for value in values]
            for one, value in zip(held, values, strict=True):
                one.own[name] = value

    def line(self, number: int, line: bytes) -> Line:
        """A record of our schema that is whole and holds together, or all reasons why the line is none."""
        self.beginning, self.end = beginning, end = self.cut(line)
        try:
            record, own = self.parsed(line, beginning, end)
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
        for name, value in own.items():
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
        if not is_sound(record, fresh):
            return Line(self.path, number, None, tuple(complaints(record, fresh)))
        self.before, self.exact = record, spelled
        if own is not record and "schema" not in own and beginning in self.parts and end in self.parts:
            if len(self.forms) == MOST_PARTS:
                self.forms.clear()
            self.forms[beginning, end] = tuple(own)
        self.note(beginning, beginning + b"}", record)
        self.note(end, b"{" + end[2:], record)
        self.leave_out(record)
        return Line(self.path, number, record)

    def cut(self, line: bytes) -> tuple[bytes, bytes]:
        """How the line begins and ends; the same objects as of the line before where it does as that."""
        beginning, end = self.beginning, self.end
        if not (beginning and line.startswith(beginning) and line.startswith(FIGURES, len(beginning))):
            beginning = line[: max(line.find(FIGURES), 0)]
        if not (end and line.endswith(end) and len(beginning) + len(end) <= len(line)):
            stop = line.rfind(ENDING)
            source = line.rfind(SOURCE, max(stop - LITTLE, len(beginning)), max(stop, 0))
            stop = source if source >= 0 else stop
            end = line[stop:] if stop >= len(beginning) and stop >= 0 else b""
        return beginning, end

    def parsed(self, line: bytes, beginning: bytes, end: bytes) -> tuple[Any, Any]:
        """What a line says, and those members of it that stand in none of the parts that are known.

        A quote in a text is escaped, so parts end where members do; and a part is known only if these are members of
        the record itself. What is said twice counts as it was said last.
        """
        first, last = self.parts.get(beginning), self.parts.get(end)
        if first is not None or last is not None:
            start, stop = 0 if first is None else len(beginning) + 2, len(line) - (0 if last is None else len(end))
            rest = b"".join((b"" if first is None else b"{", line[start:stop], b"" if last is None else b"}"))
            with contextlib.suppress(ValueError):
                own = read_json(rest)
                if type(own) is dict and own and (last is None or own.keys().isdisjoint(last)):
                    record = {} if first is None else first.copy()
                    record.update(own)
                    if last is not None:
                        record.update(last)
                    return record, own
        record = read_json(line)
        return record, record

    def note(self, part: bytes, alone: bytes, record: Record) -> None:
        """Remember a part of the line of a sound record the second time that it comes.

        A beginning closed by a brace is a mapping only if it ends between two members of the record.
        """
        if not part or part in self.parts:
            return
        if hash(part) not in self.met:
            if len(self.met) == MOST_MET:
                self.met.clear()
            self.met.add(hash(part))
            return
        with contextlib.suppress(ValueError):
            said = read_json(alone)
            there = {name: record[name] for name in said if name in record} if type(said) is dict else {}
            if there and exactly(there) == exactly(said):
                if len(self.parts) == MOST_PARTS:
                    self.parts.clear()
                self.parts[part] = there

    def leave_out(self, record: Record) -> None:
        """Take what nobody will ask for out of a record."""
        for name, kept in self.without.items():
            if not kept:
                record.pop(name, None)
            elif type(value := record.get(name)) is dict:
                record[name] = {inner: value[inner] for inner in kept if inner in value}


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
