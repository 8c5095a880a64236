"""Lists of merges judged by the compiled replay, which costs about what training costs.

native/replay.hpp has its structures and its proof.
"""

from __future__ import annotations

import functools
import secrets
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.common.values import first_difference
from variants.contract import LARGEST_COUNT, Merge, Merges, TieBreak, Veto, WordCounts
from variants.vetoes import limits_of

PRIME = 2**61 - 1
BASE = secrets.randbelow(PRIME - 300) + 300
"""Of fingerprints: nobody knows it before, so nobody makes tokens that share one."""


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


@dataclass(frozen=True)
class Replay:
    """A list of merges, of `num_merges` requested ones, replayed on its words as often as needed.

    The rules are as the trainer got them. A replay raises ValueError for invalid word counts, what
    a veto of the user's own raises, MemoryError, and Refusal if the compiled part is not built.
    """

    words: WordCounts
    merges: Sequence[Merge]
    num_merges: int
    min_count: int = 1
    inherited: Sequence[Merge] = ()
    inheriting: str = "kept"
    veto: Veto | None = None
    name: str = "merges"

    @functools.cached_property
    def claims(self) -> tuple[Sequence[Merge], list[bool]]:
        return inherited_first(self.merges, self.inherited, self.inheriting)

    @property
    def staying(self) -> int:
        """How many of the first merges are inherited."""
        return sum(self.claims[1])

    def judged(self, tie_break: TieBreak | None, **settings: Any) -> Judged:
        """Judge the list under a tie-break; without one, each choice among equals is right.

        The `settings` are those of the compiled part: `all_pairs`, which `sharing` needs, and sizes
        that change no result, for tests.
        """
        claimed, stays = self.claims
        dropped = stays.count(False)
        requested = max(self.num_merges, 0) + dropped
        lefts, rights = token_ids(beginning(claimed, requested), stays)
        if len(lefts) < len(stays):  # the first merges are not those to be inherited
            return self._right(len(lefts))

        is_known = len(lefts) == len(claimed)
        with bar(f"replaying {self.name}", self.num_merges, "merges") as show:
            judged = self._answer(
                lefts,
                rights,
                num_merges=min(requested, LARGEST_COUNT) if is_known else len(lefts),
                min_count=min(max(self.min_count, 1), LARGEST_COUNT),
                tie_break=None if tie_break is None else list(TieBreak).index(tie_break),
                on_progress=show,
                stays=bytes(stays),
                **settings,
            )

        if self.inheriting == "met" and judged.met != stays:
            return self._right(sum(stays[: first_difference(judged.met, stays)]))
        new = slice(len(stays), None)
        right = max(judged.right, len(stays)) - dropped
        return Judged(right, judged.too_few, judged.counts[new], judged.sharing[new])

    def _right(self, right: int) -> Judged:
        """So many of the first merges are right, and the next is not the inherited one."""
        return Judged(right, right == len(self.merges) < self.num_merges)

    def is_right(self, judged: Judged) -> bool:
        return judged.right == len(self.merges) and not judged.too_few

    @functools.cached_property
    def up_to_ties(self) -> Judged:
        return self.judged(None, all_pairs=True)

    @functools.cached_property
    def reached(self) -> dict[TieBreak, int]:
        """How many merges are right under each tie-break."""
        return {tie_break: self.judged(tie_break).right for tie_break in TieBreak}

    @property
    def ties(self) -> int:
        """How many merges were choices among equals."""
        return sum(sharing > 1 for sharing in self.up_to_ties.sharing)

    def moment(self, number: int, pair: Merge | None = None) -> Moment | None:
        """What is true after so many merges, made as they are; None if one joins a token that no
        merge before it makes, or makes a token again.

        Pairs that the veto refuses, or that spell an inherited token, are left out.
        """
        merges, staying = self.merges[:number], self.staying
        lefts, rights = token_ids(merges)
        if len(lefts) < len(merges):
            return None

        spellings = [bytes((byte,)) for byte in range(256)]
        spellings += [left + right for left, right in merges]
        ids = {spelling: number for number, spelling in enumerate(spellings)}
        known = [pair] if pair is not None and ids.keys() >= {*pair} else []
        judged = self._answer(
            lefts,
            rights,
            num_merges=len(lefts),
            stays=bytes(index < staying for index in range(len(lefts))),
            all_pairs=True,
            asked=[(ids[left], ids[right]) for left, right in known],
        )
        pair_count = sum(judged.asked)
        return Moment(pair_count, judged.highest, judged.best, spellings, judged.merged)

    @functools.cached_property
    def end(self) -> Moment | None:
        """What is true after the last merge."""
        return self.moment(len(self.merges))

    def tokens_left(self) -> int | None:
        """The number of tokens of the words after the last merge, or None; each word counts as many
        times as it occurs.

        >>> Replay(WordCounts.from_items([(b"abc", 2)]), [(b"a", b"b")], 1).tokens_left()
        4
        """
        if self.end is None:
            return None
        size: int = sum(len(word) * count for word, count in self.words.items())
        return size - self.end.merged

    def _answer(self, *claims: array[int], **question: Any) -> Any:
        """Call the compiled part."""
        try:
            from harness.proof.native import _replay
        except ImportError as error:
            advice = "python -m pip install -e . builds it"
            raise Refusal(f"the compiled replay is not built; {advice}", UNMEASURED) from error

        columns = self.words.data, self.words.offsets, self.words.counts
        return _replay.judge(*columns, *claims, veto=limits_of(self.veto), **question)


