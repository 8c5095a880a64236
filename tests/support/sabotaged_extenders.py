"""Trainers that go on from inherited merges wrongly, each in one way: the definition with one step replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sabotaged import count_without_overlap

from variants import extending
from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, Pair, TieBreak, Veto, WordCounts
from variants.extending import Refused, check_inherited
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair

Words = Sequence[Sequence[int]]
Inherit = Callable[..., None]


class ForgetsAfterTheFirst(Refused):
    """A pair is refused once; when it comes up again, nobody asks."""

    def __init__(self, vocabulary: Vocabulary, veto: Veto | None) -> None:
        super().__init__(vocabulary, veto)
        self.seen: set[Pair] = set()

    def taken_from(self, pair_counts: PairCounts) -> PairCounts:
        left = {pair: count for pair, count in pair_counts.items() if pair in self.seen or not self(pair)}
        self.seen.update(pair_counts)
        return left


class SpellsAnew(Refused):
    """A pair may spell an inherited token a second time."""

    def __init__(self, vocabulary: Vocabulary, veto: Veto | None) -> None:
        super().__init__(vocabulary, veto)
        self.spelled = set()


class RefusesNothing(Refused):
    def spelled_so(self, left: bytes, right: bytes) -> bool:
        return left + right in self.spelled


def keeps_dropped(inherited: Sequence[Merge], _: str, vocabulary: Vocabulary, *how: Any) -> None:
    """A merge whose halves are there is kept, whether it was met or not."""
    tokens = {bytes((byte,)) for byte in range(256)}
    possible = []
    for left, right in inherited:
        if {left, right} <= tokens and left + right not in tokens:
            possible.append((left, right))
            tokens.add(left + right)
    extending.inherit(possible, "kept", vocabulary, *how)


def drops_what_is_used_up(
    inherited: Sequence[Merge], inheriting: str, vocabulary: Vocabulary, standing: Any, merge: Any
) -> None:
    """Met means standing at its turn."""
    now = set(standing)

    def merge_now(pair: Pair, token: int) -> Iterable[Pair]:
        now.clear()
        now.update(merge(pair, token))
        return now

    for merged in inherited:
        ids = {token: number for number, token in enumerate(vocabulary.tokens)}
        pair = (ids.get(merged[0], -1), ids.get(merged[1], -1))
        if inheriting == "kept" or pair in now:
            merge_now(pair, vocabulary.add(pair))


def leaves_out_what_was_not_met(inherited: Sequence[Merge], _: str, vocabulary: Vocabulary, *how: Any) -> None:
    extending.inherit(inherited, "met", vocabulary, *how)


def makes_the_last_first(inherited: Sequence[Merge], inheriting: str, vocabulary: Vocabulary, *how: Any) -> None:
    """As far as that goes: those of bytes alone, in the wrong order, then the others."""
    of_bytes = [merge for merge in inherited if max(map(len, merge)) == 1]
    others = [merge for merge in inherited if max(map(len, merge)) > 1]
    extending.inherit([*of_bytes[::-1], *others], inheriting, vocabulary, *how)


def extending_with(
    refused: type[Refused] = Refused,
    inherit: Inherit = extending.inherit,
    count: Callable[[Words, Sequence[int], Meter], PairCounts] = count_pairs,
    vetoes_inherited: bool = False,
    threshold: float = 0.0,
) -> Callable[..., list[Merge]]:
    """The definition as an extender, with the steps that are given in place of its own.

    A `threshold` keeps the pairs whose count reaches that share of the greatest and never looks for the others again.
    """

    def train(
        word_counts: WordCounts,
        num_merges: int,
        meter: Meter = NULL_METER,
        *,
        tie_break: TieBreak = GREATEST_BYTES,
        min_count: int = 1,
        inherited: Sequence[Merge] = (),
        inheriting: str = "kept",
        veto: Veto | None = None,
    ) -> list[Merge]:
        check_inherited(inherited, inheriting, num_merges)
        learned = Vocabulary(tie_break.key)
        words, weights = [list(word) for word in word_counts], list(word_counts.values())
        if vetoes_inherited and veto is not None:
            inherited = [merge for merge in inherited if not veto(*merge)]

        def make(pair: Pair, token: int) -> Iterable[Pair]:
            words[:] = [merge_pair(word, pair, token) for word in words]
            return count_pairs(words, weights, meter)

        inherit(inherited, inheriting, learned, count_pairs(words, weights, meter), make)
        refusing = refused(learned, veto)
        counts = refusing.taken_from(count(words, weights, meter))
        lowest = max(min_count, threshold * max(counts.values(), default=0))
        while counts and len(learned.merges) < num_merges:
            pair = most_frequent_pair(counts, learned.keys, meter)
            if counts[pair] < lowest:
                break
            make(pair, learned.add(pair))
            counts = refusing.taken_from(count(words, weights, meter))
        return learned.merges

    return train


honest = extending_with()
veto_forgotten_for_the_second_occurrence = extending_with(ForgetsAfterTheFirst)
no_veto = extending_with(RefusesNothing)
veto_applied_to_inherited = extending_with(vetoes_inherited=True)
spells_a_token_twice = extending_with(SpellsAnew)
dropped_merge_kept = extending_with(inherit=keeps_dropped)
used_up_merge_dropped = extending_with(inherit=drops_what_is_used_up)
kept_merge_dropped = extending_with(inherit=leaves_out_what_was_not_met)
inherited_in_another_order = extending_with(inherit=makes_the_last_first)
threshold_not_rescanned = extending_with(threshold=0.5)
runs_counted_without_overlap = extending_with(count=count_without_overlap)


def refuses_nothing(*_: Any, inherited: Sequence[Merge] = (), **__: Any) -> list[Merge]:
    return list(inherited)


def inherits_in_one_thread_only(
    *arguments: Any, threads: int = 1, inherited: Sequence[Merge] = (), **options: Any
) -> list[Merge]:
    return honest(*arguments, inherited=inherited if threads == 1 else (), **options)
