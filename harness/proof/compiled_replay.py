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

from harness.proof import true_counts
from variants.contract import LARGEST_COUNT, Merge, TieBreak, Unavailable, Veto, WordCounts
from variants.vetoes import Longest, superbpe

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
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
    **settings: Any,
) -> Held:
    """Hold merges against the true counts, of `num_merges` that were asked for.

    What training went on from, and the veto it was under, are said as to a trainer; `knows` tells which can be judged.
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
    claimed, stays = inherited_first(merges, inherited, inheriting)
    dropped = len(stays) - sum(stays)
    kept = len(stays) - dropped
    if len(claimed) < len(stays):  # the first merges are not those that were to be inherited
        return Held(len(claimed), len(merges), too_few=len(claimed) == len(merges))
    lefts, rights = array("I"), array("I")
    ids = {bytes((byte,)): byte for byte in range(256)}
    for left, right in claimed[: max(num_merges, 0) + dropped]:
        # No right merge joins a token that is not there or makes one that is: such a one ends what can be right.
        if left not in ids or right not in ids or left + right in ids:
            break
        lefts.append(ids[left])
        rights.append(ids[right])
        ids[left + right] = len(ids)
    known = len(lefts) == len(claimed)
    kind, longest = compiled(veto)
    right_merges, too_few, _, _, _, met = _replay.judge(
        word_counts.data,
        word_counts.offsets,
        word_counts.counts,
        lefts,
        rights,
        num_merges=min(max(num_merges, 0) + dropped, LARGEST_COUNT) if known else len(lefts),
        min_count=min(max(min_count, 1), LARGEST_COUNT),
        tie_break=list(TieBreak).index(tie_break),
        on_progress=on_progress,
        stays=bytes(stays),
        veto=kind,
        longest=longest,
        **settings,
    )
    if inheriting == "met" and met != stays:
        kept = next(sum(stays[:place]) for place, stay in enumerate(stays) if met[place] != stay)
        return Held(kept, len(merges), too_few=kept == len(merges))
    return Held(max(right_merges - dropped, kept), len(merges), too_few)


def tokens_left(word_counts: WordCounts, merges: Sequence[Merge]) -> int:
    """How many tokens the words come to when the merges are made in their order; each word counts as it is weighted.

    Compiled where it can be; elsewhere, and for a list that makes a token twice, as true_counts.py has it.

    >>> tokens_left(WordCounts.from_items([(b"abc", 2)]), [(b"a", b"b")])
    4
    """
    if _replay is None or not knows(merges):
        return true_counts.tokens_left(word_counts, merges)
    ids = {bytes((byte,)): byte for byte in range(256)}
    lefts, rights = array("I"), array("I")
    for left, right in merges:
        lefts.append(ids[left])
        rights.append(ids[right])
        ids[left + right] = len(ids)
    _, _, _, _, merged, _ = _replay.judge(
        word_counts.data,
        word_counts.offsets,
        word_counts.counts,
        lefts,
        rights,
        num_merges=len(lefts),
        min_count=1,
        tie_break=0,
        on_progress=lambda _: None,
        stays=bytes([True]) * len(lefts),  # inherited, so made whatever they count
    )
    ends = word_counts.offsets
    return sum(count * (end - start) for count, start, end in zip(word_counts.counts, ends, ends[1:])) - merged


def compiled(veto: Veto | None) -> tuple[int, int]:
    """A veto as Vetoed in native/replay_job.hpp has it, and its length."""
    if veto is None or veto is superbpe:
        return int(veto is superbpe), 0
    if not isinstance(veto, Longest):
        raise ValueError(f"the compiled replay does not know the veto {veto}")
    return {"bytes": 2, "characters": 3}[veto.unit], min(veto.most, LARGEST_COUNT)


def knows(inherited: Sequence[Merge] = (), veto: Veto | None = None, **_: Any) -> bool:
    """Whether merges that went on from these, under this veto, can be held here.

    Not under a veto of one's own, nor after a list that spells a token twice or joins one that it has not made before,
    as none does that was learned.
    """
    tokens = {bytes((byte,)) for byte in range(256)}
    for left, right in inherited:
        if left not in tokens or right not in tokens or left + right in tokens:
            return False
        tokens.add(left + right)
    return veto is None or veto is superbpe or isinstance(veto, Longest)


def inherited_first(
    merges: Sequence[Merge], inherited: Sequence[Merge], inheriting: str
) -> tuple[Sequence[Merge], list[bool]]:
    """All that was to be inherited, before the merges that are new, and which of it stays if the merges are right.

    Fewer merges than were to be inherited say how many of the first are right, and that the next is not.
    """
    if not inherited:
        return merges, []
    if inheriting == "kept":
        wrong = next((at for at, (one, other) in enumerate(zip(merges, inherited)) if one != other), None)
        stays = [True] * len(inherited)
        return merges[:wrong] if wrong is not None else merges, stays
    stays, at = [], 0
    for merge in inherited:
        stays.append(at < len(merges) and merges[at] == merge)
        at += stays[-1]
    return [*inherited, *merges[at:]], stays
