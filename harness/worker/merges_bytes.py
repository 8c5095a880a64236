"""Lists of merges as bytes: how a measured process hands them over, and what their digest is taken of."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from itertools import chain

from variants.contract import Merge


def merges_to_bytes(merges: Sequence[Merge]) -> bytes:
    """The merges in order, each as left length, left, right length, right; lengths are uint64, little-endian.

    >>> merges_to_bytes([(b"a", b"bc")]).hex()
    '01000000000000006102000000000000006263'
    """
    return tokens_to_bytes(list(chain.from_iterable(merges)))


def tokens_to_bytes(tokens: Sequence[bytes]) -> bytes:
    """Each token behind its length. It is done while a trainer's clock runs, so that it should cost next to nothing."""
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
