"""Counted words as Parquet, for DuckDB, Polars, pandas: the columns as they lie on disk, without a copy in between."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.progress import bar
from variants.contract import WordCounts

WORDS_IN_A_ROW_GROUP = 1 << 20


def write_parquet(path: Path, word_counts: WordCounts, digest: str) -> None:
    """Write the columns `word` and `count`, whole or not at all."""
    pa, parquet = extra("pyarrow", "Parquet"), extra("pyarrow.parquet", "Parquet")
    number = len(word_counts)
    offsets, data, counts = map(pa.py_buffer, (word_counts.offsets, word_counts.data, word_counts.counts))
    columns = [
        pa.Array.from_buffers(pa.large_binary(), number, [None, offsets, data]),
        pa.Array.from_buffers(pa.uint64(), number, [None, counts]),
    ]
    schema = pa.schema(
        [pa.field("word", pa.large_binary(), nullable=False), pa.field("count", pa.uint64(), nullable=False)],
        metadata={"sha256": digest},
    )
    table = pa.table(columns, schema)
    # Hardly a word comes twice, so a dictionary of them would only cost memory.
    form = {"compression": "zstd", "use_dictionary": False}
    with (
        placed(path) as temporary,
        bar(f"writing {path.name}", number, "words") as show,
        parquet.ParquetWriter(temporary, schema, **form) as writer,
    ):
        for start in range(0, max(number, 1), WORDS_IN_A_ROW_GROUP):
            writer.write_table(table.slice(start, WORDS_IN_A_ROW_GROUP))
            show(min(start + WORDS_IN_A_ROW_GROUP, number))


def without_rare(word_counts: WordCounts, least: int) -> WordCounts:
    """Return the table without the words that occur fewer than `least` times.

    >>> dict(without_rare(WordCounts.from_items([(b"low", 5), (b"er", 1), (b"new", 2)]), 2))
    {b'low': 5, b'new': 2}
    """
    import numpy as np  # slow to import, and only this needs it

    data, offsets, counts = map(np.asarray, (word_counts.data, word_counts.offsets, word_counts.counts))
    frequent, lengths = counts >= least, np.diff(offsets)
    ends = np.concatenate([[0], np.cumsum(lengths[frequent])]).astype(np.int64)
    content = data[: offsets[-1]][np.repeat(frequent, lengths)]
    columns = [np.ascontiguousarray(column).data for column in (content, ends, counts[frequent])]
    return WordCounts(columns[0], columns[1].cast("B").cast("q"), columns[2].cast("B").cast("Q"))


@contextlib.contextmanager
def placed(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to, renamed to it in the end; nothing is left if that does not come about."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)  # pyarrow's own text names its call
        raise Refusal(f"cannot write {path} ({why}); choose another place with --parquet FILE", UNMEASURED) from error
    finally:
        temporary.unlink(missing_ok=True)
