"""`records.jsonl`: lines appended under a lock, each append whole and on disk; lines read one by one.

Several commands may append to one file, and nothing is ever rewritten. A line that a kill cut short stays a line, which
readers report and skip.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import io
import itertools
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from harness.common.console import well_formed
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import make_results_folder, readable
from harness.records.schema import DECODER, SCHEMA, Cell, Digest, Line, Measurement, Moment, Proof, Run, Token

FILE_NAME = "records.jsonl"
PACKED = f"{FILE_NAME}.gz"
"""The same file packed by gzip: complete, and not appended to."""
LONGEST_LINE = 64 << 20
Record = dict[str, Any]
"""A measured process with all that is recorded of it: run, cell, measurement and proof as one mapping."""
KindOfLine = TypeVar("KindOfLine", bound=Line)
_FORMS = {Digest: "64 hexadecimal digits", Moment: "a time in ISO 8601 with its time zone", Token: "hexadecimal digits"}
_AS_GIVEN = ("params", "environment")
"""Keys whose values are written as they are; elsewhere null is the same as a missing key, and floats are rounded."""
_DECIMALS = 12


class RecordFile:
    """`records.jsonl` in a results folder, unless it has another name."""

    def __init__(self, folder: Path, name: str = FILE_NAME) -> None:
        """Create the folder if it is missing, and check that the file can be written."""
        self.path = folder / name
        self.splitter = Splitter()
        try:
            make_results_folder(folder)
            if self.path.is_fifo():
                raise OSError(errno.EINVAL, f"{name} is a pipe")
            with self.path.open("ab"):
                pass
        except OSError as error:
            raise unwritable(folder, error) from error

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append records as lines, all or none. Raises Refusal if the disk is full or the folder cannot be created."""
        for run in {record["run_id"] for record in records} - self.splitter.runs.keys():
            for line in self.lines_of(run):
                self.splitter.note(line)
        self.append_lines([line for record in records for line in self.splitter.lines(record)])

    def lines_of(self, run: str) -> list[Line]:
        """The lines of a run that are in the file."""
        if not self.path.is_file():
            return []
        return [line for _, line in read_lines(self.path) if isinstance(line, Line) and line.run == run]

    def append_lines(self, lines: Sequence[Line]) -> None:
        """Append lines in one write, all or none. Raises Refusal as `append` does."""
        self.append_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    def append_bytes(self, content: bytes) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
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
        self.cells: dict[tuple[str, bytes], int] = {}
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
        key = run.run, msgspec.json.encode(cell)
        number = fields["cell"] = self.cells.get(key, sum(other == run.run for other, _ in self.cells))
        if key not in self.cells:
            lines.append(msgspec.structs.replace(cell, cell=number))
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
            self.cells[line.run, msgspec.json.encode(msgspec.structs.replace(line, cell=0))] = line.cell
        elif isinstance(line, Proof):
            self.proofs[line.run, line.cell, line.merges_sha256] = line


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
        with readable(path) as plain, gzip.open(plain) if path.suffix == ".gz" else plain as file:
            yield from ((number, decoded(text)) for number, text in _texts(file))
    except OSError as error:
        reason = error.strerror or error
        raise Refusal(
            f"cannot read records from {path} ({reason}); python -m harness makes some", UNMEASURED
        ) from error
    except (EOFError, zlib.error) as error:
        raise Refusal(f"{path} is cut short or broken ({error}); fetch it again", UNMEASURED) from error


def _texts(file: BinaryIO | gzip.GzipFile) -> Iterator[tuple[int, bytes | None]]:
    """The lines that are not blank by their number; None for one that is longer than any record."""
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


OLD = "a record of schema 1, which an earlier version wrote; measure it again with python -m harness"


def decoded(text: bytes | None) -> Line | str:
    """A line, or what is wrong with it in a sentence."""
    if text is None:
        return f"longer than {LONGEST_LINE >> 20} MiB, the limit for a line"
    try:
        return DECODER.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return _schema_of(text) or _complaint(str(error))


def _schema_of(text: bytes) -> str | None:
    """What to do about a line of another schema; None for any other mistake."""
    try:
        value = json.loads(text)
        schema = value.get("schema")
    except (ValueError, AttributeError, RecursionError):
        return None
    if type(schema) is int and schema > SCHEMA:
        return f"schema {schema} is newer than {SCHEMA}, the schema of this version; update bpe-harness"
    return OLD if schema == 1 and "kind" not in value else None


def _complaint(error: str) -> str:
    """What msgspec complains of, the key first.

    >>> _complaint("Expected `int`, got `str` - at `$.vocab_size`")
    'vocab_size: expected int, got str'
    """
    for form, words in _FORMS.items():
        error = error.replace(f"`str` matching regex {form.__metadata__[0].pattern!r}", words)  # type: ignore[attr-defined]
    error = error.replace(" | null", "")
    match = re.fullmatch(r"(.*?)(?: - at `\$?\.?(.*)`)?", error, re.DOTALL)
    assert match is not None
    what = match[1].replace("`", "")
    what = what if what.startswith("JSON") else f"{what[:1].lower()}{what[1:]}"
    return f"{match[2]}: {what}" if match[2] else what


def files_in(folder: Path) -> list[Path]:
    """The files of records in a folder, the packed one first; the name of the plain one if there are none."""
    return [path for path in (folder / PACKED, folder / FILE_NAME) if path.exists()] or [folder / FILE_NAME]
