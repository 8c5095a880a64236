"""Lists of merges as bytes: what their digest is taken of, and how a measured process hands them over."""

from __future__ import annotations

import hashlib
import marshal
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

from variants.contract import Merge

MARSHALLED = 2
"""The last version of marshal's format in which equal merges are equal bytes, whichever objects they share."""
HEAD = struct.Struct("<cI")
"""What stands before each thing in that format: what it is, and of how many parts or bytes."""
LIST, TUPLE, BYTES = b"[", b"(", b"s"


def merges_to_bytes(merges: Sequence[Merge]) -> bytes:
    """The merges in order, each as left length, left, right length, right; lengths are uint64, little-endian.

    >>> merges_to_bytes([(b"a", b"bc")]).hex()
    '01000000000000006102000000000000006263'
    """
    tokens = list(chain.from_iterable(merges))
    lengths = [len(token) for token in tokens]
    packed = {length: struct.pack("<Q", length) for length in set(lengths)}
    return b"".join(chain.from_iterable(zip(map(packed.__getitem__, lengths), tokens)))


def merges_from_bytes(content: bytes, most: int | None = None) -> list[Merge]:
    """Read what `merges_to_bytes` wrote. Raises ValueError if it is cut short, or has more than `most` merges."""
    tokens: list[bytes] = []
    position = 0
    while position < len(content):
        if most is not None and len(tokens) >= 2 * most:
            raise ValueError(f"more than {most} merges")
        if position + 8 > len(content):
            raise ValueError("merges end in the middle of a length")
        (length,) = struct.unpack_from("<Q", content, position)
        token = content[position + 8 : position + 8 + length]
        if len(token) != length:
            raise ValueError("merges end in the middle of a token")
        tokens.append(token)
        position += 8 + length
    if len(tokens) % 2:
        raise ValueError("merges end between the left and the right token of a merge")
    return list(zip(tokens[::2], tokens[1::2]))


def packed(merges: Any) -> bytes:
    """A list of merges as it is at this moment. It is made while a trainer's clock runs, so it costs next to nothing.

    Raises ValueError for some of what is no list of merges; nothing that is made of the rest can still change.
    """
    return marshal.dumps(merges, MARSHALLED)


def unpacked(content: bytes, most: int | None = None) -> list[Merge]:
    """Read what `packed` made of merges: here, not by marshal, for whoever wrote it need not be believed.

    Raises ValueError if it is something else, is cut short, or has more than `most` merges.

    >>> unpacked(packed([(b"a", b"bc")]))
    [(b'a', b'bc')]
    """
    position = 0

    def parts_of(*kinds: bytes) -> int:
        nonlocal position
        kind, parts = HEAD.unpack_from(content, position)
        if kind not in kinds:
            raise ValueError("something else than merges")
        position += HEAD.size
        return int(parts)

    def token() -> bytes:
        nonlocal position
        length = parts_of(BYTES)
        found = content[position : position + length]
        if len(found) != length:
            raise ValueError("merges end in the middle of a token")
        position += length
        return found

    try:
        number = parts_of(LIST)
        if most is not None and number > most:
            raise ValueError(f"more than {most} merges")
        merges = []
        for _ in range(number):
            if parts_of(TUPLE, LIST) != 2:
                raise ValueError("a merge that is no pair")
            merges.append((token(), token()))
    except struct.error:
        raise ValueError("merges end too early") from None
    if position != len(content):
        raise ValueError("something behind the merges")
    return merges


def merges_sha256(merges: Sequence[Merge]) -> str:
    """The digest that two equal lists of merges share."""
    return hashlib.sha256(merges_to_bytes(merges)).hexdigest()


def in_hex(merge: Sequence[bytes], most: int | None = None) -> list[str]:
    """A merge as records tell it, of each token at most so many bytes.

    >>> in_hex((b"a", b"b\\n")), in_hex((b"a", b"b\\n"), 1)
    (['61', '620a'], ['61', '62'])
    """
    return [token[:most].hex() for token in merge]


MOST_BYTES_IN_A_RECORD = 4096
"""What a record keeps of a token that is wrong: one may be as long as memory."""
