"""Tables of words that are counted already, generated or from files, as word stores of the cache.

Files are Parquet, JSON Lines and CSV with the columns `word` (text, in Parquet also binary) and
`count` (whole numbers), and what `python -m harness.corpora counts --table` writes. A count of 0 drops a
word, and the counts of repeated words are added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec

from harness.common import cache
from harness.common.cards import DataCard, Generated, YourWords
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.units import one_line
from harness.corpora import rows
from harness.corpora.cards import difference
from harness.corpora.files import CorpusFile, digest_of
from harness.corpora.formats import form_of, unpacking
from harness.corpora.local import members_of, name_of
from harness.corpora.rows import RowReading, bad_row
from harness.worker import exchange
from variants.contract import WordCounts

Item = tuple[bytes, int]
COLUMNS = ["word", "count"]
NEEDED = (
    "it needs Parquet, JSON Lines or CSV with the columns word (binary or text) and count (whole numbers), "
    "or what python -m harness.corpora counts --table writes"
)


def word_table(card: DataCard) -> CorpusFile:
    """The table of a card as a word store. Raises Refusal if it is unreadable or differs from the
    card.
    """
    name = card.name
    for slicing in ("bytes", "skip", "documents"):
        if getattr(card, slicing) is not None:
            raise Refusal(
                f"data={name} is a table of words, not a text that data.{slicing} can cut; omit it"
            )

    if card.path is not None:
        paths = members_of(card.path)
        key = cache.key_of(exchange.FORMAT, *map(digest_of, paths))
        entry = cache.kept(
            "counts", key, lambda part: exchange.write_words(part, from_files(paths))
        )
        name = name_of(card.path, paths) if isinstance(card.source, YourWords) else name
    elif isinstance(card.source, Generated):
        entry = generated(card)
    else:
        raise Refusal(f"data={name} needs data.path=FILE, a table of words with their counts")

    word_counts, manifest = exchange.read_words(entry.path)
    actual = {**manifest, "bytes": len(word_counts.data)}
    if wrong := difference(card.facts, actual):
        raise Refusal(
            f"data={name}: its table {wrong}; use another table with data=words", UNMEASURED
        )
    return CorpusFile(name, entry.path, actual["bytes"], manifest["sha256"], table=True)


def generated(card: DataCard) -> cache.Entry:
    """The generated table of a card, made if missing."""
    from harness.corpora import random_text  # late: NumPy is slow to import

    def make(folder: Path) -> dict[str, Any]:
        return exchange.write_words(folder, random_text.words_of(card))

    key = cache.key_of(exchange.FORMAT, random_text.VERSION, msgspec.to_builtins(card.source))
    return cache.kept("counts", key, make)


def from_files(paths: Sequence[Path]) -> WordCounts:
    """The tables in files as one. Raises Refusal if one is not a table of words."""
    try:
        return WordCounts.from_items(chain.from_iterable(map(items_in, paths)))
    except ValueError as error:
        raise Refusal(f"{', '.join(map(str, paths))}: {error}", UNMEASURED) from error


# Files


def items_in(path: Path) -> Iterator[Item]:
    """The words of a file with their counts. Raises Refusal if it is not a table of words."""
    form = form_of(path, "word")
    with path.open("rb") as file, unpacking(path, file, form.packed) as content:
        if form.rows is rows.parquet_rows:
            yield from parquet_items(path, content)
        elif form.rows not in (None, rows.arrow_rows):
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
    """The lines of `counts --table`: a count, and the word in hexadecimal digits.

    >>> import io
    >>> list(line_items(Path("w"), io.BytesIO(b"5 6c6f77\\n2 6572\\n")))
    [(b'low', 5), (b'er', 2)]
    """
    for number, line in enumerate(file, 1):
        match = re.fullmatch(rb"(\d+) ((?:[0-9a-f]{2})+)\r?\n?", line)
        if match is None:
            raise not_a_table(path, f"line {number}")
        yield bytes.fromhex(match[2].decode()), int(match[1])


def not_a_table(path: Path, why: str) -> Refusal:
    return Refusal(f"{path} is not a table of words ({why}); {NEEDED}", UNMEASURED)
