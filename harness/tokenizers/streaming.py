"""Encoding a text that comes in parts: cut where that changes no word, so memory stays bounded."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

# bytes that a thread encodes at a time; a document without a safe cut is encoded whole
WINDOW = 1 << 20


class Streaming:
    """What every encoder can do that encodes a whole text and knows where one can be cut."""

    type_code: Literal["H", "I"]
    encode: Callable[[str | bytes], list[int]]
    last_cut: Callable[[bytes], int]

    def encode_array(self, text: str | bytes, threads: int = 1) -> array[int]:  # noqa: ARG002 - of others
        """The ids of a text as numbers of two or four bytes."""
        return array(self.type_code, self.encode(text))

    def together(
        self,
        texts: Sequence[str | bytes],
        threads: int = 1,  # noqa: ARG002 - of others
    ) -> tuple[array[int], list[int]]:
        """The ids of texts in one array, and where each text ends."""
        ids, ends = array(self.type_code), []
        for text in texts:
            ids.extend(self.encode(text))
            ends.append(len(ids))
        return ids, ends

    def streamed(self, parts: Iterable[bytes], threads: int = 1) -> Iterator[memoryview]:
        """The ids of one text that comes in parts, as they come."""
        for stretch in self.stretches(parts, threads * WINDOW):
            yield memoryview(self.encode_array(stretch, threads))

    def stretches(self, parts: Iterable[bytes], window: int) -> Iterator[bytes]:
        """The parts joined, and cut where that changes no word. What later text could change waits
        for it.
        """
        waiting, size, enough = list[bytes](), 0, window
        for part in chain(windows(parts, window), [None]):
            if part is not None:
                waiting.append(part)
                size += len(part)
                if size < enough:
                    continue

            text = b"".join(waiting)
            cut = len(text) if part is None else self.last_cut(text)
            yield text[:cut]
            waiting, size = [text[cut:]], len(text) - cut
            # If nothing could be cut, looking after each part would cost the square of the length.
            enough = max(window, 2 * size)


def windows(parts: Iterable[bytes], window: int) -> Iterator[bytes]:
    """The parts, cut so that each fits into a window."""
    for part in parts:
        for start in range(0, len(part), window):
            yield part[start : start + window]
