"""Seeds: tokens that exist before training, as merges that it inherits."""

from __future__ import annotations

from collections.abc import Iterable

from variants import heap
from variants.contract import GREATEST_BYTES, Merge, TieBreak, WordCounts


def seeds(spellings: Iterable[bytes], tie_break: TieBreak = GREATEST_BYTES) -> list[Merge]:
    """The merges, to be inherited, by which each of these spellings encodes to one token.

    They are those of plain training on the spellings alone, to the end. Raises ValueError for a
    seed of zero bytes.

    >>> seeds([b"mov", b"movzx"])
    [(b'o', b'v'), (b'm', b'ov'), (b'z', b'x'), (b'mov', b'zx')]
    """
    counts = WordCounts.from_items((spelling, 1) for spelling in dict.fromkeys(spellings))
    return heap.train(counts, len(counts.data), tie_break=tie_break)
