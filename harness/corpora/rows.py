"""The rows of files that have some, and the text in each."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import IO, Any

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.printing import print_stderr
from harness.common.units import counted_text, one_line
from harness.corpora.files import Damaged

AGAIN = "get or make it again"
ARROW = b"ARROW1\0\0"
ARRAY, FIX_ROW = "the array", "fix or remove that row"
NAMES_SHOWN = 20
ROWS_AT_ONCE = 1024


@dataclass
class RowReading:
    """How rows become documents, and how many rows without a text were left out.

    `errors` is `strict` or `replace` if the user can choose; None refuses a row that is not UTF-8
    without advice on that. `others` are columns that are read beside the texts.
    """

    column: str | None = None
    skip_nulls: bool = False
    errors: str | None = None
    others: Sequence[str] = ()
    skipped: int = 0

    @property
    def name(self) -> str:
        """The column with the texts."""
        return self.column or "text"

    def report(self) -> None:
        """Say how many rows were left out, if any."""
        if self.skipped:
            print_stderr(
                f"left out {counted_text(self.skipped, 'row')} without a text (data.skip_nulls)"
            )

    def text_of(self, path: Any, position: str, content: bytes) -> str:
        """Bytes as text. Raises Refusal if they are not UTF-8 and may not be replaced."""
        try:
            return content.decode("utf-8-sig", self.errors or "strict")
        except UnicodeDecodeError as error:
            advice = f"{FIX_ROW}, or pass errors=replace" if self.errors else FIX_ROW
            raise bad_row(path, position, str(error), advice) from error


Row = tuple[str, Any]  # its place in the file, and its columns, or what JSON has in their place
Reader = Callable[[Any, IO[bytes], RowReading], Iterator[Any]]


def texts_in(member: Any, rows: Iterable[Row], reading: RowReading) -> Iterator[bytes]:
    """The text in each row. Raises Refusal, naming the row, if one has none."""
    for position, row in rows:
        if not isinstance(row, dict):
            raise bad_row(member, position, f"not an object with a column {reading.name!r}")
        try:
            value = value_in(row, reading.name)
        except (KeyError, TypeError) as error:
            raise NoColumn(f"{member}, {position},", reading.name, list(row)) from error
        if value is None and reading.skip_nulls:
            reading.skipped += 1
        else:
            yield as_text(member, position, value, reading)


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


def as_text(member: Any, position: str, value: Any, reading: RowReading) -> bytes:
    """The bytes of a value. Raises Refusal if it is not text."""
    if isinstance(value, bytes):
        return value
    try:
        if reading.errors == "replace":
            value = re.sub("[\ud800-\udfff]", "\ufffd", value)
        return bytes(value, "utf-8")
    except (TypeError, UnicodeEncodeError) as error:  # of half a surrogate pair
        kind = "null" if value is None else f"{type(value).__name__} {value!r:.40}"
        why = f"column {reading.name!r} holds {kind}, which is not text"
        advice = f"{FIX_ROW}, or pass data.column=NAME"
        if value is None:
            advice += ", or leave such rows out: pass data.skip_nulls=true"
        raise bad_row(member, position, why, advice) from error


# Tables


def table_rows(
    open_table: Callable[..., tuple[list[str], Iterable[Any]]],
    what: str,
    path: Any,
    file: IO[bytes],
    reading: RowReading,
) -> Iterator[Row]:
    """The rows of a table that pyarrow reads in batches. Raises Refusal if it is damaged."""
    row, columns = 0, [reading.name, *reading.others]
    try:
        content = file if file.seekable() else io.BytesIO(file.read())
        names, batches = open_table(path, content, columns)
        check_column(path, reading.name, names)
        for batch in batches:
            found = [column_in(path, batch, column, names) for column in columns]
            values = [values_of(path, column, row, reading) for column in found]
            for cells in zip(*values, strict=True):
                row += 1
                yield f"row {row}", dict(zip(columns, cells, strict=True))
    except (OSError, ValueError, NotImplementedError) as error:
        why = f"near row {row}: {one_line(str(error))}"
        raise Damaged(f"{path} is damaged or not {what}, {why}; {AGAIN}", UNMEASURED) from error


def open_parquet(path: Any, file: IO[bytes], columns: list[str]) -> tuple[list[str], Iterable[Any]]:
    """The names of all columns, and batches of these."""
    parquet = extra("pyarrow.parquet", str(path)).ParquetFile
    table = parquet(file, page_checksum_verification=True)
    return table.schema_arrow.names, table.iter_batches(ROWS_AT_ONCE, columns=columns)


def open_arrow(path: Any, file: IO[bytes], _: list[str]) -> tuple[list[str], Iterable[Any]]:
    """The names and batches of an Arrow file, or of a stream, as datasets saves one."""
    ipc = extra("pyarrow.ipc", str(path))
    is_file = file.read(len(ARROW)) == ARROW
    file.seek(0)
    table = ipc.open_file(file) if is_file else ipc.open_stream(file)
    batches = map(table.get_batch, range(table.num_record_batches)) if is_file else table
    return table.schema.names, batches


parquet_rows = partial(table_rows, open_parquet, "a Parquet file")
arrow_rows = partial(table_rows, open_arrow, "an Arrow file")


def column_in(path: Any, batch: Any, column: str, names: Sequence[str]) -> Any:
    """A column of a batch, or a field of the objects in one. Raises Refusal if it is missing."""
    outer, *inner = [column] if column in batch.schema.names else column.split(".")
    try:
        return reduce(extra("pyarrow.compute", str(path)).struct_field, inner, batch.column(outer))
    except (KeyError, ValueError, NotImplementedError) as error:
        raise NoColumn(path, column, names) from error


def values_of(path: Any, column: Any, before: int, reading: RowReading) -> list[Any]:
    """The values of a column, with so many rows before it. Raises Refusal for a text that is not
    UTF-8.
    """
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        texts = enumerate(column.cast("large_binary").to_pylist(), before + 1)
        return [text and reading.text_of(path, f"row {row}", text) for row, text in texts]


def check_column(path: Any, column: str, names: Sequence[str]) -> None:
    """Raise Refusal if a table with columns of these names has no such one."""
    if column not in names and column.partition(".")[0] not in names:
        raise NoColumn(path, column, names)


# JSON and CSV


def json_rows(path: Any, file: IO[bytes], reading: RowReading) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if line.strip():
            position = f"line {number}"
            yield position, in_json(path, position, reading.text_of(path, position, line))


def array_rows(path: Any, file: IO[bytes], reading: RowReading) -> Iterator[Row]:
    """The objects or the texts of one array, which is read whole, as is an object whose first value
    is the array.
    """
    rows = in_json(path, ARRAY, reading.text_of(path, ARRAY, file.read()))
    if isinstance(rows, dict):
        rows = next(iter(rows.values()))

    for number, row in enumerate(rows, 1):
        is_text = row is None or isinstance(row, str)
        yield f"row {number}", {reading.name: row} if is_text else row


def in_json(path: Any, position: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        advice = "fix it" if position == ARRAY else FIX_ROW
        raise bad_row(path, position, f"not JSON ({error})", advice) from error


def csv_rows(path: Any, file: IO[bytes], reading: RowReading) -> Iterator[Row]:
    csv.field_size_limit(1 << 30)
    lines = (reading.text_of(path, f"line {number}", line) for number, line in enumerate(file, 1))
    number = 0
    try:
        header = next(lines, "")
        delimiter = ";" if ";" in header and "," not in header else ","
        if re.search(r"\.(tsv|tab)\b[^/]*$", str(path).lower()):
            delimiter = "\t"

        rows = csv.DictReader(chain([header], lines), delimiter=delimiter, strict=True)
        check_column(path, reading.name, rows.fieldnames or [])
        for row in rows:
            number = rows.line_num
            yield f"line {number}", row
    except csv.Error as error:
        raise bad_row(path, f"line {number + 1}", str(error)) from error


ADVICE = {"data.column": "NAME", "data.skip_nulls": "true", "errors": "replace"}
"""The settings that refusals of rows name."""


def bad_row(path: Any, position: str, why: str, advice: str = FIX_ROW) -> Refusal:
    return Refusal(f"{path}, {position}: {why}; {advice}", UNMEASURED, ADVICE)


class NoColumn(Refusal):
    """A file or a row lacks a column."""

    def __init__(self, place: Any, column: str, names: Sequence[str]) -> None:
        there = ", ".join(names[:NAMES_SHOWN]) or "none"
        why = f"{place} has no column {column!r}, there are: {there}"
        super().__init__(f"{why}; pass data.column=NAME", UNMEASURED, ADVICE)
