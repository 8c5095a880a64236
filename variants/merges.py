"""Merges as ids, spelled when they are looked at."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

Merge = tuple[bytes, bytes]
"""One learned merge: the left and the right token's bytes."""


class Merges(Sequence[Merge]):
    """Merges as pairs of token ids, spelled when they are looked at.

    A list of bytes can be far larger than what was learned: in one long word a token may grow to
    the end of the word, and the list spells every stage of it. `ids` holds the ids of all pairs in
    order, as uint32. A trainer may append.

    >>> merges = Merges(array("I", [97, 98, 256, 99]))
    >>> merges[1], len(merges), merges == [(b"a", b"b"), (b"ab", b"c")]
    ((b'ab', b'c'), 2, True)
    """

    __slots__ = ("_backwards", "_onwards", "_tokens", "ids")

    LONG = 256
    """Tokens of more bytes are not held one by one."""

    def __init__(self, ids: array[int] | None = None) -> None:
        self.ids = array("I") if ids is None else ids
        # By id, the bytes of a short token, or the place of a long one in one of two buffers; the
        # second holds bytes from the last to the first. Buffers only grow. So a token that grows at
        # one end is spelled once.
        self._tokens: list[Any] = [bytes((byte,)) for byte in range(256)]
        self._onwards, self._backwards = bytearray(), bytearray()

    def __len__(self) -> int:
        return len(self.ids) // 2

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        self._spell(place)
        return self._token(self.ids[2 * place]), self._token(self.ids[2 * place + 1])

    def __iter__(self) -> Iterator[Merge]:
        number = len(self)
        self._spell(number)
        halves = map(
            self._token if self._onwards or self._backwards else self._tokens.__getitem__,
            self.ids[: 2 * number],
        )
        return zip(halves, halves)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Merges) and self.ids == other.ids:
            return True
        if not isinstance(other, (Merges, list)):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return Merges, (self.ids,)

    def __repr__(self) -> str:
        return f"<Merges: {len(self)}>"

    def _token(self, token_id: int) -> bytes:
        return self._bytes(self._tokens[token_id])

    def _bytes(self, token: bytes | slice) -> bytes:
        if isinstance(token, bytes):
            return token
        return bytes((self._onwards if token.step > 0 else self._backwards)[token])

    def _spell(self, number: int) -> None:
        """Spell the tokens of the first `number` merges."""
        tokens, long = self._tokens, self.LONG
        halves = iter(self.ids[2 * (len(tokens) - 256) : 2 * number])
        for left_id, right_id in zip(halves, halves):
            left, right = tokens[left_id], tokens[right_id]
            if type(left) is bytes is type(right) and len(left) + len(right) <= long:
                tokens.append(left + right)
            else:
                tokens.append(self._joined(left, right))

    def _joined(self, left: Any, right: Any) -> slice:
        """The place of a long token. Only what is new is spelled if a half is at the end of its
        buffer.
        """
        onwards, backwards = self._onwards, self._backwards

        if type(left) is slice and left.step > 0 and left.stop == len(onwards):
            onwards += self._bytes(right)
            return slice(left.start, len(onwards), 1)
        if type(right) is slice and right.step < 0 and right.start == len(backwards) - 1:
            backwards += self._bytes(left)[::-1]
            return slice(len(backwards) - 1, right.stop, -1)

        left, right = self._bytes(left), self._bytes(right)
        if len(left) >= len(right):
            start = len(onwards)
            onwards += left + right
            return slice(start, len(onwards), 1)
        stop = len(backwards) - 1
        backwards += (left + right)[::-1]
        return slice(len(backwards) - 1, stop if stop >= 0 else None, -1)
