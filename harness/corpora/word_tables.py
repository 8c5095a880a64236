"""Tables of words that are counted already, generated or from files, as word stores of the cache.

Files are Parquet, JSON Lines and CSV with the columns `word` (text, in Parquet also binary) and
`count` (whole numbers), and what `python -m harness.corpora counts --table` writes. A count of 0 drops a
word, and the counts of repeated words are added.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec

from harness.common import cache
from harness.common.cards import DataCard, Generated, YourWords
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.files import CorpusFile, difference, digest_of
from harness.corpora.formats import form_of, unpacking
from harness.corpora.local import members_of, name_of, path_text
from harness.corpora.rows import NoColumn, RowReading
from harness.worker import exchange
from variants.contract import WordCounts

Item = tuple[bytes, int]
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

    items: Iterator[Item]
    state: list[Any]
    if card.path is not None:
        paths = members_of(card.path)
        if isinstance(card.source, YourWords):
            name = name_of(path_text(card.path, paths))
        state = list(map(digest_of, paths))
        items = chain.from_iterable(map(items_in, paths))
    elif isinstance(card.source, Generated):
        from harness.corpora import random_text  # late: NumPy is slow to import

        state = [random_text.VERSION, msgspec.to_builtins(card.source)]
        items = random_text.generated(card.source)
    else:
        raise Refusal(f"data={name} needs data.path=FILE, a table of words with their counts")

    def make(folder: Path) -> dict[str, Any]:
        try:
            return exchange.write_words(folder, WordCounts.from_items(items))
        except ValueError as error:
            raise Refusal(f"{name}: {error}", UNMEASURED) from error

    entry = cache.kept("counts", cache.key_of(exchange.FORMAT, *state), make)
    word_counts, manifest = exchange.read_words(entry.path)
    actual = {**manifest, "bytes": len(word_counts.data)}
    if wrong := difference(card.facts, actual):
        raise Refusal(
            f"data={name}: its table {wrong}; use another table with data=words", UNMEASURED
        )
    return CorpusFile(name, entry.path, actual["bytes"], manifest["sha256"], table=True)


# Files


def items_in(path: Path) -> Iterator[Item]:
    """The words of a file with their counts. Raises Refusal if it is not a table of words."""
    form, place = form_of(path, "word"), "its columns"
    with path.open("rb") as file, unpacking(path, file, form.packed) as content:
        if form.rows is None:
            yield from line_items(path, content)
            return
        try:
            for position, row in form.rows(path, content, RowReading("word", others=["count"])):
                place = position
                word, count = row["word"], str(row["count"])
                whole = int(count.removesuffix(".0"))  # of SQL, whose sums may be floating
                yield word if isinstance(word, bytes) else word.encode(), whole
        except (AttributeError, KeyError, TypeError, ValueError, NoColumn) as error:
            raise not_a_table(path, place) from error


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
