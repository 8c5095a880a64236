"""The compiled replay finds the first merge that is not the definition's, and says what is true at
any moment, whatever list it is given.

A slow test runs it under the compiler's sanitizers.
"""

import contextlib
import itertools
import random
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from exploring import seeds
from growing_words import SHAPES, Shape, expect_growth, one_word
from random_extensions import (
    VETOES,
    random_list,
    random_pieces,
    random_table,
    spoilt,
)
from recounted import recounted
from sanitizers import HEAVIEST, case_text, lines_of, sanitized, veto_numbers
from workbench import first_fast

from harness.common.values import first_difference
from harness.proof import compiled_replay
from harness.proof.compiled_replay import (
    Replay,
    inherited_first,
    token_ids,
)
from variants import flat, naive_extending, vetoes
from variants.contract import Merge, Merges, TieBreak, WordCounts

_replay = pytest.importorskip(
    "harness.proof.native._replay", reason="the compiled part is not built"
)

GREATEST = TieBreak.GREATEST_BYTES
Case = tuple[WordCounts, list[Merge], int, dict[str, Any]]
"""Words, a list of merges, how many were requested, and the rules."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"guess_scale": 30.0},
    # so far too high that pairs that matter are left out, and noticed
    {"guess_scale": 1e9, "wide_symbols": True},
    {"guess_scale": 0.0, "wide_positions": True},
)
TELLING = (147, 155)
"""Seeds of words of high and of equal weights, which show faults that few others do."""


def cases(seed: int) -> Iterator[Case]:
    """Right and wrong lists of a trainer that goes on from inherited merges, or from none."""
    dice = random.Random(seed)
    table = dice.choice((random_table, random_pieces))(dice)
    if seed % 10 == 0:  # next to nothing
        table = dice.choice(({}, {b"a": 5}, {b"ab": 1}))
    inherited, inheriting = random_list(dice, table)
    if dice.random() < 0.4:
        inherited = []

    words = WordCounts.from_items(table.items())
    num_merges = len(inherited) + dice.choice((0, 3, 10, 60))
    rules: dict[str, Any] = {
        "tie_break": dice.choice(list(TieBreak)),
        "min_count": dice.choice((1, 1, 2, 5)),
        "inherited": inherited,
        "inheriting": inheriting,
        "veto": vetoes.named(dice.choice(VETOES)),
    }
    others = {**rules, "tie_break": dice.choice(list(TieBreak)), "min_count": 1, "veto": None}
    try:
        merges = naive_extending.train(words, num_merges, **rules)
    except ValueError:  # a list that cannot be inherited
        return
    other_merges = naive_extending.train(words, num_merges, **others)
    for claimed in (merges, merges[:-1], other_merges, spoilt(merges, dice), spoilt(merges, dice)):
        yield words, claimed, num_merges, rules


@pytest.mark.parametrize("block", seeds(12))
def test_first_wrong_merge_is_the_first_that_the_definition_does_not_make(block: int) -> None:
    found: Counter[bool] = Counter()
    for seed in (*TELLING, *range(40 * block, 40 * block + 40)):
        for number, case in enumerate(cases(seed)):
            words, claimed, num_merges, rules = case
            right = naive_extending.train(words, num_merges, **rules)
            equal = first_difference(claimed, right)

            setting = SETTINGS[(seed + number) % len(SETTINGS)]
            others = dict(rules)
            tie_break = others.pop("tie_break")
            replay = Replay(words, claimed, num_merges, **others)
            judged = replay.judged(tie_break, **setting)

            is_right = claimed == right
            assert replay.is_right(judged) == is_right, (seed, case)
            if len(claimed) <= num_merges:
                assert judged.right == equal, (seed, case)
                assert judged.too_few == (equal == len(claimed) < len(right)), (seed, case)
            found[is_right] += 1
    assert min(found[True], found[False]) > 50


@pytest.mark.parametrize("block", seeds(12))
def test_every_count_and_choice_is_that_of_counting_again(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        for words, claimed, num_merges, rules in cases(seed):
            merges = claimed[: len(token_ids(claimed)[0])]
            replay = Replay(words, merges, num_merges, rules["min_count"])
            truth = recounted(dict(words.items()), merges)
            assert replay.tokens_left() == truth.tokens

            for number, best in [(len(merges), truth.rest), *enumerate(truth.best)][:4]:
                pair = merges[number] if number < len(merges) else (b"xx", b"y")
                moment = replay.moment(number, pair)
                assert moment
                assert (moment.highest, len(moment.best)) == (best.highest, best.sharing)
                for tie_break, choice in best.choices.items():
                    assert moment.choice(tie_break) == choice
                assert moment.pair_count == [*truth.counts, 0][number]

            judged = replay.judged(rules["tie_break"], all_pairs=True)
            assert list(judged.counts) == truth.counts[: judged.right]
            sharing = [best.sharing for best in truth.best[: judged.right]]
            assert list(judged.sharing) == sharing

            ties = Replay(words, merges, len(merges)).up_to_ties
            wrong = [
                index
                for index, best in enumerate(truth.best)
                if truth.counts[index] < max(best.highest, 1)
            ]
            assert ties.right == min([*wrong, len(merges)])


@pytest.mark.parametrize("tie_break", TieBreak)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", first_fast([2_000, 20_000]))
def test_work_grows_with_the_words(shape: Shape, size: int, tie_break: TieBreak) -> None:
    """By bytes as by ids."""

    def work(words: WordCounts) -> int:
        lefts, rights = token_ids(flat.train(words, 1_000_000, tie_break=tie_break))
        columns, rule = (words.data, words.offsets, words.counts), list(TieBreak).index(tie_break)
        judged = _replay.judge(*columns, lefts, rights, num_merges=len(lefts), tie_break=rule)
        assert judged.right == len(lefts)
        return int(judged.work)

    expect_growth(shape, size, work)


def test_merges_that_are_ids_are_judged_without_spelling_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dice = random.Random(5)
    for _ in range(300):
        ids = array("I")
        for rank in range(dice.randint(0, 12)):
            ids.extend(dice.choices([97, 98, *range(256, 256 + rank)], k=2))
        assert token_ids(Merges(ids)) == token_ids(list(Merges(ids)))
    assert token_ids(Merges(array("I", [97, 98, 97, 257]))) == (array("I", [97]), array("I", [98]))

    words = one_word(2_000)
    merges = flat.train(words, 1_000_000)
    spelled = Mock()
    monkeypatch.setattr(Merges, "_spell", spelled)
    assert Replay(words, merges, len(merges)).judged(TieBreak.GREATEST_BYTES).right == len(merges)
    assert {call.args for call in spelled.mock_calls} <= {(0,)}


def test_what_was_left_out_is_remembered() -> None:
    """A guess that is too high leaves out a pair that should have been merged."""
    words = WordCounts.from_items(
        [(b"ab", 1000), (b"cdq", 500), (b"cd", 300), (b"ef", 10), (b"gh", 9)]
    )
    claimed = [(b"a", b"b"), (b"c", b"d"), (b"e", b"f"), (b"g", b"h")]
    judged = Replay(words, claimed, 4).judged(GREATEST, guess_scale=30.0)
    assert (judged.right, judged.too_few) == (2, False)


def test_no_pair_that_spells_an_inherited_token_is_the_best_of_a_moment() -> None:
    inherited = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    words = WordCounts.from_items([(b"abc", 5), (b"xy", 1)])
    moment = Replay(words, inherited, 4, inherited=inherited).moment(3)
    assert moment
    assert (moment.highest, moment.choice(GREATEST)) == (1, (b"x", b"y"))


def test_what_a_veto_of_ones_own_raises_is_raised() -> None:
    words = WordCounts.from_items([(b"ab", 1), (b"abc", 1)])

    def refuse(*halves: bytes) -> bool:
        raise KeyError(halves)

    replay = Replay(words, [(b"a", b"b")], 1, veto=refuse)
    with pytest.raises(KeyError):
        replay.judged(GREATEST)
    with pytest.raises(KeyError):
        replay.moment(0)


def test_counts_that_may_overflow_are_refused() -> None:
    words = WordCounts.from_columns([b"abc", b"ab"], [2**62, 1])
    message = r"more than 2\*\*63 - 1 adjacent positions by weight; divide the counts"
    with pytest.raises(ValueError, match=message):
        Replay(words, [(b"a", b"b")], 1).judged(GREATEST)


def test_exception_of_on_progress_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(compiled_replay, "bar", lambda *_: contextlib.nullcontext(interrupt))
    with pytest.raises(KeyboardInterrupt):
        Replay(one_word(200_000), [(b"A", b"C")], 2).judged(GREATEST)


# The same lists in a program


def case_of(number: int, case: Case) -> str:
    """A case for tests/support/replay_driver.cpp; nothing if a list inherits unknown tokens."""
    words, merges, num_merges, rules = case
    claimed, stays = inherited_first(merges, rules["inherited"], rules["inheriting"])
    lefts, rights = token_ids(claimed[: num_merges + stays.count(False)], stays)
    if len(lefts) < len(stays):
        return ""

    tie_break = list(TieBreak).index(rules["tie_break"])
    numbers: list[object] = [num_merges, rules["min_count"], tie_break]
    numbers += ((1, 0), (30, 0), (1e9, 1), (0, 2))[number % 4]
    numbers += [*veto_numbers(rules["veto"]), len(stays), *map(int, stays), len(lefts)]
    for pair in zip(lefts, rights, strict=True):
        numbers += pair
    return case_text(numbers, dict(words))


@pytest.mark.slow
def test_no_sanitizer_finds_anything(tmp_path: Path) -> None:
    heavy = WordCounts.from_items(HEAVIEST.items())
    replayed: list[Case] = [(heavy, *case[1:]) for case in cases(0)]
    for seed in range(600):
        replayed += cases(seed)

    program = sanitized("replay_driver.cpp", "address,undefined", tmp_path)
    path = tmp_path / "cases"
    path.write_text("".join(map(case_of, itertools.count(), replayed)))
    lines = lines_of(program, path)
    assert len(set(lines)) > 100
