"""The compiled replay judges merges that went on from inherited ones as the replay that keeps all counts does."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from random_extensions import random_list, random_pieces
from sanitizers import case_text, sanitized, veto_numbers
from test_compiled_replay import NATIVE, SETTINGS, spoilt

from harness.proof import true_counts
from harness.proof.prove import ReplayResult, can_judge, inherited_first, judge, tokens_left
from harness.proof.true_counts import replay
from variants import naive_extending, vetoes
from variants.contract import TieBreak, WordCounts

pytest.importorskip("harness.proof.native._replay", reason="the compiled part is not built")


VETOES = (
    "none",
    "superbpe",
    "bytes:3",
    "characters:2",
    "whole_characters",
    "[whole_characters,bytes:6]",
    "[protected:61.e6b395,whole_characters]",
)


def held_at_random(seed: int) -> list[bool]:
    """Whether right and wrong lists of one extension were proved; each is held against the replay with all counts."""
    dice = random.Random(seed)
    pieces = random_pieces(dice)
    inherited, inheriting = random_list(dice, pieces)
    veto = vetoes.named(dice.choice(VETOES))
    if not can_judge(inherited, veto):
        return []
    words, tie_break = WordCounts.from_items(pieces.items()), dice.choice(list(TieBreak))
    asked: dict[str, Any] = {"inherited": inherited, "inheriting": inheriting, "veto": veto}
    min_count, num_merges = dice.choice((1, 1, 2)), len(inherited) + dice.choice((0, 5, 60))
    merges = naive_extending.train(words, num_merges, tie_break=tie_break, min_count=min_count, **asked)
    unvetoed = naive_extending.train(words, num_merges, tie_break=tie_break, min_count=min_count, inherited=inherited)
    proved = []
    for claimed in (merges, spoilt(merges, dice), spoilt(merges, dice), merges[:-1], unvetoed):
        told = replay(words, claimed, tie_breaks=[tie_break], min_count=min_count, **asked)
        wrong = told.first_against(tie_break)
        right = min(len(claimed) if wrong is None else wrong.number - 1, num_merges)
        want = ReplayResult(right, len(claimed), right == len(claimed) and told.stops_too_early(num_merges))
        how = dice.choice(SETTINGS)
        got = judge(words, claimed, num_merges, tie_break=tie_break, min_count=min_count, **asked, **how)
        if right >= len(inherited) and wrong is not None:
            assert got == want, (seed, claimed, how)
        assert got.proved == (claimed == merges), (seed, claimed, how)
        assert tokens_left(words, claimed) == true_counts.tokens_left(words, claimed), (seed, claimed)
        proved.append(got.proved)
    return proved


def test_what_was_extended_is_proved_if_it_is_right_and_only_then() -> None:
    proved = [each for seed in range(40) for each in held_at_random(seed)]
    assert proved.count(True) > 30
    assert proved.count(False) > 30


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_extensions_are_judged_as_all_counts_judge_them(block: int) -> None:
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        held_at_random(seed)


def test_a_veto_of_ones_own_and_a_list_that_spells_a_token_twice_are_not_judged_here() -> None:
    assert not can_judge((), lambda left, right: left == right)
    assert not can_judge([(b"a", b"b"), (b"a", b"b")])
    assert not can_judge([(b"ab", b"c")])
    assert can_judge([(b"a", b"b"), (b"ab", b"c")], vetoes.superbpe)


def driver_case(seed: int) -> tuple[str, str]:
    """A case for replay_driver.cpp that went on from inherited merges, and the line that it should print."""
    dice = random.Random(seed)
    pieces = random_pieces(dice)
    inherited, inheriting = random_list(dice, pieces)
    veto = vetoes.named(dice.choice(VETOES))
    if not can_judge(inherited, veto):
        return driver_case(seed + 1_000_000)
    words, tie_break = WordCounts.from_items(pieces.items()), dice.choice(list(TieBreak))
    asked: dict[str, Any] = {"inherited": inherited, "inheriting": inheriting, "veto": veto}
    num_merges = len(inherited) + dice.choice((5, 60))
    merges = naive_extending.train(words, num_merges, tie_break=tie_break, **asked)
    claimed, stays = inherited_first(merges, inherited, inheriting)
    new = claimed[len(stays) :]
    wrong = dice.random() < 0.5 and len(new) > 2 and len(set(new[:2])) == 2
    if wrong:  # the best pair comes too late
        claimed = [*claimed[: len(stays)], *new[1:]]
    ids = {bytes((byte,)): byte for byte in range(256)}
    claims: list[int] = []
    for left, right in claimed:
        if left not in ids or right not in ids:
            break
        claims += [ids[left], ids[right]]
        ids[left + right] = len(ids)
    scale, wide = dice.choice(((1, 0), (30, 0), (1e9, 1), (0, 2)))
    numbers: list[object] = [len(claims) // 2, 1, list(TieBreak).index(tie_break), scale, wide, *veto_numbers(veto)]
    numbers += [len(stays), *map(int, stays), len(claims) // 2, *claims]
    holds = len(stays) if wrong and len(claims) > 2 * len(stays) else len(claims) // 2
    return case_text(numbers, pieces), " ".join(map(str, [holds, 0, *map(int, stays if inheriting == "met" else [])]))


@pytest.mark.slow
def test_sanitizers_find_nothing_in_extensions(tmp_path: Path) -> None:
    listed = [driver_case(seed) for seed in range(3000, 3300)]
    cases = tmp_path / "cases"
    cases.write_text("".join(text for text, _ in listed))
    program = sanitized("replay_driver.cpp", "address,undefined", tmp_path, f"-I{NATIVE}")
    ended = subprocess.run([program, cases], capture_output=True, text=True)
    assert (ended.stderr, ended.returncode) == ("", 0)
    for printed, (_, want) in zip(ended.stdout.splitlines(), listed, strict=True):
        # Whether merges that are kept were met is told as well, and nobody asks.
        assert f"{printed} ".startswith(f"{want} ")
