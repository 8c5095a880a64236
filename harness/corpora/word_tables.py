"""Word tables as input: words that are counted already, from a generator or from a file of one's own.

A file is Parquet, with the columns `word` (binary or text) and `count` (whole numbers), or it is plain text with a line
for each word: its count, a blank, its bytes in hexadecimal digits:

    2 6c6f77
    1 6c6f776572

Either way a count of 0 drops the word and the counts of repeated words are summed. A table goes into a word store as
counted words do, under its digest, so that trainers get both alike.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.progress import bar
from harness.corpora import generated, generators
from harness.corpora.files import CorpusFile, check_readable, digest_of
from harness.corpora.generators import WordBlock
from harness.corpora.word_columns import WORDS_AT_ONCE, Columns, GivenTable, check_positions, summed
from harness.worker import word_store
from variants.contract import LARGEST_COUNT

Card = Mapping[str, Any]
PARQUET = b"PAR1"
LINE = re.compile(rb"(-?[0-9]+) ((?:[0-9a-fA-F]{2})*)\r?\n?")


def table_of(card: Card) -> CorpusFile:
    """The table of a card as a word store, found to be what the card says. Raises Refusal if it cannot be had."""
    name = card["name"]
    for slicing in ("bytes", "skip", "documents"):
        if card[slicing] is not None:
            raise Refusal(f"data={name} is a table of words, so there is no text for data.{slicing} to cut")
    if card["path"] is not None:
        path = Path(card["path"])
        check_readable(path)
        folder = kept_table(files.cache_folder("tables") / table_key(path), lambda place: from_file(path, place))
        if card["source"]["kind"] == generated.WORDS:
            name = path.name
    elif generated.is_generated(card):
        folder = kept_table(generated.place_of(card), lambda place: from_generator(card, place))
    else:
        raise Refusal(f"data={name} needs data.path=FILE, a table of words with their counts")
    word_counts, manifest = word_store.read(folder)
    found = {**manifest, "bytes": len(word_counts.data)}
    for fact, expected in card["facts"].items():
        if found[fact] != expected:
            raise Refusal(
                f"data={name}: its table has {fact} {found[fact]}, its card says {expected}; it is another table, "
                "use it as one of its own with data=words",
                UNMEASURED,
            )
    return CorpusFile(name, folder, len(word_counts.data), manifest["sha256"], table=True)


def kept_table(place: Path, make: Callable[[Path], None]) -> Path:
    """The word store at `place`, made if it is not there whole."""
    if not word_store.is_whole(place):
        with files.placing(place) as temporary:
            make(temporary)
    return place


def table_key(path: Path) -> str:
    return hashlib.sha256(f"{word_store.FORMAT} {digest_of(path)}".encode()).hexdigest()


def from_generator(card: Card, folder: Path) -> None:
    generated.check_room_at(generated.place_of(card), card)
    with Columns(folder) as columns, bar(f"making {card['name']}", *generators.size_of(card["source"])) as show:
        for block in generators.made(card["source"]):
            columns.append(block)
            show(columns.words)
    check_positions(card["name"], folder)
    generated.check(card, word_store.finish(folder)["sha256"])


def from_file(path: Path, folder: Path) -> None:
    """Bring the table in a file into a word store. Raises Refusal, with the place, for what is no table of words."""
    with path.open("rb") as file:
        read = from_parquet if file.read(len(PARQUET)) == PARQUET else from_text
    with Columns(folder.with_name("as-given")) as columns:
        table = GivenTable(str(path), columns)
        for block in read(path):
            table.append(block)
    written = summed(table, folder.with_name("summed"))
    check_positions(str(path), written)
    written.rename(folder)
    shutil.rmtree(folder.with_name("as-given"), ignore_errors=True)  # perhaps that was it
    word_store.finish(folder)


def from_text(path: Path) -> Iterator[WordBlock]:
    """The words in lines of `COUNT HEXADECIMAL`."""
    number = 0
    with path.open("rb") as file:
        while lines := list(islice(file, WORDS_AT_ONCE)):
            words, counts = [], []
            for line in lines:
                number += 1
                place = f"{path}, line {number}"
                found = LINE.fullmatch(line)
                if found is None:
                    raise Refusal(
                        f"{place}: it is no count, a blank and a word in hexadecimal digits (2 6c6f77), nor is the "
                        "file Parquet",
                        UNMEASURED,
                    )
                words.append(bytes.fromhex(found[2].decode()))
                counts.append(checked_count(place, int(found[1][:40])))
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
            raise Refusal(f"{place} {missing}: its {name} is NULL; leave it out or give it one", UNMEASURED)
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
        raise Refusal(f"{place}: it has the negative count {count}; counts are 1 or more", UNMEASURED)
    if count > LARGEST_COUNT:
        raise Refusal(f"{place}: it has the count {count}, more than 2**63 - 1; divide the counts", UNMEASURED)
    return count


def empty_word(place: str) -> Refusal:
    return Refusal(f"{place}: a word of no bytes cannot be counted; leave it out", UNMEASURED)
