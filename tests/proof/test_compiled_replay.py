"""The compiled replay finds the first wrong merge where replaying with all counts finds it,
whatever list it is given.

The slow tests break it on purpose and see that these lists show it, and run it under the compiler's
sanitizers.
"""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from random_extensions import random_list, random_pieces, random_table, spoilt
from rows import rows_beside
from sanitizers import HEAVIEST, case_text, compiled, sanitized, veto_numbers
from workbench import CHECKOUT, first_fast

from harness.proof.compiled_replay import (
    can_judge,
    inherited_first,
    judge_merges,
    token_ids,
    tokens_left,
)
from harness.proof.true_counts import TrueCounts, replay
from variants import heap, naive_extending, vetoes
from variants.contract import Merge, TieBreak, WordCounts

pytest.importorskip("harness.proof.native._replay", reason="the compiled part is not built")

NATIVE = CHECKOUT / "harness/proof/native"
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
VETOES = (
    "none", "superbpe", "bytes:3", "characters:2", "whole_characters",
    "[whole_characters,bytes:6]", "[protected:61.e6b395,whole_characters]",
)  # fmt: skip


def by_all_counts(
    words: WordCounts,
    merges: Sequence[Merge],
    num_merges: int,
    *,
    tie_break: TieBreak,
    **options: Any,
) -> tuple[int, bool]:
    """The result by the replay that keeps all counts and judges every merge."""
    replayed = replay(words, merges, tie_breaks=[tie_break], **options)
    wrong = replayed.first_against(tie_break)
    right = min(len(merges) if wrong is None else wrong.number - 1, num_merges)
    return right, right == len(merges) and replayed.stops_too_early(num_merges)


def cases(seed: int) -> Iterator[Case]:
    """Right and wrong lists of a trainer that goes on from inherited merges, or from none."""
    dice = random.Random(seed)
    table = dice.choice((random_table, random_pieces))(dice)
    if seed % 10 == 0:  # next to nothing
        table = dice.choice(({}, {b"a": 5}, {b"ab": 1}))
    inherited, inheriting = random_list(dice, table)
    if dice.random() < 0.4 or not can_judge(inherited):
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
    merges = naive_extending.train(words, num_merges, **rules)
    other_merges = naive_extending.train(words, num_merges, **others)
    for claimed in (merges, merges[:-1], other_merges, spoilt(merges, dice), spoilt(merges, dice)):
        yield words, claimed, num_merges, rules


@pytest.mark.parametrize("block", first_fast(range(60)))
def test_first_wrong_merge_is_the_one_that_all_counts_show(block: int) -> None:
    found: Counter[bool] = Counter()
    for seed in range(40 * block, 40 * block + 40):
        for number, case in enumerate(cases(seed)):
            words, claimed, num_merges, rules = case
            inherited = len(rules["inherited"])
            right = naive_extending.train(words, num_merges, **rules)
            want = by_all_counts(words, claimed, num_merges, **rules)

            setting = SETTINGS[(seed + number) % len(SETTINGS)]
            result = judge_merges(words, claimed, num_merges, **rules, **setting)

            is_right = result == (len(claimed), False)
            assert is_right == (claimed == right), (seed, case)
            if not inherited or inherited <= want[0] < min(len(claimed), num_merges):
                assert result == want, (seed, case)
            tokens = TrueCounts(words, inherited=claimed).text.tokens
            assert tokens_left(words, claimed) == tokens, (seed, case)
            found[is_right] += 1
    assert min(found[True], found[False]) > 50


def large_tables() -> Iterator[WordCounts]:
    """Long words, and many words of all bytes with weights of all sizes."""
    long_words = b"a" * 999, b"ab" * 700, b"aab" * 400, bytes(2000), b"\xff\x00" * 600 + b"\xff"
    for word in long_words:
        yield WordCounts.from_items([(word, 3)])

    dice = random.Random(0)
    items = []
    for _ in range(10_000):
        word = dice.randbytes(dice.randint(1, 3)) + b"-" * dice.randint(0, 9)
        items.append((word, 1 + int(dice.paretovariate(0.3)) % 2**40))
    yield WordCounts.from_items(items)


