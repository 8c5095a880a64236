"""Words that are counted already: tables from a generator or a file as input, and counted words as Parquet.

A file is Parquet, with the columns `word` (binary or text) and `count` (whole numbers), or it is plain text with a line
for each word: its count, a blank, its bytes in hexadecimal digits:

    2 6c6f77
    1 6c6f776572

A count of 0 drops the word, and the counts of repeated words are added. A table is kept as a word store, as counted
words are, under its digest, so that trainers get both in the same way.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.progress import bar
from harness.corpora import generators
from harness.corpora.cards import Card, check_generated, check_generator_room, generated_place, is_generated
from harness.corpora.files import CorpusFile, check_readable, digest_of
from harness.corpora.generators import WordBlock
from harness.corpora.language import Integers, Unsigned, word_hashes
from harness.worker import word_store
from variants.contract import LARGEST_COUNT, WordCounts

WORDS_AT_ONCE = 1 << 16
WORDS_IN_A_ROW_GROUP = 1 << 20
PARQUET = b"PAR1"
LINE = re.compile(rb"(-?[0-9]+) ((?:[0-9a-fA-F]{2})*)\r?\n?")


def table_of(card: Card) -> CorpusFile:
    """The table of a card as a word store. Raises Refusal if it is unreadable or differs from the card."""
    name = card["name"]
    for slicing in ("bytes", "skip", "documents"):
        if card[slicing] is not None:
            raise Refusal(f"data={name} is a table of words, not a text that data.{slicing} can cut; omit it")
    if card["path"] is not None:
        path = Path(card["path"])
        check_readable(path)
        folder = kept_table(files.cache_folder("tables") / table_key(path), lambda place: from_file(path, place))
        if card["source"]["kind"] == "words":
            name = path.name
    elif is_generated(card):
        folder = kept_table(generated_place(card), lambda place: from_generator(card, place))
    else:
        raise Refusal(f"data={name} needs data.path=FILE, a table of words with their counts")
    word_counts, manifest = word_store.read(folder)
    actual = {**manifest, "bytes": len(word_counts.data)}
    for fact, expected in card["facts"].items():
        if actual[fact] != expected:
            raise Refusal(
                f"data={name}: its table has {fact} {actual[fact]}, its card says {expected}; use another "
                "table with data=words",
                UNMEASURED,
            )
    return CorpusFile(name, folder, len(word_counts.data), manifest["sha256"], table=True)


def kept_table(place: Path, make: Callable[[Path], None]) -> Path:
    """The word store at `place`, made if it is missing or damaged."""
    if not word_store.is_whole(place):
        with files.placing(place) as temporary:
            make(temporary)
    return place


def table_key(path: Path) -> str:
    return hashlib.sha256(f"{word_store.FORMAT} {digest_of(path)}".encode()).hexdigest()


def from_generator(card: Card, folder: Path) -> None:
    check_generator_room(generated_place(card), card)
    with Columns(folder) as columns, bar(f"making {card['name']}", *generators.size_of(card["source"])) as show:
        for block in generators.made(card["source"]):
            columns.append(block)
            show(columns.words)
    check_positions(card["name"], folder)
    check_generated(card, word_store.finish(folder)["sha256"])


def from_file(path: Path, folder: Path) -> None:
    """Write the table in a file as a word store. Raises Refusal, with the place, if it is not a table of words."""
    with path.open("rb") as file:
        read = from_parquet if file.read(len(PARQUET)) == PARQUET else from_text
    with Columns(folder) as columns:
        columns.append(merged(str(path), list(read(path))))
    check_positions(str(path), folder)
    word_store.finish(folder)


def merged(name: str, blocks: Sequence[WordBlock]) -> WordBlock:
    """All words with a count above 0, each once, with the sum of its counts."""
    if not blocks:
        return WordBlock(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.uint64))
    data = np.concatenate([block.data for block in blocks])
    lengths = np.concatenate([block.lengths for block in blocks])
    counts = np.concatenate([block.counts for block in blocks])
    hashes = np.concatenate([word_hashes(block.data, block.lengths) for block in blocks])
    stops = np.cumsum(lengths)
    first: dict[bytes, int] = {}
    sums: dict[int, int] = {}
    for place in repeated(hashes).tolist():
        if not counts[place]:  # a word is where its first count above 0 is
            continue
        word = data[stops[place] - lengths[place] : stops[place]].tobytes()
        place_of_sum = first.setdefault(word, place)
        sums[place_of_sum] = sums.get(place_of_sum, 0) + int(counts[place])
        counts[place] = 0
    check_sum(name, max(sums.values(), default=0))
    counts[list(sums)] = list(sums.values())
    kept = counts > 0
    return WordBlock(data[np.repeat(kept, lengths)], lengths[kept], counts[kept])


def repeated(hashes: Unsigned) -> Integers:
    """The indexes of all hashes that occur more than once."""
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    return np.unique(np.concatenate([order[same], order[same + 1]]))


def from_text(path: Path) -> Iterator[WordBlock]:
    """The words in lines of `COUNT HEXADECIMAL`."""
    number = 0
    with path.open("rb") as file:
        while lines := list(islice(file, WORDS_AT_ONCE)):
            words, counts = [], []
            for line in lines:
                number += 1
                place = f"{path}, line {number}"
                match = LINE.fullmatch(line)
                if match is None:
                    raise Refusal(
                        f"{place}: expected a count, a blank and a word in hexadecimal digits (2 6c6f77), or a "
                        "file in Parquet",
                        UNMEASURED,
                    )
                words.append(bytes.fromhex(match[2].decode()))
                counts.append(checked_count(place, int(match[1][:40])))
                if not words[-1]:
                    raise empty_word(place)
            lengths = np.array([len(word) for word in words], dtype=np.int64)
            yield WordBlock(np.frombuffer(b"".join(words), dtype=np.uint8), lengths, np.array(counts, dtype=np.uint64))


def from_parquet(path: Path) -> Iterator[WordBlock]:
    """The words in the columns `word` and `count` of a Parquet file."""
    pa, parquet = extra("pyarrow", "a table in Parquet"), extra("pyarrow.parquet", "a table in Parquet")
    try:
        with parquet.ParquetFile(path) as file:
            check_schema(path, file.schema_arrow, pa)
            done = 0
            for batch in file.iter_batches(WORDS_AT_ONCE, columns=["word", "count"]):
                yield block_of(f"{path}, word", done, batch.column("word"), batch.column("count"), pa)
                done += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise Refusal(f"cannot read {path} as Parquet ({error}); write it again", UNMEASURED) from error


def check_schema(path: Path, schema: Any, pa: Any) -> None:
    for name in ("word", "count"):
        if schema.names.count(name) != 1:
            raise Refusal(f"{path} needs one column {name!r}; it has: {', '.join(schema.names) or 'none'}", UNMEASURED)
    word, count = schema.field("word").type, schema.field("count").type
    texts = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string, pa.types.is_large_string)
    if not any(is_kind(word) for is_kind in texts):
        raise Refusal(f"{path}: the column 'word' is {word}; it must be binary or text", UNMEASURED)
    if not pa.types.is_integer(count):
        raise Refusal(f"{path}: the column 'count' is {count}; it must be whole numbers", UNMEASURED)


def block_of(place: str, done: int, words: Any, counts: Any, pa: Any) -> WordBlock:
    """A batch of Arrow's as a block; `done` words came before."""
    for name, column in (("word", words), ("count", counts)):
        if column.null_count:
            missing = done + column.is_null().to_numpy(zero_copy_only=False).argmax() + 1
            raise Refusal(f"{place} {missing}: {name} is NULL; remove the row or set a value", UNMEASURED)
    words = words.cast(pa.large_binary())
    bounds = np.frombuffer(words.buffers()[1], dtype=np.int64)[words.offset : words.offset + len(words) + 1]
    lengths = np.diff(bounds)
    if len(lengths) and not lengths.all():
        raise empty_word(f"{place} {done + lengths.argmin() + 1}")
    weights = counts.to_numpy(zero_copy_only=False)
    for extreme in (weights.argmin(), weights.argmax()) if len(weights) else ():
        checked_count(f"{place} {done + extreme + 1}", int(weights[extreme]))
    data = np.frombuffer(words.buffers()[2] or b"", dtype=np.uint8)[bounds[0] : bounds[-1]] if len(lengths) else b""
    return WordBlock(np.frombuffer(data, dtype=np.uint8), lengths, weights.astype(np.uint64))


