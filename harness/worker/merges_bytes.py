"""Lists of merges as bytes: what their digest is taken of, and how a measured process hands them over."""

from __future__ import annotations

import hashlib
import marshal
import struct
from array import array
from collections.abc import Iterator, Sequence
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
CUT_SHORT = "merges end in the middle of a token"


def merges_to_bytes(merges: Sequence[Merge]) -> bytes:
    """Return the merges in order, each as left length, left, right length, right; lengths are little-endian uint64.

    >>> merges_to_bytes([(b"a", b"bc")]).hex()
    '01000000000000006102000000000000006263'
    """
    return b"".join(in_blocks(merges))


def merges_sha256(merges: Sequence[Merge]) -> str:
    """Return the digest that two equal lists of merges share."""
    digest = hashlib.sha256()
    for block in in_blocks(merges):
        digest.update(block)
    return digest.hexdigest()


def in_blocks(merges: Sequence[Merge]) -> Iterator[bytes]:
    """Yield what `merges_to_bytes` joins, a few thousand merges at a time."""
    tokens = chain.from_iterable(merges)
    while block := list(islice(tokens, 8192)):
        lengths = [len(token) for token in block]
        packed = {length: LENGTH.pack(length) for length in set(lengths)}
        yield b"".join(chain.from_iterable(zip(map(packed.__getitem__, lengths), block)))


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
    try:
        return merges_of_ids(content[1:], most) if content[:1] == IDS else marshalled(content, most)
    except struct.error:
        raise ValueError("merges end too early") from None


def expect_at_most(most: int | None, number: int) -> None:
    if most is not None and number > most:
        raise ValueError(f"more than {most} merges")


def marshalled(content: bytes, most: int | None) -> list[Merge]:
    position = 0

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
            raise ValueError(CUT_SHORT)
        return content[position - length : position]

    merges = []
    number = next_value(LIST)
    expect_at_most(most, number)
    for _ in range(number):
        if next_value(TUPLE, LIST) != 2:
            raise ValueError("a merge that is not a pair")
        merges.append((token(), token()))
    if position != len(content):
        raise ValueError("something behind the merges")
    return merges


def merges_of_ids(content: bytes, most: int | None) -> Merges:
    """Return merges from their ids. Raises ValueError for a token that no merge makes before, or that is too long."""
    if len(content) % 8:
        raise ValueError("merges end between the left and the right token of a merge")
    ids = array("I", content)
    expect_at_most(most, len(ids) // 2)
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
