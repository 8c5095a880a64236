"""The compiled replay judges merges that went on from inherited ones as the replay that keeps all counts does."""

from __future__ import annotations

import random
from typing import Any

import pytest
from test_compiled_replay import SETTINGS, spoilt
from test_flat_extending import random_list, random_pieces

from harness.proof.compiled_replay import Held, hold, knows
from harness.proof.true_counts import replay
from variants import naive, vetoes
from variants.contract import TieBreak, WordCounts

pytest.importorskip("harness.proof.native._replay", reason="the compiled part is not built")


def held_at_random(seed: int) -> list[bool]:
    """Whether right and wrong lists of one extension were proved; each is held against the replay with all counts."""
    dice = random.Random(seed)
    pieces = random_pieces(dice)
    inherited, inheriting = random_list(dice, pieces)
    veto = vetoes.named(dice.choice(("none", "superbpe", "bytes:3", "characters:2")))
    if not knows(inherited, veto):
        return []
    words, tie_break = WordCounts.from_items(pieces.items()), dice.choice(list(TieBreak))
    asked: dict[str, Any] = {"inherited": inherited, "inheriting": inheriting, "veto": veto}
    min_count, num_merges = dice.choice((1, 1, 2)), len(inherited) + dice.choice((0, 5, 60))
    merges = naive.train(words, num_merges, tie_break=tie_break, min_count=min_count, **asked)
    unvetoed = naive.train(words, num_merges, tie_break=tie_break, min_count=min_count, inherited=inherited)
    proved = []
    for claimed in (merges, spoilt(merges, dice), spoilt(merges, dice), merges[:-1], unvetoed):
        told = replay(words, claimed, tie_breaks=[tie_break], min_count=min_count, **asked)
        wrong = told.first_against(tie_break)
        right = min(len(claimed) if wrong is None else wrong.number - 1, num_merges)
        want = Held(right, len(claimed), right == len(claimed) and told.stops_too_early(num_merges))
        how = dice.choice(SETTINGS)
        got = hold(words, claimed, num_merges, tie_break=tie_break, min_count=min_count, **asked, **how)
        if right >= len(inherited) and wrong is not None:
            assert got == want, (seed, claimed, how)
        assert got.proved == (claimed == merges), (seed, claimed, how)
        proved.append(got.proved)
    return proved


def test_what_was_extended_is_proved_if_it_is_right_and_only_then() -> None:
    proved = [each for seed in range(120) for each in held_at_random(seed)]
    assert proved.count(True) > 100
    assert proved.count(False) > 100


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_extensions_are_judged_as_all_counts_judge_them(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        held_at_random(seed)


def test_a_veto_of_ones_own_and_a_list_that_spells_a_token_twice_are_not_judged_here() -> None:
    assert not knows((), lambda left, right: left == right)
    assert not knows([(b"a", b"b"), (b"a", b"b")])
    assert not knows([(b"ab", b"c")])
    assert knows([(b"a", b"b"), (b"ab", b"c")], vetoes.superbpe)
