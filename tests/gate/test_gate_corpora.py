"""The words of the gate's card tell right trainers from those that mistake what is rare."""

import functools
import os
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable

import pytest

from harness.common.registry import definition_counter
from harness.gate.rule import read_gate_card
from harness.runs.plan import planned
from harness.worker.exchange import read_words
from variants.contract import Merge, WordCounts
from variants.heap import train

Items = list[tuple[bytes, int]]


@functools.cache
def words_of(corpus: str) -> tuple[Items, int]:
    """The words of a corpus of the usual card, and how many merges it asks for."""
    (cell,) = planned(read_gate_card("usual").corpora[corpus].overrides).cells
    reading = cell.reading
    if reading.file.table:
        words, _ = read_words(reading.folder)
    else:
        words = definition_counter()(reading.corpus)
    return list(words.items()), cell.num_merges


MISTAKEN_WORDS: dict[str, Callable[[bytes], bytes]] = {
    "a digit": lambda word: word.replace(b"0", b""),
    "a byte of Chinese": lambda word: word.replace(b"\xe4", b""),
    "a byte that no text has": lambda word: word.replace(b"\xc0", b""),
    "what is not text": lambda word: word.decode("utf-8", "ignore").encode(),
    "case": lambda word: os.fsencode(os.fsdecode(word).lower()),
    "a combining mark": lambda word: os.fsencode(unicodedata.normalize("NFC", os.fsdecode(word))),
    "a ligature": lambda word: os.fsencode(unicodedata.normalize("NFKC", os.fsdecode(word))),
    "white space": lambda word: word.strip(),
    "a zero byte": lambda word: word.partition(b"\0")[0],
    "more than 200 bytes": lambda word: word if len(word) <= 200 else b"",
    "more than 255 bytes": lambda word: word[:255],
}
MISTAKEN_COUNTS: dict[str, Callable[[int], int]] = {
    "more than 31 bits": lambda count: min(count, 2**31 - 1),
    "more than 32 bits": lambda count: count % 2**32,
    "more than a float holds": lambda count: int(struct.unpack("f", struct.pack("f", count))[0]),
    "more than a double holds": lambda count: int(float(count)),
}
MISTAKEN_TABLES: dict[str, Callable[[Items], Items]] = {
    "words after 65,536": lambda items: items[:65536],
    "the rarest words": lambda items: sorted(items, key=lambda item: -item[1])[:65536],
    "the last word": lambda items: items[:-1],
    "the first word": lambda items: items[1:],
}


@functools.cache
def merges_of(corpus: str, kind: str = "") -> list[Merge]:
    """The merges of a corpus whose words, counts or table are mistaken, or right without a kind."""
    items, number = words_of(corpus)
    words, counts = MISTAKEN_WORDS.get(kind, bytes), MISTAKEN_COUNTS.get(kind, int)
    table = MISTAKEN_TABLES.get(kind, list)
    mistaken = Counter[bytes]()
    for word, count in table(items):
        mistaken[words(word)] += counts(count)
    given = [(word, count) for word, count in mistaken.items() if word and count]
    return list(train(WordCounts.from_items(given), number))


@pytest.mark.parametrize(
    ("corpus", "kind"),
    [
        *(("rare", kind) for kind in (*MISTAKEN_WORDS, *MISTAKEN_COUNTS)),
        ("scripts", "a byte of Chinese"),
        ("scripts", "more than 200 bytes"),
        ("numbers", "a digit"),
        *(pytest.param("many_words", kind, marks=pytest.mark.slow) for kind in MISTAKEN_TABLES),
    ],
)
def test_mistake_about_words_or_counts_changes_the_merges(corpus: str, kind: str) -> None:
    assert merges_of(corpus, kind) != merges_of(corpus)


def test_rare_words_hold_every_byte() -> None:
    rare, _ = words_of("rare")
    assert set(b"".join(word for word, count in rare if count > 1)) == set(range(256))
