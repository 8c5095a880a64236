"""Claimed merges held against the true counts by a compiled replay, for about what training them costs.

It answers less than true_counts.py does, which judges every merge under every tie-break: only which is the first wrong
one under one of them. Its structures and its proof are in native/replay.hpp; no trainer is run, and none of
their code.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from variants.contract import LARGEST_COUNT, Merge, TieBreak, Unavailable, WordCounts

try:
    from harness.proof.native import _replay
except ImportError:
    _replay = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Held:
    """How many merges are `right` before the first wrong one, of how many; `too_few`: all, and more had to be made."""

    right: int
    number: int
    too_few: bool

    @property
    def proved(self) -> bool:
        """Whether these are the merges that the definition gives."""
        return self.right == self.number and not self.too_few


def hold(
    word_counts: WordCounts,
    merges: Sequence[Merge],
    num_merges: int,
    *,
    tie_break: TieBreak,
    min_count: int = 1,
    on_progress: Callable[[int], object] = lambda _: None,
    **settings: Any,
) -> Held:
    """Hold merges against the true counts, of `num_merges` that were asked for.

    `on_progress` hears up to ten times a second how many were made. Raises Unavailable where the compiled module was
    not built, ValueError for word counts that are none, MemoryError.

    >>> words = WordCounts.from_items([(b"ab", 2), (b"cd", 2), (b"ef", 1)])
    >>> hold(words, [(b"c", b"d"), (b"a", b"b")], 2, tie_break=TieBreak.GREATEST_BYTES).proved
    True
    >>> hold(words, [(b"c", b"d"), (b"e", b"f")], 2, tie_break=TieBreak.GREATEST_BYTES).right
    1
    """
    if _replay is None:
        raise Unavailable("the compiled replay is not built; python -m pip install -e . builds it")
    lefts, rights = array("I"), array("I")
    ids = {bytes((byte,)): byte for byte in range(256)}
    for left, right in merges[: max(num_merges, 0)]:
        # No right merge joins a token that is not there or makes one that is: such a one ends what can be right.
        if left not in ids or right not in ids or left + right in ids:
            break
        lefts.append(ids[left])
        rights.append(ids[right])
        ids[left + right] = len(ids)
    known = len(lefts) == len(merges)
    right_merges, too_few, _, _ = _replay.judge(
        word_counts.data,
        word_counts.offsets,
        word_counts.counts,
        lefts,
        rights,
        num_merges=min(max(num_merges, 0), LARGEST_COUNT) if known else len(lefts),
        min_count=min(max(min_count, 1), LARGEST_COUNT),
        tie_break=list(TieBreak).index(tie_break),
        on_progress=on_progress,
        **settings,
    )
    return Held(right_merges, len(merges), too_few)
