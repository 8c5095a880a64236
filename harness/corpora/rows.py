"""The rows of files that have some, and the text in each."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
    without advice on that.
    """

    column: str | None = None
    skip_nulls: bool = False
    errors: str | None = None
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


Row = tuple[str, Mapping[str, Any]]  # its place in the file, and its columns
Reader = Callable[[Any, IO[bytes], RowReading], Iterator[Any]]


def texts_in(member: Any, rows: Iterable[Row], reading: RowReading) -> Iterator[bytes]:
    """The text in each row. Raises Refusal, naming the row, if one has none."""
    for position, row in rows:
        try:
            value = value_in(row, reading.name)
        except (KeyError, TypeError) as error:
            raise no_column(f"{member}, {position},", reading.name, list(row)) from error
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


def rows_of_batches(
    batches: Reader, what: str, path: Any, file: IO[bytes], reading: RowReading
) -> Iterator[Row]:
    """The rows of a table that pyarrow reads in batches. Raises Refusal if it is damaged."""
    row = 0
    try:
        for batch in batches(path, file if file.seekable() else io.BytesIO(file.read()), reading):
            names = batch.schema.names
            name = reading.name if reading.name in names else reading.name.partition(".")[0]
            for scalar in batch.column(name):
                row += 1
                yield f"row {row}", row_of(path, f"row {row}", name, scalar, reading)
    except (OSError, ValueError, NotImplementedError) as error:
        why = f"near row {row}: {one_line(str(error))}"
        raise Damaged(f"{path} is damaged or not {what}, {why}; {AGAIN}", UNMEASURED) from error


def parquet_batches(path: Any, file: IO[bytes], reading: RowReading) -> Iterator[Any]:
    parquet = extra("pyarrow.parquet", path.name).ParquetFile
    with parquet(file, page_checksum_verification=True) as table:
        check_column(path, reading.name, table.schema_arrow.names)
        # of a field that its objects lack, or within a list, a batch has no column
        for batch in table.iter_batches(ROWS_AT_ONCE, columns=[reading.name]):
            if not batch.schema.names:
                raise no_column(path, reading.name, table.schema_arrow.names)
            yield batch


def arrow_batches(path: Any, file: IO[bytes], reading: RowReading) -> Iterator[Any]:
    """The batches of an Arrow file, or of a stream, as datasets saves one."""
    ipc = extra("pyarrow.ipc", path.name)
    is_file = file.read(len(ARROW)) == ARROW
    file.seek(0)
    with ipc.open_file(file) if is_file else ipc.open_stream(file) as table:
        check_column(path, reading.name, table.schema.names)
        yield from map(table.get_batch, range(table.num_record_batches)) if is_file else table


parquet_rows = partial(rows_of_batches, parquet_batches, "a Parquet file")
arrow_rows = partial(rows_of_batches, arrow_batches, "an Arrow file")


def row_of(path: Any, position: str, name: str, value: Any, reading: RowReading) -> dict[str, Any]:
    """A value of the column `name` as Python's. Raises Refusal for a text that is not UTF-8."""
    try:
        return {name: value.as_py()}
    except UnicodeDecodeError:
        for field in reading.name.removeprefix(name).split(".")[1:]:
            value = value[field]
        content = getattr(value, "value", value).as_buffer().to_pybytes()  # `value` of a dictionary
        return {reading.name: reading.text_of(path, position, content)}


def check_column(path: Any, column: str, names: Sequence[str]) -> None:
    """Raise Refusal if a table with columns of these names has no such one."""
    if column not in names and column.partition(".")[0] not in names:
        raise no_column(path, column, names)


# JSON and CSV


def json_rows(path: Any, file: IO[bytes], reading: RowReading) -> Iterator[Row]:
    for number, line in enumerate(file, 1):
        if line.strip():
            position = f"line {number}"
            row = in_json(path, position, reading.text_of(path, position, line))
            yield position, json_row(path, position, row, reading)


def array_rows(path: Any, file: IO[bytes], reading: RowReading) -> Iterator[Row]:
    """The objects or the texts of one array, which is read whole, as is an object whose first value
    is the array.
    """
    rows = in_json(path, ARRAY, reading.text_of(path, ARRAY, file.read()))
    if isinstance(rows, dict):
        rows = next(iter(rows.values()))

    for number, row in enumerate(rows, 1):
        position = f"row {number}"
        is_text = row is None or isinstance(row, str)
        yield position, {reading.name: row} if is_text else json_row(path, position, row, reading)


def in_json(path: Any, position: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        advice = "fix it" if position == ARRAY else FIX_ROW
        raise bad_row(path, position, f"not JSON ({error})", advice) from error


def json_row(path: Any, position: str, row: Any, reading: RowReading) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise bad_row(path, position, f"not an object with a column {reading.name!r}")
    return row


def csv_rows(path: Any, file: IO[bytes], reading: RowReading) -> Iterator[Row]:
    csv.field_size_limit(1 << 30)
    lines = (reading.text_of(path, f"line {number}", line) for number, line in enumerate(file, 1))
    number = 0
    try:
        header = next(lines, "")
        delimiter = ";" if ";" in header and "," not in header else ","
        if re.search(r"\.(tsv|tab)\b", path.name.lower()):
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


def no_column(path: Any, column: str, names: Sequence[str]) -> Refusal:
    there = ", ".join(names[:NAMES_SHOWN]) or "none"
    why = f"{path} has no column {column!r}, there are: {there}"
    return Refusal(f"{why}; pass data.column=NAME", UNMEASURED, ADVICE)
