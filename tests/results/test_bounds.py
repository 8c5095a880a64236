"""Merges of one round may be made in any order."""

import random
import runpy

from hypothesis import given
from hypothesis import strategies as some
from recounted import recounted
from workbench import CHECKOUT

from harness.proof.cases import random_call
from harness.proof.checks import TrainerCall
from variants.contract import Merge, TieBreak

rounds = runpy.run_path(str(CHECKOUT / "results/bounds/bounds.py"))["rounds"]


def waits(later: Merge, earlier: Merge) -> bool:
    return b"".join(earlier) in later or earlier[1] == later[0] or later[1] == earlier[0]


@given(some.integers(0, 2**32), some.sampled_from(TieBreak))
def test_the_merges_of_a_round_may_be_made_in_any_order(seed: int, tie_break: TieBreak) -> None:
    dice, words = random.Random(seed), random_call(seed, tie_break).words
    merges = TrainerCall(words, 60, tie_break).defined()

    found = rounds(merges)

    defined: list[int] = []
    for number, merge in enumerate(merges):
        earlier = [defined[other] for other in range(number) if waits(merge, merges[other])]
        defined.append(1 + max(earlier, default=0))
    assert found == defined

    order = sorted(range(len(merges)), key=lambda index: (found[index], dice.random()))
    shuffled = [merges[index] for index in order]
    made, remade = recounted(words, merges), recounted(words, shuffled)
    counts = dict(zip(merges, made.counts, strict=True))
    assert dict(zip(shuffled, remade.counts, strict=True)) == counts
    assert remade.tokens == made.tokens
