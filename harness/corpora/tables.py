"""Texts in a column: the rows of Parquet files and the objects of JSON Lines, one document each."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.corpora.compressed import READERS, Show, blocks_of
from harness.corpora.files import Damaged

COLUMN = "text"
Between = tuple[int, int | None]
WHOLE: Between = (0, None)
ROWS_AT_ONCE = 1024
JSON_LINES = (".jsonl", ".ndjson")


def kind_of(path: Path) -> str | None:
    """`.parquet`, or `.jsonl` for JSON Lines, compressed or not; None for a file that is text itself.

    >>> kind_of(Path("a.parquet")), kind_of(Path("a.ndjson.gz")), kind_of(Path("a.json"))
    ('.parquet', '.jsonl', None)
    """
    if path.suffix.lower() == ".parquet":
        return ".parquet"
    inner = Path(path.stem) if path.suffix.lower() in READERS else path
    return ".jsonl" if inner.suffix.lower() in JSON_LINES else None


def texts_of(path: Path, column: str, show: Show, between: Between = WHOLE) -> Iterator[str]:
    """The texts in a column of a file with rows. Raises Refusal, naming the row, for what is none.

    With `between`, only those whose line, or group of rows, begins between these bytes of a file that is not
    compressed: neighbouring bounds have all texts, each once.
    """
    yield from (parquet_texts if kind_of(path) == ".parquet" else json_texts)(path, column, show, between)


def parquet_texts(path: Path, column: str, show: Show, between: Between) -> Iterator[str]:
    parquet = extra("pyarrow.parquet", path.name)
    size, done = path.stat().st_size, 0
    try:
        with path.open("rb") as opened, parquet.ParquetFile(opened, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            if column not in names:
                counted = {"word", "count"} <= set(names)
                raise no_column(path, column, names, otherwise=", or data=words to train on its counts" * counted)
            for before, batch in batches_of(file, column, between):
                done, values = before, batch.column(0)
                for place in range(len(values)):
                    try:
                        value = values[place].as_py()
                    except UnicodeDecodeError as error:
                        raise refused(
                            path, f"row {done + place + 1}", f"column {column!r} is no UTF-8 ({error})"
                        ) from error
                    yield text_in(value, path, f"row {done + place + 1}", column)
                done += len(values)
                show(size * done // file.metadata.num_rows)
    except (OSError, ValueError, NotImplementedError) as error:
        raise Damaged(
            f"{path} is damaged or no Parquet file, after row {done}: {' '.join(str(error).split())}; get or make it "
            "again"
        ) from error


def batches_of(file: Any, column: str, between: Between) -> Iterator[tuple[int, Any]]:
    """Some rows at a time, with the number of rows before them."""
    first, last = between
    before = 0
    for group in range(file.metadata.num_row_groups):
        facts = file.metadata.row_group(group)
        if first <= place_of(facts) and (last is None or place_of(facts) < last):
            done = before
            for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=[column]):
                yield done, batch
                done += len(batch)
        before += facts.num_rows


def place_of(group: Any) -> int:
    """The byte at which the first column of a group of rows begins."""
    chunk = group.column(0)
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)


def json_texts(path: Path, column: str, show: Show, between: Between) -> Iterator[str]:
    first, last = between
    offset = max(0, first - 1)
    lines = lines_of(blocks_of(path, show, start=offset))
    if first:
        offset += len(next(lines)) + 1  # what has begun before is of others
    for number, line in enumerate(lines, 1):
        if last is not None and offset >= last:
            return
        place = f"line {number} from byte {first} on" if first else f"line {number}"
        if line.strip():
            row = json_in(line, offset, path, place)
            if not isinstance(row, dict):
                raise refused(path, place, f"{kind_in_json(row)}, not an object with a column {column!r}")
            if column not in row:
                raise no_column(
                    path, column, list(row), f" in {place}", ", or data.path=- < FILE for all of it as text"
                )
            yield text_in(row[column], path, place, column)
        offset += len(line) + 1


def json_in(line: bytes, offset: int, path: Path, place: str) -> Any:
    """The value in a line that begins at byte `offset` of the file."""
    mark = line.startswith(codecs.BOM_UTF8) and not offset
    try:
        text = line.decode("utf-8-sig" if mark else "utf-8")
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise refused(path, place, f"invalid UTF-8 at byte {offset + error.start + 3 * mark}") from error
    except json.JSONDecodeError as error:
        byte = offset + len(text[: error.pos].encode()) + 3 * mark
        raise refused(path, place, f"no JSON at byte {byte} ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise refused(path, place, f"no JSON that can be read ({error})") from error


def lines_of(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines in blocks, without their ends; nothing else than a newline ends one.

    >>> list(lines_of(iter([b"a", b"b\\n\\nc", b"\\r\\n"])))
    [b'ab', b'', b'c\\r', b'']
    """
    begun: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n")
        begun.append(first)
        for other in others:
            yield b"".join(begun)
            begun = [other]
    yield b"".join(begun)


def text_in(value: Any, path: Path, place: str, column: str) -> str:
    if not isinstance(value, str):
        raise refused(path, place, f"column {column!r} holds {kind_in_json(value)}, not text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise refused(path, place, f"column {column!r} holds half a surrogate pair, which no UTF-8 has") from error
    return value


def kind_in_json(value: Any) -> str:
    """
    >>> kind_in_json(None), kind_in_json([]), kind_in_json(1.5)
    ('null', 'a list', 'float')
    """
    return {type(None): "null", list: "a list", dict: "an object", str: "a text"}.get(type(value), type(value).__name__)


def refused(path: Path, place: str, why: str) -> Refusal:
    return Refusal(f"{path}, {place}: {why}; mend or leave out that row, or set data.column=NAME", UNMEASURED)


def no_column(path: Path, column: str, names: list[str], where: str = "", otherwise: str = "") -> Refusal:
    there = ", ".join(names) or "none"
    return Refusal(
        f"{path} has no column {column!r}{where}, there are: {there}; set data.column=NAME{otherwise}", UNMEASURED
    )
