"""The compiled replay finds the first wrong merge where replaying with all counts finds it, whatever list it is given.

The slow tests break it on purpose and see that these lists show it, and run it under the compiler's sanitizers.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import sabotaged
from exploring import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as some
from sanitizers import HERE, case_text, sanitized, veto_numbers
from workbench import first_fast

from harness.proof import prove
from harness.proof.prove import ReplayResult, judge
from harness.proof.true_counts import replay
from variants import heap, naive
from variants.contract import Merge, TieBreak, Unavailable, WordCounts

pytest.importorskip("harness.proof.native._replay", reason="the compiled part is not built")

NATIVE = HERE.parents[1] / "harness" / "proof" / "native"
JOB = HERE.parents[1] / "variants" / "native"
HUGE_GUESS = 1e9
"""Guesses the last claim's count far too high, so that pairs that matter are left out, and noticed to have been."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"guess_scale": 30.0},
    {"guess_scale": HUGE_GUESS, "wide_symbols": True},
    {"guess_scale": 0.0, "wide_positions": True},
)


def table_of(seed: int) -> dict[bytes, int]:
    """Few words over few letters, so that there are ties, runs and repeats, with weights small or beyond 16 bits."""
    dice = random.Random(seed)
    letters = dice.sample((0x00, 0x01, ord("a"), ord("b"), 0xFF), dice.randint(1, 4))
    longest = dice.choice((4, 10, 40))
    heavy = (2**16 - 1, 2**16, 2**32 + 1, 2**50)
    return {
        bytes(dice.choices(letters, k=dice.randint(1, longest))): (
            dice.randint(1, 4) if dice.random() < 0.95 else dice.choice(heavy)
        )
        for _ in range(dice.randint(1, 25))
    }


def spoilt(merges: Sequence[Merge], dice: random.Random) -> list[Merge]:
    """The list with one thing wrong, or perhaps not wrong."""
    spoilt = list(merges)
    at = dice.randrange(len(spoilt)) if spoilt else 0
    way = dice.randrange(7)
    if way == 0:
        del spoilt[at:]
    elif way == 1:
        del spoilt[at : at + 1]
    elif way == 2:
        spoilt[at : at + 2] = reversed(spoilt[at : at + 2])
    elif way == 3:
        spoilt.insert(at, dice.choice(spoilt or [(b"a", b"b")]))
    elif way == 4:
        known = [bytes((byte,)) for byte in (0, 1, ord("a"), ord("b"), 255)] + [a + b for a, b in spoilt[:at]]
        spoilt.insert(at, (dice.choice(known), dice.choice(known)))
    elif way == 5:
        spoilt[at:] = [dice.choice(merges or [(b"a", b"b")])]
    return spoilt


def expected(
    words: WordCounts, merges: Sequence[Merge], asked: int, tie_break: TieBreak, min_count: int
) -> ReplayResult:
    """By the replay that keeps all counts and judges every merge."""
    replayed = replay(words, merges, tie_breaks=[tie_break], min_count=min_count)
    wrong = replayed.first_against(tie_break)
    right = min(len(merges) if wrong is None else wrong.number - 1, asked)
    return ReplayResult(right, len(merges), right == len(merges) and replayed.stops_too_early(asked))


def lists(seed: int) -> Iterator[tuple[WordCounts, list[Merge], int, TieBreak, int]]:
    """A table, right and wrong lists of merges for it, how many were asked for, and under which tie-break."""
    dice = random.Random(seed)
    words = WordCounts.from_items(table_of(seed).items())
    for tie_break in TieBreak:
        min_count, asked = dice.choice((1, 1, 2, 5)), dice.choice((3, 10, 60))
        merges = naive.train(words, asked, tie_break=tie_break, min_count=min_count)
        yield words, merges, asked, tie_break, min_count
        yield words, spoilt(merges, dice), asked, tie_break, min_count
        yield words, merges, asked, dice.choice(list(TieBreak)), dice.choice((1, min_count))


@pytest.mark.parametrize("block", first_fast(range(5)))
def test_the_first_wrong_merge_is_the_one_that_all_counts_show(block: int) -> None:
    wrong = 0
    for seed in range(30 * block, 30 * block + 30):
        for number, (words, merges, asked, tie_break, min_count) in enumerate(lists(seed)):
            want = expected(words, merges, asked, tie_break, min_count)
            how = SETTINGS[(seed + number) % len(SETTINGS)]
            got = judge(words, merges, asked, tie_break=tie_break, min_count=min_count, **how)
            assert got == want, (seed, number, merges, how)
            wrong += not got.proved
    assert wrong > 30


few_words = some.dictionaries(
    some.lists(some.sampled_from(b"\x00\xffab"), min_size=1, max_size=12).map(bytes),
    some.integers(1, 6) | some.integers(2**40, 2**40 + 2),
    max_size=6,
)


