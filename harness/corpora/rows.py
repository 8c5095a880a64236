"""The form of a file, by its first bytes and its name, and the documents in it.

A file may be compressed under any name. Parquet, JSON Lines, JSON arrays, .csv and .tsv have rows,
each a document; JSON is looked for in files called .json and in those without an ending. Any other
file is one document.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.printing import print_stderr
from harness.common.units import bytes_text, counted_text, one_line
from harness.corpora.files import BLOCK_BYTES, Damaged

HEAD_BYTES = 1 << 12
ARRAY, FIX_ROW, AGAIN = "the array", "fix or remove that row", "get or make it again"
LONGEST_ARRAY = 1 << 28
NAMES_SHOWN = 20
Row = tuple[str, Mapping[str, Any]]  # its place in the file, and its columns
Reader = Callable[[Any, IO[bytes], str], Iterator[Row]]


@dataclass
class RowReading:
    """How rows become documents, and how many rows without a text were left out."""

    column: str | None = None
    skip_nulls: bool = False
    errors: str = "strict"
    skipped: int = 0

    def report(self) -> None:
        """Say how many rows were left out, if any."""
        if self.skipped:
            print_stderr(
                f"left out {counted_text(self.skipped, 'row')} without a text (data.skip_nulls)"
            )


class Form(NamedTuple):
    """What a file is: the ending of its compression, if any, and what reads its rows, if any."""

    packed: str = ""
    rows: Reader | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the bytes of the file are the text."""
        return not self.packed and self.rows is None

    @property
    def remark(self) -> str:
        """What the bytes of the text are counted in if that is not the file itself."""
        if self.rows is not None:
            return ", the texts in it"
        return self.packed and ", unpacked"


def form_of(member: Any) -> Form:
    """The form of a file. Raises Refusal for an archive, and if the file is damaged."""
    with member.open("rb") as file:
        head = file.read(HEAD_BYTES)
        packed = next((ending for ending, start in PACKED.items() if re.match(start, head)), "")
        ending = suffix_of(member)
        if ending in PACKED:
            packed = packed or ending
            ending = suffix_of(str(member)[: -len(ending)])

        if packed:
            if not head:
                raise Damaged(f"{member} is empty, not a {packed[1:]} file; {AGAIN}", UNMEASURED)
            file.seek(0)
            with unpacking(member, file, packed) as content:
                head = content.read(HEAD_BYTES)
    for name, start in OTHERS.items():
        if re.match(start, head, re.DOTALL):
            raise Refusal(f"{member} is {name}", UNMEASURED)
    if packed and any(re.match(start, head) for start in PACKED.values()):
        raise Refusal(f"{member} is compressed twice; unpack it first", UNMEASURED)
    if head.startswith(b"PAR1\x15"):
        return Form(packed, parquet_rows)
    return Form(packed, json_form(head) if ending in ("", ".json") else ROWS.get(ending))


def json_form(head: bytes) -> Reader | None:
    """What reads the rows of JSON that starts so; None for other text, and for one object over
    several lines.

    >>> json_form(b'{"text": "low"}\\n').__name__, json_form(b'[\\n {"text": "low"}]').__name__
    ('json_rows', 'array_rows')
    >>> json_form(b'{\\n "text": "low"\\n}'), json_form(b"low")
    (None, None)
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if re.match(rb'\[\s*([{"]|null\b)', start):
        return array_rows
    line, newline, _ = start.partition(b"\n")
    is_cut = not newline and len(head) == HEAD_BYTES
    is_object = re.match(rb'\{\s*"', line) and (is_cut or line.rstrip().endswith(b"}"))
    return json_rows if is_object else None


def documents_in(
    member: Any, file: IO[bytes], reading: RowReading, form: Form
) -> Iterator[Iterator[bytes]]:
    """Each document of a file as blocks: its rows, or all of it. Raises Refusal, naming the row, if
    one is not text.
    """
    if form.rows is None:
        yield blocks_of(member, file, form.packed)
        return

    column = reading.column or "text"
    with unpacking(member, file, form.packed) as content:
        for position, row in form.rows(member, content, column):
            try:
                value = value_in(row, column)
            except (KeyError, TypeError) as error:
                raise no_column(f"{member}, {position},", column, list(row)) from error
            if value is None and reading.skip_nulls:
                reading.skipped += 1
            else:
                yield iter([as_text(member, position, value, column, reading.errors)])


def value_in(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column; `meta.text` is `text` in the object `meta`. Raises KeyError or
    TypeError if it is missing.

    >>> value_in({"meta": {"text": "low"}}, "meta.text"), value_in({"a.b": "low"}, "a.b")
    ('low', 'low')
    """
    outer, dot, inner = column.partition(".")
    if column in row or not dot:
        return row[column]
    return None if row[outer] is None else value_in(row[outer], inner)