def token_ids(merges: Sequence[Merge], stays: Sequence[bool] = ()) -> tuple[array[int], array[int]]:
    """The ids of left and right tokens, up to the first merge of an unknown token or one that makes
    a token again. Of the first merges, those that do not stay make none.

    No right merge does either, so such a one ends what can be right.
    """
    if isinstance(merges, Merges) and all(stays):
        return ids_made_once(merges)
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


def ids_made_once(merges: Merges) -> tuple[array[int], array[int]]:
    """The same of merges that are ids, without spelling them: a list of few may spell without end.

    Tokens of other lengths or other fingerprints (Karp and Rabin's) are other tokens.
    """
    ids = merges.ids
    lengths, powers = [1] * 256, [BASE] * 256
    fingerprints = list(range(1, 257))
    made = {(1, fingerprint): byte for byte, fingerprint in enumerate(fingerprints)}

    for number, (left, right) in enumerate(zip(ids[::2], ids[1::2], strict=True)):
        new_id = 256 + number
        if max(left, right) >= new_id:
            break

        length = lengths[left] + lengths[right]
        fingerprint = (fingerprints[left] * powers[right] + fingerprints[right]) % PRIME
        before = made.setdefault((length, fingerprint), new_id)
        if before != new_id and b"".join(merges[before - 256]) == b"".join(merges[number]):
            break

        lengths.append(length)
        fingerprints.append(fingerprint)
        powers.append(powers[left] * powers[right] % PRIME)
    else:
        number = len(merges)

    return ids[: 2 * number : 2], ids[1 : 2 * number : 2]


def beginning(merges: Sequence[Merge], number: int) -> Sequence[Merge]:
    """The first so many merges; those that are ids stay ids."""
    return Merges(merges.ids[: 2 * number]) if isinstance(merges, Merges) else merges[:number]


def inherited_first(
    merges: Sequence[Merge], inherited: Sequence[Merge], inheriting: str
) -> tuple[Sequence[Merge], list[bool]]:
    """All inherited merges before the new ones, and which of those stay if the merges are right.

    Fewer merges than inherited ones mean that so many of the first are right, and the next is not.

    >>> inherited_first([(b"\\xff", b"b")], [(b"a", b"a"), (b"\\xff", b"b")], "met")
    ([(b'a', b'a'), (b'\\xff', b'b')], [False, True])
    """
    if inheriting == "kept":
        equal = first_difference(beginning(merges, len(inherited)), inherited)
        right = len(merges) if equal == len(inherited) else equal
        return beginning(merges, right), [True] * len(inherited)

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
