"""A table of words that holds what ordinary text rarely has: a trainer that mistakes any of it makes
other merges.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from harness.common.cards import RareWords

SYMBOLS = 42
"""Of the light words, which have three: 74,088 of them are distinct."""
LONG = 300  # bytes
LARGE_COUNTS = (2**31, 2**32, 2**33, 2**54)
ALIKE = 8  # words with the same count, so that the tie-break decides among all bytes
SCRIPTS = (
    "ß", "Ǆ", "Ωμ", "Жи", "של", "سل", "न", "ภ", "ქ", "한", "が", "カ", "中文", "漢", "𐍈", "😀", "e\u0301", "ﬁ",
    "\u0131", "\u00a0", "\u200b", "09", "٣", "\t\n ", "UP", "a\0",
)  # fmt: skip
LONG_TEXTS = ("xy", "中文", "07", "Жи ")

Word = tuple[bytes, int]


def rare_words(
    source: RareWords,
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint64]]]:
    """Yield at most so many heavy words far apart among light ones; the first and the last are heavy.

    Each heavy word decides a merge, and the light ones together decide those that follow.
    """
    random, words = np.random.RandomState(source.seed), source.words
    decisive = heavy_words(random)[: source.heavy]
    numbers = random.permutation(SYMBOLS**3)[: words - len(decisive)]
    digits = np.stack([numbers // SYMBOLS**2, numbers // SYMBOLS % SYMBOLS, numbers % SYMBOLS], 1)
    light = (digits + ord("0")).astype(np.uint8)

    table: list[Word] = [(word.tobytes(), 1) for word in light]
    for place, word in zip(np.linspace(0, words - 1, len(decisive)), decisive, strict=True):
        table.insert(int(place), word)

    lengths = np.array([len(word) for word, _ in table], dtype=np.int64)
    counts = np.array([count for _, count in table], dtype=np.uint64)
    data = np.frombuffer(b"".join(word for word, _ in table), dtype=np.uint8)
    yield data, lengths, counts


def heavy_words(random: np.random.RandomState) -> list[Word]:
    """Return the heavy words with their counts, in random order."""
    bytes_of_two = random.permutation(256).astype(np.uint8).reshape(-1, 2)
    heavy = [
        (word.tobytes(), 1_000_000 + 1_000 * (number // ALIKE))
        for number, word in enumerate(bytes_of_two)
    ]
    for number, text in enumerate(SCRIPTS):
        heavy.append((text.encode(), 100_000 + 1_000 * number))
    for number, text in enumerate(LONG_TEXTS):
        heavy.append(((text.encode() * LONG)[:LONG], 100 + number))
    for number, count in enumerate(LARGE_COUNTS):
        heavy.append((bytes([0xF5, number]), count + 1))
        heavy.append((bytes([0xF6, number]), count))  # it would be first if both were rounded

    return [heavy[index] for index in random.permutation(len(heavy))]
