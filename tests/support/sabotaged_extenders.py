"""Trainers that go on from inherited merges wrongly, each in one way: the definition with one step replaced."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from sabotaged import count_without_overlap, replacing

from variants import extending, naive_extending
from variants.contract import Merge, Pair, Veto
from variants.extending import Refused
from variants.words import PairCounts, Vocabulary

Words = Sequence[Sequence[int]]


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


extending_with = functools.partial(replacing, naive_extending.train, __name__)
honest = extending_with()
veto_forgotten_for_the_second_occurrence = extending_with(Refused=ForgetsAfterTheFirst)
no_veto = extending_with(Refused=RefusesNothing)
spells_a_token_twice = extending_with(Refused=SpellsAnew)
dropped_merge_kept = extending_with(inherit=keeps_dropped)
used_up_merge_dropped = extending_with(inherit=drops_what_is_used_up)
kept_merge_dropped = extending_with(inherit=leaves_out_what_was_not_met)
inherited_in_another_order = extending_with(inherit=makes_the_last_first)
runs_counted_without_overlap = extending_with(count_pairs=count_without_overlap)


def veto_applied_to_inherited(
    *arguments: Any, inherited: Sequence[Merge] = (), veto: Veto | None = None, **options: Any
) -> list[Merge]:
    left = [merge for merge in inherited if veto is None or not veto(*merge)]
    return honest(*arguments, inherited=left, veto=veto, **options)


def refuses_nothing(*_: Any, inherited: Sequence[Merge] = (), **__: Any) -> list[Merge]:
    return list(inherited)


def inherits_in_one_thread_only(
    *arguments: Any, threads: int = 1, inherited: Sequence[Merge] = (), **options: Any
) -> list[Merge]:
    return honest(*arguments, inherited=inherited if threads == 1 else (), **options)