def as_text(member: Any, position: str, value: Any, column: str, errors: str) -> bytes:
    """The bytes of a value. Raises Refusal if it is not text."""
    if isinstance(value, bytes):
        return value
    try:
        if errors == "replace":
            value = re.sub("[\ud800-\udfff]", "\ufffd", value)
        return bytes(value, "utf-8")
    except (TypeError, UnicodeEncodeError) as error:  # of half a surrogate pair
        kind = "null" if value is None else f"{type(value).__name__} {value!r:.40}"
        why = f"column {column!r} holds {kind}, which is not text"
        advice = f"{FIX_ROW}, or pass data.column=NAME"
        if value is None:
            advice += ", or leave such rows out: pass data.skip_nulls=true"
        raise bad_row(member, position, why, advice) from error


def suffix_of(path: Any) -> str:
    """The end of the name of a `Path`, a URL, or anything with their text.

    >>> suffix_of("texts/A.JSONL.GZ"), suffix_of("https://host/a.txt?x=1.gz")
    ('.gz', '.txt')
    """
    text = str(path)
    return PurePosixPath(urlsplit(text).path if is_url(text) else text).suffix.lower()


def is_url(text: Any) -> bool:
    """
    >>> is_url("s3://bucket/a.txt"), is_url("texts/a.txt"), is_url("C:/a.txt")
    (True, False, False)
    """
    return isinstance(text, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text) is not None


def blocks_of(path: Any, file: IO[bytes], packed: str) -> Iterator[bytes]:
    """The blocks of a file's plain text. Raises Refusal if the file is damaged."""
    with unpacking(path, file, packed) as text:
        while block := text.read(BLOCK_BYTES):
            yield block


@contextlib.contextmanager
def unpacking(path: Any, file: IO[bytes], packed: str) -> Iterator[IO[bytes]]:
    """A file that unpacks itself while it is read. Raises Refusal if it is damaged."""
    if not packed:
        yield file
        return
    try:
        yield UNPACKED[packed](file)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        why = f"is damaged or not a {packed[1:]} file ({one_line(str(error))})"
        raise Damaged(f"{path} {why}; {AGAIN}", UNMEASURED) from error


PACKED = {
    ".gz": rb"\x1f\x8b",
    ".bz2": rb"BZh\d1AY&SY",
    ".xz": rb"\xfd7zXZ\0",
    ".zst": rb"\x28\xb5\x2f\xfd",
}
UNPACK, CONVERT = "archive; unpack it first", "text, not UTF-8; convert it with iconv"
OTHERS = {
    f"a zip {UNPACK}": rb"PK(\x03\x04|\x05\x06)",
    f"a lz4 {UNPACK}": rb"\x04\x22\x4d\x18",
    f"a 7z {UNPACK}": rb"7z\xbc\xaf",
    f"a rar {UNPACK}": rb"Rar!\x1a\x07",
    f"a tar {UNPACK}": rb".{257}ustar",
    f"UTF-32 {CONVERT}": rb"\xff\xfe\0\0|\0\0\xfe\xff",
    f"UTF-16 {CONVERT}": rb"\xff\xfe|\xfe\xff",
}
"""What a file is that is not read, by its first bytes."""
UNPACKED: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": lambda file: io.BufferedReader(
        extra("pyarrow", "a .zst file").CompressedInputStream(file, "zstd")
    ),
}


