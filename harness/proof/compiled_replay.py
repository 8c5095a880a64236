"""The compiled replay, which costs about what training costs; native/replay.hpp holds its structures
and its proof.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from harness.proof import true_counts
from variants.contract import LARGEST_COUNT, Merge, TieBreak, Veto, WordCounts
from variants.vetoes import limits_of

try:
    from harness.proof.native import _replay
except ImportError:
    _replay = None  # type: ignore[assignment]


def judge_merges(
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
    guess_scale: float = 1.0,
    wide_symbols: bool = False,
    wide_positions: bool = False,
) -> tuple[int, bool]:
    """Return how many merges are right, of `num_merges` requested ones, and whether all are and
    more had to be made.

    Inherited merges and the veto are passed as to a trainer, if `can_judge` accepts them.
    `on_progress` is called up to ten times a second with the number of merges made. The last three
    settings change sizes inside the replay and no result; tests try them. Raises
    ValueError for invalid word counts, and MemoryError.
    """
    claimed, stays = inherited_first(merges, inherited, inheriting)
    if len(claimed) < len(stays):  # the first merges are not those that had to be inherited
        return len(claimed), len(claimed) == len(merges)
    dropped = stays.count(False)
    retained, requested = len(stays) - dropped, max(num_merges, 0) + dropped

    claims = claimed[:requested]
    lefts, rights = token_ids(claims[: first_refused(claims, len(stays), veto)])
    right, too_few, _, _, _, met = _replay.judge(
        *columns_of(word_counts),
        lefts,
        rights,
        num_merges=min(requested, LARGEST_COUNT) if len(lefts) == len(claimed) else len(lefts),
        min_count=min(max(min_count, 1), LARGEST_COUNT),
        tie_break=list(TieBreak).index(tie_break),
        on_progress=on_progress,
        stays=bytes(stays),
        veto=limits_of(veto),
        guess_scale=guess_scale,
        wide_symbols=wide_symbols,
        wide_positions=wide_positions,
    )

    if inheriting == "met" and met != stays:
        different = next(index for index, stay in enumerate(stays) if met[index] != stay)
        right = sum(stays[:different])
        return right, right == len(merges)
    return max(right - dropped, retained), too_few


def tokens_left(word_counts: WordCounts, merges: Sequence[Merge]) -> int:
    """The number of tokens of the words after these merges; each word counts as many times as it
    occurs.

    Compiled if possible; otherwise, and for a list that makes a token twice, in Python.

    >>> tokens_left(WordCounts.from_items([(b"abc", 2)]), [(b"a", b"b")])
    4
    """
    if not can_judge(merges):
        return int(true_counts.TrueCounts(word_counts, inherited=merges).text.tokens)

    lefts, rights = token_ids(merges)
    _, _, _, _, merged, _ = _replay.judge(
        *columns_of(word_counts),
        lefts,
        rights,
        num_merges=len(lefts),
        min_count=1,
        tie_break=0,
        on_progress=lambda _: None,
        stays=bytes([True]) * len(lefts),  # inherited, so made whatever they count
    )

    ends = word_counts.offsets
    return (
        sum(count * (end - start) for count, start, end in zip(word_counts.counts, ends, ends[1:]))
        - merged
    )


def columns_of(word_counts: WordCounts) -> tuple[memoryview, memoryview, memoryview]:
    return word_counts.data, word_counts.offsets, word_counts.counts


def first_refused(claimed: Sequence[Merge], inherited: int, veto: Veto | None) -> int:
    """The index of the first claim behind the inherited ones that the veto refuses: what comes
    before it is judged as if it was not there. Without one, the number of claims.
    """
    if veto is not None:
        for index in range(inherited, len(claimed)):
            if veto(*claimed[index]):
                return index
    return len(claimed)


def token_ids(merges: Sequence[Merge]) -> tuple[array[int], array[int]]:
    """The ids of left and right tokens, up to the first merge of an unknown token or one that makes
    a token again.

    No right merge does either, so such a one ends what can be right.
    """
    lefts, rights = array("I"), array("I")
    ids = {bytes((byte,)): byte for byte in range(256)}
    for left, right in merges:
        if left not in ids or right not in ids or left + right in ids:
            break
        lefts.append(ids[left])
        rights.append(ids[right])
        ids[left + right] = len(ids)
    return lefts, rights


def can_judge(inherited: Sequence[Merge] = (), veto: Veto | None = None) -> bool:
    """Whether the compiled replay is there and can judge merges that continue these, under this veto.

    It cannot under a veto of the user's own, nor after a list that no trainer can have learned.
    """
    if _replay is None or limits_of(veto).own is not None:
        return False
    return len(token_ids(inherited)[0]) == len(inherited)


def inherited_first(
    merges: Sequence[Merge], inherited: Sequence[Merge], inheriting: str
) -> tuple[Sequence[Merge], list[bool]]:
    """All inherited merges before the new ones, and which of those stay if the merges are right.

    Fewer merges than inherited ones mean that so many of the first are right, and the next is not.
    """
    if inheriting == "kept":
        wrong = next(
            (index for index, (one, other) in enumerate(zip(merges, inherited)) if one != other),
            None,
        )
        return merges[:wrong] if wrong is not None else merges, [True] * len(inherited)
    stays, at = [], 0
    for merge in inherited:
        stays.append(at < len(merges) and merges[at] == merge)
        at += stays[-1]
    return [*inherited, *merges[at:]], stays
