"""Rounds: those of the definition, and all merges of one may be made in any order."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as some

from harness.proof.bounds import rounds
from harness.proof.checks import TrainerCall
from harness.proof.trainer_checks import random_words
from variants.contract import Merge, TieBreak
from variants.words import merge_pair


def waits(later: Merge, earlier: Merge) -> bool:
    return b"".join(earlier) in later or earlier[1] == later[0] or later[1] == earlier[0]


def made(words: Iterable[bytes], merges: Sequence[Merge], order: Iterable[int]) -> list[list[int]]:
    """The words after merges in this order."""
    ids = {bytes((byte,)): byte for byte in range(256)}
    ids |= {left + right: number for number, (left, right) in enumerate(merges, 256)}
    texts = [list(word) for word in words]
    for index in order:
        left, right = merges[index]
        pair = ids[left], ids[right]
        texts = [merge_pair(text, pair, 256 + index) for text in texts]
    return texts


@given(some.integers(0, 2**32), some.sampled_from(TieBreak))
def test_the_merges_of_a_round_may_be_made_in_any_order(seed: int, tie_break: TieBreak) -> None:
    dice, words = random.Random(seed), random_words(seed)
    merges = TrainerCall(words, 60, tie_break).defined()
    found = rounds(merges)
    defined: list[int] = []
    for number, merge in enumerate(merges):
        earlier = [defined[other] for other in range(number) if waits(merge, merges[other])]
        defined.append(1 + max(earlier, default=0))
    assert found == defined

    shuffled = sorted(range(len(merges)), key=lambda index: (found[index], dice.random()))
    assert made(words, merges, shuffled) == made(words, merges, range(len(merges)))
