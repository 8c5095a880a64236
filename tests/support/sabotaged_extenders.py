"""Trainers that go on from inherited merges wrongly, each in one way: the definition with one step replaced."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from sabotaged import Train, count_without_overlap, mutated, replacing

from variants import extending
from variants.contract import Merge, Veto

extending_with = functools.partial(replacing, extending.train, __name__)
honest = extending_with()


def mutant(name: str, right: str, wrong: str) -> Train:
    """The definition with a step of extending.py in which one text is another."""
    return extending_with(**{name: mutated(extending, {right: wrong})[name]})


veto_forgotten_for_the_second_occurrence = mutant(
    "Refused", "        return self.answers[pair]\n", "            return self.answers[pair]\n        return False\n"
)
no_veto = mutant("Refused", "(self.veto is not None and bool(self.veto(left, right))) or", "")
spells_a_token_twice = mutant("Refused", "{left + right for left, right in vocabulary.merges}", "set()")
dropped_merge_kept = mutant("inherit", ' or (inheriting == "met" and (ids[left], ids[right]) not in met):', ":")
used_up_merge_dropped = mutant(
    "inherit", "met.update(merge(pair, ids[left + right]))", "met = {*merge(pair, ids[left + right])}"
)
kept_merge_dropped = extending_with(inherit=lambda inherited, _, *how: extending.inherit(inherited, "met", *how))
inherited_in_another_order = extending_with(inherit=lambda inherited, *how: extending.inherit(inherited[::-1], *how))
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
