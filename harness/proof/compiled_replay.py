"""Lists of merges judged by the compiled replay, which costs about what training costs.

native/replay.hpp has its structures and its proof.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.values import first_difference
from variants.contract import LARGEST_COUNT, Merge, TieBreak, Veto, WordCounts
from variants.vetoes import limits_of


class Judged(NamedTuple):
    """How many merges are `right`, and whether all are and more had to be made.

    `counts` are those of the right merges that were not inherited, each at its moment. `sharing` is
    how many pairs had that count then, this one included.
    """

    right: int
    too_few: bool
    counts: Sequence[int] = ()
    sharing: Sequence[int] = ()


class Moment(NamedTuple):
    """What is true after some merges: the count of the pair asked for, and the pairs of the highest
    count by the ids of their tokens (none if no pair is left).
    """

    pair_count: int
    highest: int
    best: Sequence[tuple[int, int]]
    spellings: Sequence[bytes]
    merged: int

    def choice(self, tie_break: TieBreak) -> Merge:
        """The best pair that this tie-break takes."""

        def key(pair: tuple[int, int]) -> list[Any]:
            return [tie_break.key(token, self.spellings[token]) for token in pair]

        left, right = max(self.best, key=key)
        return self.spellings[left], self.spellings[right]


def judge_merges(
    word_counts: WordCounts,
    merges: Sequence[Merge],
    num_merges: int,
    *,
    tie_break: TieBreak | None,
    min_count: int = 1,
    on_progress: Callable[[int], object] | None = None,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
    **settings: Any,
) -> Judged:
    """Judge a list of merges, of `num_merges` requested ones; without a tie-break each choice among
    equals is right.

    Inherited merges and the veto are passed as to a trainer. `on_progress` is called up to ten times
    a second with the number of merges made. The `settings` are those of the compiled part:
    `all_pairs`, which `sharing` needs, and sizes that change no result, for tests. Raises
    ValueError for invalid word counts, and MemoryError.
    """
    claimed, stays = inherited_first(merges, inherited, inheriting)
    dropped = stays.count(False)
    requested = max(num_merges, 0) + dropped
    lefts, rights = token_ids(claimed[:requested], stays)
    if len(lefts) < len(stays):  # the first merges are not those to be inherited
        right = len(lefts)
        return Judged(right, right == len(merges) < num_merges)

    judged = _judge(
        word_counts,
        lefts,
        rights,
        num_merges=min(requested, LARGEST_COUNT) if len(lefts) == len(claimed) else len(lefts),
        min_count=min(max(min_count, 1), LARGEST_COUNT),
        tie_break=None if tie_break is None else list(TieBreak).index(tie_break),
        on_progress=on_progress,
        stays=bytes(stays),
        veto=limits_of(veto),
        **settings,
    )

    if inheriting == "met" and judged.met != stays:
        different = next(index for index, stay in enumerate(stays) if judged.met[index] != stay)
        right = sum(stays[:different])
        return Judged(right, right == len(merges) < num_merges)
    new = slice(len(stays), None)
    right = max(judged.right - dropped, len(stays) - dropped)
    return Judged(right, judged.too_few, judged.counts[new], judged.sharing[new])


def moment_after(
    word_counts: WordCounts,
    merges: Sequence[Merge],
    pair: Merge | None = None,
    *,
    inherited: int = 0,
    veto: Veto | None = None,
) -> Moment | None:
    """What is true after these merges, made as they are; None if one joins a token that no merge
    before it makes, or makes a token again.

    Pairs that the veto refuses, or that spell a token of the `inherited` first merges, are left out.
    """
    lefts, rights = token_ids(merges)
    if len(lefts) < len(merges):
        return None

    spellings = [bytes((byte,)) for byte in range(256)]
    spellings += [left + right for left, right in merges]
    ids = {spelling: number for number, spelling in enumerate(spellings)}
    known = [pair] if pair is not None and ids.keys() >= {*pair} else []
    judged = _judge(
        word_counts,
        lefts,
        rights,
        num_merges=len(lefts),
        stays=bytes(index < inherited for index in range(len(lefts))),
        veto=limits_of(veto),
        all_pairs=True,
        asked=[(ids[left], ids[right]) for left, right in known],
    )
    pair_count = sum(judged.asked)
    return Moment(pair_count, judged.highest, judged.best, spellings, judged.merged)


def tokens_left(word_counts: WordCounts, merges: Sequence[Merge]) -> int | None:
    """The number of tokens of the words after these merges, or None; each word counts as many times
    as it occurs.

    >>> tokens_left(WordCounts.from_items([(b"abc", 2)]), [(b"a", b"b")])
    4
    """
    moment = moment_after(word_counts, merges)
    if moment is None:
        return None
    size: int = sum(len(word) * count for word, count in word_counts.items())
    return size - moment.merged


def _judge(word_counts: WordCounts, *claims: array[int], **question: Any) -> Any:
    """Call the compiled part. Raises Refusal if it is not built."""
    try:
        from harness.proof.native import _replay
    except ImportError as error:
        advice = "python -m pip install -e . builds it"
        raise Refusal(f"the compiled replay is not built; {advice}", UNMEASURED) from error

    columns = word_counts.data, word_counts.offsets, word_counts.counts
    return _replay.judge(*columns, *claims, **question)


def token_ids(merges: Sequence[Merge], stays: Sequence[bool] = ()) -> tuple[array[int], array[int]]:
    """The ids of left and right tokens, up to the first merge of an unknown token or one that makes
    a token again. Of the first merges, those that do not stay make none.

    No right merge does either, so such a one ends what can be right.
    """
    lefts, rights = array("I"), array("I")
    ids = {bytes((byte,)): byte for byte in range(256)}
    for index, (left, right) in enumerate(merges):
        if left not in ids or right not in ids:
            break
        new_id = 256 + index
        is_made = index >= len(stays) or stays[index]
        if is_made and ids.setdefault(left + right, new_id) != new_id:
            break
        lefts.append(ids[left])
        rights.append(ids[right])
    return lefts, rights


def inherited_first(
    merges: Sequence[Merge], inherited: Sequence[Merge], inheriting: str
) -> tuple[Sequence[Merge], list[bool]]:
    """All inherited merges before the new ones, and which of those stay if the merges are right.

    Fewer merges than inherited ones mean that so many of the first are right, and the next is not.
    """
    if inheriting == "kept":
        equal = first_difference(merges, inherited)
        return merges[: None if equal == len(inherited) else equal], [True] * len(inherited)

    claims: list[Merge] = []
    stays: list[bool] = []
    made, at = {bytes((byte,)) for byte in range(256)}, 0
    for merge in inherited:
        token = b"".join(merge)
        if token in made or not made.issuperset(merge):
            continue  # no text meets it
        stay = at < len(merges) and merges[at] == merge
        claims.append(merge)
        stays.append(stay)
        if stay:
            made.add(token)
            at += 1
    return [*claims, *merges[at:]], stays
