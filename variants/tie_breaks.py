"""Which of several equally frequent pairs is merged first."""

from __future__ import annotations

import enum
from typing import Any


def _gpt2_characters() -> tuple[str, ...]:
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return tuple(chr(byte if byte in shown else next(others)) for byte in range(256))


GPT2_CHARACTERS = _gpt2_characters()
"""GPT-2's visible character for each byte: 188 stand for themselves, the other 68 are U+0100 and
up, in byte order.
"""

# Hugging Face numbers bytes in the order of these characters.
_HUGGINGFACE_ID = {
    byte: place for place, byte in enumerate(sorted(range(256), key=GPT2_CHARACTERS.__getitem__))
}

_INVERTED = bytes(255 - byte for byte in range(256))


def inverted(token: bytes) -> str:
    """A key that sorts the other way round than the bytes do, a prefix after the longer string.

    The terminator, above every inverted byte, is what puts the prefix last; a bare translation
    would not. It turns Python's min-heap into a max-heap over bytes without private functions (see
    heap.py).

    >>> sorted([b"a", b"ab", b"b"], key=inverted)
    [b'b', b'ab', b'a']
    """
    return token.translate(_INVERTED).decode("latin-1") + "\u0100"


class TieBreak(enum.Enum):
    """Which of several equally frequent pairs is merged first. The first is the definition, the
    others are peers'.
    """

    GREATEST_BYTES = "greatest_bytes"
    """The greatest (left bytes, right bytes): CS336's definition and ours."""
    SMALLEST_BYTES = "smallest_bytes"
    """The smallest (left bytes, right bytes): gigatoken's assembled bytes."""
    HUGGINGFACE = "huggingface"
    """The smallest (left id, right id), bytes numbered in the order of their GPT-2 characters."""
    RAW_BYTES = "raw_bytes"
    """The smallest (left id, right id), bytes are their own ids: rustbpe."""

    def key(self, token_id: int, token: bytes) -> Any:
        """A value for each token such that among equal counts the greatest (left key, right key) is
        merged.

        >>> [TieBreak("raw_bytes").key(97, b"a"), TieBreak("greatest_bytes").key(97, b"a")]
        [-97, b'a']
        """
        if self is TieBreak.GREATEST_BYTES:
            return token
        if self is TieBreak.SMALLEST_BYTES:
            return inverted(token)
        return -self._number(token_id)

    def reversed_key(self, token_id: int, token: bytes) -> Any:
        """The same order upside down, for a min-heap: the smallest (left key, right key) is
        merged.
        """
        if self is TieBreak.GREATEST_BYTES:
            return inverted(token)
        if self is TieBreak.SMALLEST_BYTES:
            return token
        return self._number(token_id)

    def _number(self, token_id: int) -> int:
        return _HUGGINGFACE_ID.get(token_id, token_id) if self is TieBreak.HUGGINGFACE else token_id


GREATEST_BYTES = TieBreak.GREATEST_BYTES
