"""Lists of merges as bytes: what their digest is taken of, and how a measured process hands them over."""

from __future__ import annotations

import hashlib
import marshal
import struct
from array import array
from collections.abc import Sequence
from itertools import chain, islice
from typing import Any

from variants.contract import Merge, Merges

MARSHALLED = 2
"""The last version of marshal's format in which equal merges are equal bytes, whichever objects they share."""
HEAD = struct.Struct("<cI")
"""What precedes each value in that format: its kind, and its number of parts or bytes."""
LIST, TUPLE, BYTES = b"[", b"(", b"s"
IDS = b"I"
"""What precedes the ids of Merges, which are handed over as they are and spelled by the reader."""
LENGTH = struct.Struct("<Q")
LONGEST_TOKEN, MOST_SPELLED = 1 << 30, 1 << 36
"""The most bytes of one token of Merges, and of all together: a few ids can spell without end."""
MOST_BYTES_IN_A_RECORD = 4096
"""The most bytes of a wrong token in a record: one may be as long as memory."""


def merges_sha256(merges: Sequence[Merge]) -> str:
    """Return the digest of the merges in order: of each the length of left, left, the length of right, right.

    A length is a little-endian uint64.

    >>> content = bytes.fromhex("0100000000000000" "61" "0200000000000000" "6263")
    >>> merges_sha256([(b"a", b"bc")]) == hashlib.sha256(content).hexdigest()
    True
    """
    digest, tokens = hashlib.sha256(), chain.from_iterable(merges)
    while block := list(islice(tokens, 8192)):
        lengths = [len(token) for token in block]
        spelled = {length: LENGTH.pack(length) for length in set(lengths)}
        digest.update(b"".join(chain.from_iterable(zip(map(spelled.__getitem__, lengths), block))))
    return digest.hexdigest()


def packed(merges: Any) -> bytes:
    """Return a list of merges as it is at this moment, at next to no cost: a trainer's clock runs.

    Raises ValueError for some of what is not a list of merges; nothing that is made of the rest can still change.
    """
    if type(merges) is Merges and type(merges.ids) is array:
        return IDS + merges.ids.tobytes()
    return marshal.dumps(merges, MARSHALLED)


def unpacked(content: bytes, most: int | None = None) -> Sequence[Merge]:
    """Read what `packed` made of merges, but not by marshal: the writer is not trusted.

    Raises ValueError if it is something else, is cut short, or has more than `most` merges.

    >>> unpacked(packed([(b"a", b"bc")]))
    [(b'a', b'bc')]
    """
    number = (len(content) - 1) // 8
    try:
        if content[:1] != IDS:
            kind, number = HEAD.unpack_from(content)
            if kind != LIST:
                raise ValueError("something else than merges")
        if most is not None and number > most:
            raise ValueError(f"more than {most} merges")
        return merges_of_ids(content[1:]) if content[:1] == IDS else marshalled(content, number)
    except struct.error:
        raise ValueError("merges end too early") from None


def marshalled(content: bytes, number: int) -> list[Merge]:
    position = HEAD.size

    def next_value(*kinds: bytes) -> int:
        nonlocal position
        kind, size = HEAD.unpack_from(content, position)
        if kind not in kinds:
            raise ValueError("something else than merges")
        position += HEAD.size
        return int(size)

    def token() -> bytes:
        nonlocal position
        length = next_value(BYTES)
        position += length
        if position > len(content):
            raise ValueError("merges end in the middle of a token")
        return content[position - length : position]

    merges = []
    for _ in range(number):
        if next_value(TUPLE, LIST) != 2:
            raise ValueError("a merge that is not a pair")
        merges.append((token(), token()))
    if position != len(content):
        raise ValueError("something behind the merges")
    return merges


def merges_of_ids(content: bytes) -> Merges:
    """Return merges from their ids. Raises ValueError for a token that no merge makes before, or that is too long."""
    if len(content) % 8:
        raise ValueError("merges end between the left and the right token of a merge")
    ids = array("I", content)
    lengths, spelled = [1] * 256, 0
    for number, (left, right) in enumerate(zip(ids[::2], ids[1::2]), 1):
        if max(left, right) >= len(lengths):
            raise ValueError(f"merge {number} is of a token that no merge before it makes")
        lengths.append(lengths[left] + lengths[right])
        spelled += lengths[-1]
        if lengths[-1] > LONGEST_TOKEN or spelled > MOST_SPELLED:
            raise ValueError(f"merge {number} spells more than a text can hold")
    return Merges(ids)


def in_hex(merge: Sequence[bytes], most: int | None = None) -> list[str]:
    """Return a merge as records hold it, of each token at most so many bytes.

    >>> in_hex((b"a", b"b\\n")), in_hex((b"a", b"b\\n"), 1)
    (['61', '620a'], ['61', '62'])
    """
    return [token[:most].hex() for token in merge]