def test_long_words_and_large_tables() -> None:
    for words in large_tables():
        merges = heap.train(words, 150)
        number = len(merges)
        worse = [*merges[:-2], merges[-1], merges[-2]]
        results = [(merges, number, False), (merges[:-1], number - 1, True)]
        for claimed, right, too_few in [*results, (worse, number - 2, False)]:
            for settings in SETTINGS:
                judged = judge_merges(words, claimed, number, tie_break=GREATEST, **settings)
                assert judged == (right, too_few)


def test_counts_that_may_overflow_are_refused() -> None:
    words = WordCounts.from_columns([b"abc", b"ab"], [2**62, 1])
    message = r"more than 2\*\*63 - 1 adjacent positions by weight; divide the counts"
    with pytest.raises(ValueError, match=message):
        judge_merges(words, [(b"a", b"b")], 1, tie_break=GREATEST)


def test_exception_of_on_progress_is_raised() -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    words = WordCounts.from_items([(bytes(random.Random(0).choices(b"ACGT", k=200_000)), 1)])
    with pytest.raises(KeyboardInterrupt):
        judge_merges(words, [(b"A", b"C")], 2, tie_break=GREATEST, on_progress=interrupt)


# The same lists in a program, whole and broken


def case_of(number: int, case: Case) -> str:
    """A case for tests/support/replay_driver.cpp; nothing if a list inherits unknown tokens."""
    words, merges, num_merges, rules = case
    claimed, stays = inherited_first(merges, rules["inherited"], rules["inheriting"])
    lefts, rights = token_ids(claimed[: num_merges + stays.count(False)])
    if len(lefts) < len(stays):
        return ""

    tie_break = list(TieBreak).index(rules["tie_break"])
    numbers: list[object] = [num_merges, rules["min_count"], tie_break]
    numbers += ((1, 0), (30, 0), (1e9, 1), (0, 2))[number % 4]
    numbers += [*veto_numbers(rules["veto"]), len(stays), *map(int, stays), len(lefts)]
    for pair in zip(lefts, rights, strict=True):
        numbers += pair
    return case_text(numbers, dict(words))


@pytest.fixture(scope="module")
def sanitized_lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A file of cases, and what the program prints about them under sanitizers, which find
    nothing.
    """
    folder = tmp_path_factory.mktemp("whole")
    program = sanitized("replay_driver.cpp", "address,undefined", folder, f"-I{NATIVE}")
    heavy = WordCounts.from_items(HEAVIEST.items())
    replayed: list[Case] = [(heavy, *case[1:]) for case in cases(0)]
    for seed in range(600):
        replayed += cases(seed)

    path = folder / "cases"
    path.write_text("".join(map(case_of, itertools.count(), replayed)))
    ended = subprocess.run([program, path], capture_output=True, text=True)
    assert (ended.stderr, ended.returncode) == ("", 0)
    return path, ended.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("fault", rows_beside(__file__, "broken_replay.toml"))
def test_broken_replay_prints_something_else(
    tmp_path: Path, sanitized_lines: tuple[Path, list[str]], fault: dict[str, str]
) -> None:
    headers = tmp_path / "native"
    shutil.copytree(NATIVE, headers, ignore=shutil.ignore_patterns("*.so", "_*"))
    broken = headers / f"{fault['header']}.hpp"
    source = broken.read_text()
    assert source.count(fault["right"]) == 1
    broken.write_text(source.replace(fault["right"], fault["wrong"]))
    program = compiled("replay_driver.cpp", tmp_path, f"-I{headers}", "-O0")

    path, lines = sanitized_lines
    assert len(set(lines)) > 100
    try:
        ended = subprocess.run([program, path], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return
    assert (ended.returncode, ended.stdout.splitlines()) != (0, lines)