def checked_count(place: str, count: int) -> int:
    if count < 0:
        raise Refusal(f"{place}: negative count {count}; counts must be 0 or more", UNMEASURED)
    if count > LARGEST_COUNT:
        raise Refusal(f"{place}: count {count} is more than 2**63 - 1; divide the counts", UNMEASURED)
    return count


def empty_word(place: str) -> Refusal:
    return Refusal(f"{place}: a word of no bytes cannot be counted; remove it", UNMEASURED)


# Writing a word store


class Columns(contextlib.ExitStack):
    """The columns of a word store being written into a new folder, without the manifest."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True)
        self.files = [self.enter_context((folder / column).open("wb")) for column, _ in word_store.COLUMNS]
        self.stop = 0
        self.words = 0
        self.files[1].write(np.zeros(1, dtype=np.int64).tobytes())

    def append(self, block: WordBlock) -> None:
        stops = self.stop + np.cumsum(block.lengths, dtype=np.int64)
        for file, column in zip(self.files, (block.data, stops, block.counts), strict=True):
            file.write(np.ascontiguousarray(column).data)
        self.stop = int(stops[-1]) if len(stops) else self.stop
        self.words += len(stops)

    def append_columns(self, folder: Path) -> None:
        """Add the words of other columns, in a folder; they are never in memory."""
        data, offsets, counts = (folder / column for column, _ in word_store.COLUMNS)
        for path, file in ((data, self.files[0]), (counts, self.files[2])):
            with path.open("rb") as column:
                shutil.copyfileobj(column, file, 1 << 22)
        with offsets.open("rb") as column:
            column.seek(8)  # the first is 0
            while block := column.read(8 * WORDS_AT_ONCE):
                self.files[1].write((np.frombuffer(block, dtype=np.int64) + self.stop).data)
        self.stop += data.stat().st_size
        self.words += counts.stat().st_size // 8


def check_positions(name: str, folder: Path) -> None:
    """Refuse a table in which a pair's count could exceed 64 bits."""
    check_sum(name, positions_in(folder))


