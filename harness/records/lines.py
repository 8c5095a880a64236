"""`records.jsonl`: lines appended under a lock, each append whole and on disk, and lines read one by
one.

Several commands may append to one file, and nothing is ever rewritten. A line that a kill cut short
stays a line, which readers report and skip.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.common.errors import UNMEASURED, Refusal, reason, wrong_value
from harness.common.files import make_results_folder, open_appending, readable, sync
from harness.common.printing import well_formed
from harness.records.schema import DECODER, SCHEMA, Line

FILE_NAME = "records.jsonl"
PACKED = f"{FILE_NAME}.gz"  # the same file packed by gzip: complete, and not appended to
ELSEWHERE = "choose another folder with results=FOLDER"
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
    text = msgspec.json.encode(_clean(msgspec.to_builtins(line)))
    return msgspec.json.decode(text, type=type(line))


def _clean(value: Any, as_given: bool = False) -> Any:
    """The value in valid UTF-8; unless `as_given` without null, and with rounded floats."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float) and not as_given:
        return round(value, _DECIMALS)
    if isinstance(value, list):
        return [_clean(inner, as_given) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _clean(inner, as_given or name in _AS_GIVEN)
        for name, inner in value.items()
        if as_given or inner is not None
    }


def read_texts(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank by their number.

    Raises Refusal if the file cannot be read.
    """
    try:
        readable(path)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, text in enumerate(file, 1):
                if not text.isspace():
                    yield number, text
    except (OSError, EOFError, zlib.error) as error:
        why = f"cannot read records from {path} ({getattr(error, 'strerror', None) or error})"
        raise Refusal(f"{why}; python -m harness makes some", UNMEASURED) from error


def decoded_line(text: bytes) -> Line | str:
    """A line, or what is wrong with it, the key first.

    >>> decoded_line(b'{"kind": "end", "run": 7}')
    'run: expected text, got a whole number'
    """
    try:
        return DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        return complaint_of(error)


def complaint_of(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object!a} is not Unicode text"
    what, key = wrong_value(error)
    if key == "schema":
        return f"not of schema {SCHEMA}, which this version reads; use the version of bpe-harness that wrote it"
    what = what.replace("`", "").replace(" or null", "")
    return f"{key}: {what}" if key else what