def parquet_rows(path: Any, file: IO[bytes], column: str) -> Iterator[Row]:
    parquet = extra("pyarrow.parquet", path.name)
    row = 0
    try:
        with parquet.ParquetFile(file, page_checksum_verification=True) as table:
            names = table.schema_arrow.names
            if not {column, column.partition(".")[0]} & {*names}:
                raise no_column(path, column, names)
            for batch in table.iter_batches(1024, columns=[column]):
                if not batch.schema.names:  # a field that its objects lack, or within a list
                    raise no_column(path, column, names)
                name = batch.schema.names[0]
                for row, scalar in enumerate(batch.column(0), row + 1):  # noqa: B020
                    yield f"row {row}", {name: scalar.as_py()}
    # a text that is not UTF-8 is a ValueError
    except (OSError, ValueError, NotImplementedError) as error:
        why = f"near row {row}: {one_line(str(error))}"
        raise Damaged(
            f"{path} is damaged or not a Parquet file, {why}; {AGAIN}", UNMEASURED
        ) from error


def json_rows(path: Any, file: IO[bytes], column: str) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if line.strip():
            position = f"line {number}"
            yield position, json_row(path, position, column, in_json(path, position, line))


def array_rows(path: Any, file: IO[bytes], column: str) -> Iterator[Row]:
    """The objects or the texts of one array, which is read whole."""
    content = file.read(LONGEST_ARRAY + 1)
    if len(content) > LONGEST_ARRAY:
        why = f"longer than {bytes_text(LONGEST_ARRAY)}, and it is read whole"
        raise bad_row(path, ARRAY, why, "make lines of it: jq -c '.[]' FILE")

    for number, row in enumerate(in_json(path, ARRAY, content), 1):
        position = f"row {number}"
        is_text = row is None or isinstance(row, str)
        yield position, {column: row} if is_text else json_row(path, position, column, row)


def in_json(path: Any, position: str, content: bytes) -> Any:
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        advice = "fix it" if position == ARRAY else FIX_ROW
        raise bad_row(path, position, f"not JSON ({error})", advice) from error


def json_row(path: Any, position: str, column: str, row: Any) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise bad_row(path, position, f"not an object with a column {column!r}")
    return row


def csv_rows(path: Any, file: IO[bytes], column: str) -> Iterator[Row]:
    csv.field_size_limit(1 << 30)
    lines = (line.decode("utf-8-sig") for line in file)
    number = 0
    try:
        header = next(lines, "")
        delimiter = ";" if ";" in header and "," not in header else ","
        if ".tsv" in path.name.lower():
            delimiter = "\t"

        rows = csv.DictReader(chain([header], lines), delimiter=delimiter, strict=True)
        if column not in (rows.fieldnames or []):
            raise no_column(path, column, rows.fieldnames or [])
        for row in rows:
            number = rows.line_num
            yield f"line {number}", row
    except (csv.Error, UnicodeDecodeError) as error:
        raise bad_row(path, f"line {number + 1}", str(error)) from error


ROWS: dict[str, Reader] = {
    ".parquet": parquet_rows,
    ".jsonl": json_rows,
    ".ndjson": json_rows,
    ".csv": csv_rows,
    ".tsv": csv_rows,
}


ADVICE = {"data.column": "NAME", "data.skip_nulls": "true"}
"""The settings that refusals of rows name."""


def bad_row(path: Any, position: str, why: str, advice: str = FIX_ROW) -> Refusal:
    return Refusal(f"{path}, {position}: {why}; {advice}", UNMEASURED, ADVICE)


def no_column(path: Any, column: str, names: Sequence[str]) -> Refusal:
    there = ", ".join(names[:NAMES_SHOWN]) or "none"
    there += f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    why = f"{path} has no column {column!r}, there are: {there}"
    return Refusal(f"{why}; pass data.column=NAME", UNMEASURED, ADVICE)
