"""Tables of words in files: Parquet, JSON Lines and CSV with the columns `word` (text, in Parquet
also binary) and `count` (whole numbers), and what `python -m harness.corpora counts` writes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.units import one_line
from harness.corpora import rows
from harness.corpora.formats import form_of, unpacking
from harness.corpora.rows import RowReading, bad_row

Item = tuple[bytes, int]
COLUMNS = ["word", "count"]
NEEDED = (
    "it needs Parquet, JSON Lines or CSV with the columns word (binary or text) and count (whole numbers), "
    "or what python -m harness.corpora counts writes"
)


def items_in(path: Path) -> Iterator[Item]:
    """The words of a file with their counts. Raises Refusal if it is not a table of words."""
    form = form_of(path, "word")
    with path.open("rb") as file, unpacking(path, file, form.packed) as content:
        if form.rows is rows.parquet_rows:
            yield from parquet_items(path, content)
        elif form.rows in (rows.json_rows, rows.array_rows, rows.csv_rows):
            yield from row_items(path, form.rows(path, content, RowReading("word")))
        else:
            yield from line_items(path, content)


def parquet_items(path: Path, file: IO[bytes]) -> Iterator[Item]:
    pa, parquet = (extra(name, "a table in Parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        with parquet.ParquetFile(file) as table:
            for batch in table.iter_batches(1 << 16, columns=COLUMNS):
                words = batch.column("word").cast(pa.large_binary())
                counts = batch.column("count").cast(pa.int64())
                if words.null_count or counts.null_count:
                    why = "has a word or count that is NULL; remove its row"
                    raise Refusal(f"{path} {why}", UNMEASURED)

                yield from zip(words.to_pylist(), counts.to_pylist(), strict=True)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise not_a_table(path, one_line(str(error))) from error


def row_items(path: Path, found: Iterator[rows.Row]) -> Iterator[Item]:
    for position, row in found:
        try:
            item = row["word"].encode(), int(str(row["count"]))
        except (AttributeError, KeyError, ValueError) as error:
            raise bad_row(path, position, "not a word with a whole count") from error
        yield item


def line_items(path: Path, file: IO[bytes]) -> Iterator[Item]:
    """The lines of `counts --text` and `--table`: a count, and the word as Python or in hexadecimal
    digits.

    >>> import io
    >>> list(line_items(Path("w"), io.BytesIO(b"5\\tb'low'\\n2 6572\\n")))
    [(b'low', 5), (b'er', 2)]
    """
    for number, line in enumerate(file, 1):
        match = re.fullmatch(rb"(\d+)(?:\t(b['\"].*)| ((?:[0-9a-f]{2})+))\r?\n?", line)
        if match is None:
            raise not_a_table(path, f"line {number}")
        yield word_of(path, number, match), int(match[1])


def word_of(path: Path, number: int, match: re.Match[bytes]) -> bytes:
    if match[3]:
        return bytes.fromhex(match[3].decode())
    try:
        word: Any = ast.literal_eval(match[2].decode())
    except (ValueError, SyntaxError) as error:
        raise not_a_table(path, f"line {number}") from error
    return bytes(word)


def not_a_table(path: Path, why: str) -> Refusal:
    return Refusal(f"{path} is not a table of words ({why}); {NEEDED}", UNMEASURED)
