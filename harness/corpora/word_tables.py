"""Words that are counted already: tables from a generator or from files as input, and counted words as Parquet.

A file is Parquet, with the columns `word` (binary or text) and `count` (whole numbers). A count of 0 drops the word,
and the counts of repeated words are added. A table is cached as a word store, as counted words are, under its digest,
so that trainers get both in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np

from harness.common import files
from harness.common.console import bar
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.units import one_line
from harness.corpora import generators
from harness.corpora.cards import Card, difference, is_generated
from harness.corpora.files import CorpusFile, check_readable, digest_of, entry
from harness.corpora.local import members_of, name_of
from harness.worker import exchange
from variants.contract import LARGEST_COUNT, WordCounts

WORDS_IN_A_ROW_GROUP = 1 << 20


def table_of(card: Card) -> CorpusFile:
    """The table of a card as a word store. Raises Refusal if it is unreadable or differs from the card."""
    name = card["name"]
    for slicing in ("bytes", "skip", "documents"):
        if card[slicing] is not None:
            raise Refusal(f"data={name} is a table of words, not a text that data.{slicing} can cut; omit it")
    if card["path"] is not None:
        paths = members_of(card["path"])
        for path in paths:
            check_readable(path)
        key = entry("counts", exchange.FORMAT, *map(digest_of, paths))
        folder = cached_table(key, lambda place: from_files(paths, place))
        name = name_of(card["path"], paths) if card["source"]["kind"] == "words" else name
    elif is_generated(card):
        folder = cached_table(generators.place_of(card, "counts"), lambda place: from_generator(card, place))
    else:
        raise Refusal(f"data={name} needs data.path=FILE, a table of words with their counts")
    word_counts, manifest = exchange.read_words(folder)
    actual = {**manifest, "bytes": len(word_counts.data)}
    if wrong := difference(card, actual):
        raise Refusal(f"data={name}: its table {wrong}; use another table with data=words", UNMEASURED)
    return CorpusFile(name, folder, actual["bytes"], manifest["sha256"], table=True)


def cached_table(place: Path, make: Callable[[Path], None]) -> Path:
    """The word store at `place`, made if it is missing or damaged."""
    if exchange.whole(place) is None:
        with files.placing(place) as temporary:
            make(temporary)
    return place


def from_generator(card: Card, folder: Path) -> None:
    """Write the table of a generator as a word store. Raises Refusal if the count of a pair could exceed 64 bits."""
    done, blocks = 0, []
    with bar(f"making {card['name']}", *generators.size_of(card["source"])) as show:
        for block in generators.made(card["source"]):
            blocks.append(block)
            show(done := done + len(block.counts))
    data, lengths, counts = (np.concatenate(column) for column in zip(*blocks, strict=True))
    total = sum(map(mul, counts.tolist(), (lengths - 1).tolist()))
    if total > LARGEST_COUNT:
        raise Refusal(
            f"{card['name']}: its words hold {total} adjacent positions by weight, more than 2**63 - 1; divide the "
            "counts",
            UNMEASURED,
        )
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    columns = data.data, offsets.data.cast("B").cast("q"), counts.data.cast("B").cast("Q")
    exchange.write_words(folder, WordCounts(*columns))


def from_files(paths: Sequence[Path], folder: Path) -> None:
    """Write the tables in files as one word store. Raises Refusal if one is not a table of words."""
    try:
        with bar("reading words with their counts", 0, "words") as show:
            word_counts = WordCounts.from_items(items_in(paths, show))
    except ValueError as error:
        raise Refusal(f"{', '.join(map(str, paths))}: {error}", UNMEASURED) from error
    exchange.write_words(folder, word_counts)


def items_in(paths: Sequence[Path], show: Callable[[int], None]) -> Iterator[tuple[bytes, int]]:
    """The words in the columns `word` and `count` of Parquet files."""
    pa, parquet = extra("pyarrow", "a table in Parquet"), extra("pyarrow.parquet", "a table in Parquet")
    done = 0
    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(1 << 16, columns=["word", "count"]):
                    words, counts = batch.column("word").cast(pa.large_binary()), batch.column("count").cast(pa.int64())
                    if words.null_count or counts.null_count:
                        raise Refusal(f"{path} has a word or count that is NULL; remove its row", UNMEASURED)
                    yield from zip(words.to_pylist(), counts.to_pylist(), strict=True)
                    show(done := done + len(words))
        except (pa.ArrowException, OSError, KeyError) as error:
            advice = "it needs Parquet with the columns word (binary or text) and count (whole numbers)"
            raise Refusal(f"{path} is not a table of words ({one_line(str(error))}); {advice}", UNMEASURED) from error


# Writing


def write_parquet(path: Path, word_counts: WordCounts, digest: str) -> None:
    """Write the columns `word` and `count`, whole or not at all."""
    pa, parquet = extra("pyarrow", "Parquet"), extra("pyarrow.parquet", "Parquet")
    columns: list[Any] = [word_counts.offsets, word_counts.data, word_counts.counts]
    offsets, data, counts = map(pa.py_buffer, columns)
    number = len(word_counts)
    words = pa.Array.from_buffers(pa.large_binary(), number, [None, offsets, data])
    schema = pa.schema(
        [pa.field("word", pa.large_binary(), nullable=False), pa.field("count", pa.uint64(), nullable=False)],
        metadata={"sha256": digest},
    )
    table = pa.table([words, pa.Array.from_buffers(pa.uint64(), number, [None, counts])], schema)
    with files.whole_file(path, "choose another place with --parquet FILE", UNMEASURED) as temporary:
        # Hardly a word comes twice, so a dictionary of them would only cost memory.
        parquet.write_table(table, temporary, WORDS_IN_A_ROW_GROUP, compression="zstd", use_dictionary=False)
