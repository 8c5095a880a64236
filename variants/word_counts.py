"""Distinct words with their counts, in columns: what counters make and trainers read."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

LARGEST_COUNT = 2**63 - 1


class WordCounts(Mapping[bytes, int]):
    """Distinct words with their counts, in columns: the layout of Arrow's large_binary.

    `data` holds the words' bytes end to end (uint8), `offsets` one more int64 than there are words,
    so that word i is `data[offsets[i]:offsets[i + 1]]`, and `counts` one uint64 a word. All three
    are memoryviews, over memory or over a mapped file, and compiled trainers take them without a
    copy. To Python it reads as a mapping from bytes to int.

    >>> counts = WordCounts.from_items([(b"low", 5), (b"er", 2), (b"low", 1)])
    >>> dict(counts)
    {b'low': 6, b'er': 2}
    >>> bytes(counts.data), list(counts.offsets), list(counts.counts)
    (b'lower', [0, 3, 5], [6, 2])
    """

    __slots__ = ("_index", "counts", "data", "offsets")

    def __init__(self, data: memoryview, offsets: memoryview, counts: memoryview) -> None:
        formats = data.format, offsets.format, counts.format
        if formats != ("B", "q", "Q"):
            raise ValueError(
                f"word counts need columns of formats B, q, Q, not {', '.join(formats)}"
            )
        if len(offsets) != len(counts) + 1:
            raise ValueError(
                f"{len(counts)} counts need {len(counts) + 1} offsets, not {len(offsets)}"
            )
        self.data = data
        self.offsets = offsets
        self.counts = counts
        self._index: dict[bytes, int] | None = None

    @classmethod
    def from_items(cls, items: Iterable[tuple[bytes, int]]) -> WordCounts:
        """Build the columns; a count of 0 is dropped, repeated words are summed, first occurrence
        gives the order.

        Raises ValueError for a negative count, an empty word, or a table whose pair counts could
        pass 2**63 - 1.
        """
        summed: dict[bytes, int] = {}
        for word, count in items:
            if count < 0:
                raise ValueError(
                    f"word {word!r} has the negative count {count}; counts are 1 or more"
                )
            if not word:
                raise ValueError("a word of no bytes cannot be counted; leave it out")
            if count:
                summed[word] = summed.get(word, 0) + count
        # The largest any pair's count can become, and with it every sum a trainer makes.
        adjacent = sum(count * (len(word) - 1) for word, count in summed.items())
        if adjacent > LARGEST_COUNT or any(count > LARGEST_COUNT for count in summed.values()):
            raise ValueError(
                f"the words hold {adjacent} adjacent positions by weight, more than 2**63 - 1; divide the counts"
            )
        return cls.from_columns(summed.keys(), summed.values())

    @classmethod
    def from_columns(cls, words: Iterable[bytes], counts: Iterable[int]) -> WordCounts:
        """Build from distinct words and their counts in the same order, unchecked: for counters,
        which know.
        """
        listed = list(words)
        offsets = array("q", [0])
        position = 0
        for word in listed:
            position += len(word)
            offsets.append(position)
        columns = memoryview(b"".join(listed)), memoryview(offsets), memoryview(array("Q", counts))
        return cls(columns[0], columns[1].toreadonly(), columns[2].toreadonly())

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[bytes]:
        data, start = self.data, 0
        for stop in self.offsets[1:]:
            yield bytes(data[start:stop])
            start = stop

    def __getitem__(self, word: bytes) -> int:
        if self._index is None:
            self._index = {word: index for index, word in enumerate(self)}
        return int(self.counts[self._index[word]])

    def values(self) -> Any:
        """The counts in the words' order, without making the words."""
        return self.counts.tolist()

    def items(self) -> Any:
        """(word, count) in order, without a look-up per word."""
        return zip(self, self.counts.tolist())

    def __repr__(self) -> str:
        return f"<WordCounts: {len(self)} words, {len(self.data)} bytes>"


if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("word counts are kept as little-endian arrays; this machine is big-endian")