def positions_in(folder: Path) -> int:
    """The adjacent positions of all words by weight."""
    offsets, counts = (
        np.asarray(word_store.map_column(folder / column, format, (folder / column).stat().st_size))
        for column, format in word_store.COLUMNS[1:]
    )
    total = 0
    for start in range(0, len(counts), WORDS_AT_ONCE):
        pairs = np.diff(offsets[start : start + WORDS_AT_ONCE + 1]) - 1
        total += sum(map(mul, counts[start : start + WORDS_AT_ONCE].tolist(), pairs.tolist()))
    return total


def check_sum(name: str, total: int) -> None:
    if total > LARGEST_COUNT:
        raise Refusal(
            f"{name}: its words hold {total} adjacent positions by weight, more than 2**63 - 1; divide the counts",
            UNMEASURED,
        )


# Counted words as Parquet


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
        files.whole_file(path, "choose another place with --parquet FILE", UNMEASURED) as temporary,
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
    data, offsets, counts = map(np.asarray, (word_counts.data, word_counts.offsets, word_counts.counts))
    frequent, lengths = counts >= least, np.diff(offsets)
    ends = np.concatenate([[0], np.cumsum(lengths[frequent])]).astype(np.int64)
    content = data[: offsets[-1]][np.repeat(frequent, lengths)]
    columns = [np.ascontiguousarray(column).data for column in (content, ends, counts[frequent])]
    return WordCounts(columns[0], columns[1].cast("B").cast("q"), columns[2].cast("B").cast("Q"))