@examples(150, suppress_health_check=[HealthCheck.too_slow])
@given(table=few_words, choices=some.lists(some.integers(0, 10**6), max_size=14), tie_break=some.sampled_from(TieBreak))
def test_any_choice_of_pairs_is_judged_as_all_counts_judge_it(
    table: dict[bytes, int], choices: list[int], tie_break: TieBreak
) -> None:
    """Lists that go wrong at random: one of the pairs that stand, mostly the right one."""
    words = WordCounts.from_items(table.items())
    merges: list[Merge] = []
    for choice in choices:
        best = naive.train(words, len(merges) + 1, tie_break=tie_break)[len(merges) :] if choice % 4 else []
        tokens = [bytes((byte,)) for byte in b"\x00\xffab"] + [left + right for left, right in merges]
        merges += best or [(tokens[choice % len(tokens)], tokens[choice // 7 % len(tokens)])]
    for asked in (len(merges), len(merges) + 3):
        assert judge(words, merges, asked, tie_break=tie_break) == expected(words, merges, asked, tie_break, 1)


SABOTAGED = [
    name for name, each in vars(sabotaged).items() if callable(each) and getattr(each, "__name__", "") == "train"
]


@pytest.mark.parametrize("name", SABOTAGED)
def test_merges_of_sabotaged_trainers_are_judged_as_all_counts_judge_them(name: str) -> None:
    for seed in range(8):
        words = WordCounts.from_items(table_of(1000 + seed).items())
        merges = getattr(sabotaged, name)(words, 40)
        for tie_break in (TieBreak.GREATEST_BYTES, TieBreak.RAW_BYTES):
            assert judge(words, merges, 40, tie_break=tie_break) == expected(words, merges, 40, tie_break, 1)


@pytest.mark.parametrize("word", [b"a" * 999, b"ab" * 700, b"aab" * 400, bytes(2000), b"\xff\x00" * 600 + b"\xff"])
def test_runs_and_repeats_in_one_long_word(word: bytes) -> None:
    words = WordCounts.from_items([(word, 3)])
    merges = naive.train(words, 40)
    for how in SETTINGS:
        assert judge(words, merges, 40, tie_break=TieBreak.GREATEST_BYTES, **how).proved
    assert not judge(words, merges[:-1], 40, tie_break=TieBreak.GREATEST_BYTES).proved


def test_a_guess_that_was_too_high_is_noticed_and_mended() -> None:
    dice = random.Random(0)
    words = WordCounts.from_items((bytes(dice.choices(b"abcd", k=9)), dice.randint(1, 9)) for _ in range(60))
    merges = heap.train(words, 150)
    worse = [*merges[:140], merges[141], merges[140], *merges[142:]]
    for claimed in (merges, worse):
        want = expected(words, claimed, 150, TieBreak.GREATEST_BYTES, 1)
        for scale in (1.0, HUGE_GUESS):
            assert judge(words, claimed, 150, tie_break=TieBreak.GREATEST_BYTES, guess_scale=scale) == want
    assert not want.proved


def test_many_words_of_many_weights() -> None:
    dice = random.Random(3)
    words = WordCounts.from_items(
        (dice.randbytes(dice.randint(1, 3)) + b"-" * dice.randint(0, 9), 1 + int(dice.paretovariate(0.3)) % 2**40)
        for _ in range(20_000)
    )
    merges = heap.train(words, 400)
    for how in SETTINGS:
        assert judge(words, merges, 400, tie_break=TieBreak.GREATEST_BYTES, **how).proved
    del merges[399]
    assert judge(words, merges, 400, tie_break=TieBreak.GREATEST_BYTES) == ReplayResult(399, 399, too_few=True)


def test_nothing_claimed_is_right_where_nothing_can_be_merged() -> None:
    for words in (WordCounts.from_items([]), WordCounts.from_items([(b"a", 5)])):
        assert judge(words, [], 10, tie_break=TieBreak.GREATEST_BYTES).proved
        assert judge(words, [(b"a", b"a")], 10, tie_break=TieBreak.GREATEST_BYTES) == ReplayResult(0, 1, too_few=False)
    assert judge(WordCounts.from_items([(b"ab", 1)]), [], 0, tie_break=TieBreak.GREATEST_BYTES).proved
    assert judge(WordCounts.from_items([(b"ab", 1)]), [], 1, tie_break=TieBreak.GREATEST_BYTES).too_few


def test_counts_that_could_overflow_are_refused() -> None:
    words = WordCounts.from_columns([b"abc", b"ab"], [2**62, 1])
    with pytest.raises(ValueError, match=r"more than 2\*\*63 - 1 adjacent positions by weight; divide the counts"):
        judge(words, [(b"a", b"b")], 1, tie_break=TieBreak.GREATEST_BYTES)


def test_it_says_how_far_it_is_and_what_is_raised_then_comes_through() -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    words = WordCounts.from_items([(bytes(random.Random(0).choices(b"ACGT", k=200_000)), 1)])
    with pytest.raises(KeyboardInterrupt):
        judge(words, [(b"A", b"C")], 2, tie_break=TieBreak.GREATEST_BYTES, on_progress=interrupt)


def test_without_the_compiled_module_it_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "_replay", None)
    with pytest.raises(Unavailable, match=r"pip install -e \."):
        judge(WordCounts.from_items([(b"ab", 1)]), [], 1, tie_break=TieBreak.GREATEST_BYTES)


# --------------------
# The same lists in a program of its own, whole and broken.


def driver_cases(folder: Path, seeds: range) -> tuple[Path, list[str]]:
    """Cases for tests/support/replay_driver.cpp, and the lines that it should print."""
    texts, want = [], []
    for seed in seeds:
        for words, merges, asked, tie_break, min_count in lists(seed):
            ids = {bytes((byte,)): byte for byte in range(256)}
            claims: list[int] = []
            for left, right in merges[:asked]:
                if left not in ids or right not in ids or left + right in ids:
                    break
                claims += [ids[left], ids[right]]
                ids[left + right] = len(ids)
            known = 2 * len(merges) == len(claims)
            held = expected(words, merges, asked, tie_break, min_count)
            numbers = (asked if known else len(claims) // 2, min_count, list(TieBreak).index(tie_break))
            scale, wide = random.Random(seed).choice(((1, 0), (30, 0), (1e9, 1), (0, 2)))
            case = case_text((*numbers, scale, wide, *veto_numbers(None), 0, len(claims) // 2, *claims), dict(words))
            texts.append(case)
            want.append(f"{held.right} {int(held.too_few)}")
    cases = folder / "cases"
    cases.write_text("".join(texts))
    return cases, want


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", ["address,undefined"])
def test_sanitizers_find_nothing(sanitizers: str, tmp_path: Path) -> None:
    cases, want = driver_cases(tmp_path, range(2000, 2100))
    program = sanitized("replay_driver.cpp", sanitizers, tmp_path, f"-I{NATIVE}")
    ended = subprocess.run([program, cases], capture_output=True, text=True)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout.splitlines() == want


BROKEN = (
    (
        "replay_order.hpp",
        "while (!last_taken_.empty() && !tokens_.before(pair",
        "while (!last_taken_.empty() && tokens_.before(pair",
    ),
    ("replay_order.hpp", "return found != last_taken_.end() && ", "return false && "),
    (
        "replay_order.hpp",
        "return starts_[one] > starts_[other] ? 1 : -1;",
        "return starts_[one] < starts_[other] ? 1 : -1;",
    ),
    ("replay_order.hpp", "number(one) < number(other)", "one < other"),
    ("replay.hpp", "if (pair.key) examine(pair);", "(void)pair;"),
    ("replay.hpp", "        examine(*pair);\n        pair->count -= weight;", "        pair->count -= weight;"),
    ("replay.hpp", "token == made ? key_of(right, left) : key_of(token, left)", "key_of(token, left)"),
    ("replay.hpp", "after == made ? static_cast<Symbol>(gap) : after;", "after;"),
    ("replay.hpp", "symbols[at + left_length] = static_cast<Symbol>(swallowed);", ""),
    ("replay.hpp", "if (left == right && (symbols[at]", "if (false && (symbols[at]"),
    ("replay.hpp", "if (count != counts_.back()) level_.clear();", ""),
    ("replay.hpp", "left_out_ = std::max(left_out_, count);", ""),
    ("replay.hpp", "*before.next = place.at - before.back;", "*before.next = place.at;"),
    ("replay_text.hpp", "std::sort(heavy.rbegin(), heavy.rend());", ""),
)
"""A line of the replay, and what breaks it."""


@pytest.fixture(scope="module")
def many_cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    return driver_cases(tmp_path_factory.mktemp("cases"), range(200))


@pytest.mark.slow
@pytest.mark.parametrize(("header", "right", "wrong"), BROKEN)
def test_a_replay_broken_on_purpose_is_found(
    tmp_path: Path, many_cases: tuple[Path, list[str]], header: str, right: str, wrong: str
) -> None:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler; set CXX or install g++")
    headers = tmp_path / "native"
    shutil.copytree(NATIVE, headers, ignore=shutil.ignore_patterns("*.so", "_*"))
    text = (headers / header).read_text()
    assert text.count(right) == 1
    (headers / header).write_text(text.replace(right, wrong))
    cases, want = many_cases
    program = tmp_path / "driver"
    options = ["-std=c++17", "-O0", "-pthread", f"-I{headers}", f"-I{JOB}", f"-I{HERE}"]
    subprocess.run([compiler, *options, str(HERE / "replay_driver.cpp"), "-o", str(program)], check=True)
    try:
        ended = subprocess.run([program, cases], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return
    assert (ended.returncode, ended.stdout.splitlines()) != (0, want)
