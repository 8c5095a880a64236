"""Counted words as Parquet, for DuckDB, Polars, pandas: the columns as they lie on disk, without a copy in between."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness import word_store
from harness.corpora.extras import extra
from harness.counted_words import counted_words
from harness.errors import OK, UNMEASURED, Refusal
from harness.progress import bar
from variants.contract import WordCounts

ABOUT = "the words of a data set with their counts as Parquet; counted first if they are not kept"
WORDS_IN_A_ROW_GROUP = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a data set, or file with --set data.path=FILE")
    parser.add_argument("--parquet", metavar="FILE", type=Path, required=True, help="where to write")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="as for python -m harness: pattern=line, special_tokens=[], counting=serial, data.bytes=1MB",
    )


def export(arguments: argparse.Namespace) -> int:
    """Write the file and say what is in it."""
    extra("pyarrow", "Parquet")
    words = counted_words([f"data={arguments.name}", *arguments.set])
    word_counts, manifest = word_store.read(words)
    write_parquet(arguments.parquet, word_counts, manifest["sha256"])
    print(  # noqa: T201
        f"{arguments.parquet}: {manifest['words']:,} words, {manifest['pre_tokens']:,} pre-tokens, "
        f"sha256 of the counts {manifest['sha256']}"
    )
    return OK


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


@contextlib.contextmanager
def placed(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to, renamed to it in the end; nothing is left if that does not come about."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)  # pyarrow's own text names its call
        raise Refusal(f"cannot write {path} ({why}); say another place with --parquet FILE", UNMEASURED) from error
    finally:
        temporary.unlink(missing_ok=True)
