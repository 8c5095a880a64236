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
from random_extensions import random_list, random_pieces, random_table
from sanitizers import HERE, case_text, sanitized, veto_numbers
from workbench import first_fast

from harness.proof import prove
from harness.proof.prove import ReplayResult, can_judge, inherited_first, judge, token_ids, tokens_left
from harness.proof.true_counts import TrueCounts, replay
from variants import heap, naive, naive_extending, vetoes
from variants.contract import Merge, TieBreak, Unavailable, WordCounts

pytest.importorskip("harness.proof.native._replay", reason="the compiled part is not built")

NATIVE = HERE.parents[1] / "harness" / "proof" / "native"
JOB = HERE.parents[1] / "variants" / "native"
GREATEST = TieBreak.GREATEST_BYTES
HUGE_GUESS = 1e9
"""Guesses the last claim's count far too high, so that pairs that matter are left out, and noticed to have been."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"guess_scale": 30.0},
    {"guess_scale": HUGE_GUESS, "wide_symbols": True},
    {"guess_scale": 0.0, "wide_positions": True},
)
VETOES = (
    *("none", "superbpe", "bytes:3", "characters:2", "whole_characters", "[whole_characters,bytes:6]"),
    "[protected:61.e6b395,whole_characters]",
)


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
        tokens = [bytes((byte,)) for byte in (0, 1, ord("a"), ord("b"), 255)] + [a + b for a, b in spoilt[:at]]
        spoilt.insert(at, (dice.choice(tokens), dice.choice(tokens)))
    elif way == 5:
        spoilt[at:] = [dice.choice(merges or [(b"a", b"b")])]
    return spoilt


def expected(
    words: WordCounts, merges: Sequence[Merge], num_merges: int, tie_break: TieBreak = GREATEST, **options: Any
) -> ReplayResult:
    """The result by the replay that keeps all counts and judges every merge."""
    replayed = replay(words, merges, tie_breaks=[tie_break], **options)
    wrong = replayed.first_against(tie_break)
    right = min(len(merges) if wrong is None else wrong.number - 1, num_merges)
    return ReplayResult(right, len(merges), right == len(merges) and replayed.stops_too_early(num_merges))


def lists(seed: int) -> Iterator[tuple[WordCounts, list[Merge], int, TieBreak, int]]:
    """A table, right and wrong lists of merges for it, how many were requested, and under which tie-break."""
    dice = random.Random(seed)
    words = WordCounts.from_items(random_table(dice).items())
    for tie_break in TieBreak:
        min_count, num_merges = dice.choice((1, 1, 2, 5)), dice.choice((3, 10, 60))
        merges = naive.train(words, num_merges, tie_break=tie_break, min_count=min_count)
        yield words, merges, num_merges, tie_break, min_count
        yield words, spoilt(merges, dice), num_merges, tie_break, min_count
        yield words, merges, num_merges, dice.choice(list(TieBreak)), dice.choice((1, min_count))


@pytest.mark.parametrize("block", first_fast(range(8)))
def test_first_wrong_merge_is_the_one_that_all_counts_show(block: int) -> None:
    wrong = 0
    for seed in range(20 * block, 20 * block + 20):
        for number, (words, merges, num_merges, tie_break, min_count) in enumerate(lists(seed)):
            want = expected(words, merges, num_merges, tie_break, min_count=min_count)
            settings = SETTINGS[(seed + number) % len(SETTINGS)]
            result = judge(words, merges, num_merges, tie_break=tie_break, min_count=min_count, **settings)
            assert result == want, (seed, number, merges, settings)
            wrong += not result.proved
    assert wrong > 20


@pytest.mark.parametrize("word", [b"a" * 999, b"ab" * 700, b"aab" * 400, bytes(2000), b"\xff\x00" * 600 + b"\xff"])
def test_runs_and_repeats_in_one_long_word(word: bytes) -> None:
    words = WordCounts.from_items([(word, 3)])
    merges = naive.train(words, 40)
    for settings in SETTINGS:
        assert judge(words, merges, 40, tie_break=GREATEST, **settings).proved
    assert not judge(words, merges[:-1], 40, tie_break=GREATEST).proved


def test_guess_that_is_too_high_is_noticed_and_corrected() -> None:
    dice = random.Random(0)
    words = WordCounts.from_items((bytes(dice.choices(b"abcd", k=9)), dice.randint(1, 9)) for _ in range(60))
    merges = heap.train(words, 150)
    worse = [*merges[:140], merges[141], merges[140], *merges[142:]]
    for claimed, right in ((merges, True), (worse, False)):
        want = expected(words, claimed, 150)
        assert want.proved == right
        for scale in (1.0, HUGE_GUESS):
            assert judge(words, claimed, 150, tie_break=GREATEST, guess_scale=scale) == want


def test_many_words_of_many_weights() -> None:
    dice = random.Random(3)
    words = WordCounts.from_items(
        (dice.randbytes(dice.randint(1, 3)) + b"-" * dice.randint(0, 9), 1 + int(dice.paretovariate(0.3)) % 2**40)
        for _ in range(10_000)
    )
    merges = heap.train(words, 300)
    for settings in SETTINGS:
        assert judge(words, merges, 300, tie_break=GREATEST, **settings).proved
    del merges[299]
    assert judge(words, merges, 300, tie_break=GREATEST) == ReplayResult(299, 299, too_few=True)


def test_empty_lists() -> None:
    for words in (WordCounts.from_items([]), WordCounts.from_items([(b"a", 5)])):
        assert judge(words, [], 10, tie_break=GREATEST).proved
        assert judge(words, [(b"a", b"a")], 10, tie_break=GREATEST) == ReplayResult(0, 1, too_few=False)
    words = WordCounts.from_items([(b"ab", 1)])
    assert judge(words, [], 0, tie_break=GREATEST).proved
    assert judge(words, [], 1, tie_break=GREATEST).too_few


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    words = WordCounts.from_columns([b"abc", b"ab"], [2**62, 1])
    with pytest.raises(ValueError, match=r"more than 2\*\*63 - 1 adjacent positions by weight; divide the counts"):
        judge(words, [(b"a", b"b")], 1, tie_break=GREATEST)
    monkeypatch.setattr(prove, "_replay", None)
    with pytest.raises(Unavailable, match=r"pip install -e \."):
        judge(WordCounts.from_items([(b"ab", 1)]), [], 1, tie_break=GREATEST)


def test_exception_of_on_progress_is_raised() -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    words = WordCounts.from_items([(bytes(random.Random(0).choices(b"ACGT", k=200_000)), 1)])
    with pytest.raises(KeyboardInterrupt):
        judge(words, [(b"A", b"C")], 2, tie_break=GREATEST, on_progress=interrupt)


# Extending


def random_extension(seed: int) -> tuple[random.Random, dict[bytes, int], TieBreak, dict[str, Any]]:
    """Pieces, a tie-break, and the options of a trainer that goes on from inherited merges."""
    dice = random.Random(seed)
    pieces = random_pieces(dice)
    inherited, inheriting = random_list(dice, pieces)
    veto = vetoes.named(dice.choice(VETOES))
    if not can_judge(inherited, veto):
        return random_extension(seed + 1_000_000)
    options = {"inherited": inherited, "inheriting": inheriting, "veto": veto}
    return dice, pieces, dice.choice(list(TieBreak)), options


@pytest.mark.parametrize("block", first_fast(range(50)))
def test_extensions_are_judged_as_all_counts_judge_them(block: int) -> None:
    proved = [result for seed in range(40 * block, 40 * block + 40) for result in judged_extension(seed)]
    assert proved.count(True) > 30
    assert proved.count(False) > 30


def judged_extension(seed: int) -> Iterator[bool]:
    """Whether right and wrong lists of one extension are proved."""
    dice, pieces, tie_break, options = random_extension(seed)
    words, inherited = WordCounts.from_items(pieces.items()), options["inherited"]
    min_count, num_merges = dice.choice((1, 1, 2)), len(inherited) + dice.choice((0, 5, 60))
    rules: dict[str, Any] = {"tie_break": tie_break, "min_count": min_count}
    merges = naive_extending.train(words, num_merges, **rules, **options)
    unvetoed = naive_extending.train(words, num_merges, **rules, inherited=inherited)
    for claimed in (merges, spoilt(merges, dice), spoilt(merges, dice), merges[:-1], unvetoed):
        want = expected(words, claimed, num_merges, **rules, **options)
        result = judge(words, claimed, num_merges, **rules, **options, **dice.choice(SETTINGS))
        if len(inherited) <= want.right < min(len(claimed), num_merges):
            assert result == want, (seed, claimed)
        assert result.proved == (claimed == merges), (seed, claimed)
        assert tokens_left(words, claimed) == TrueCounts(words, inherited=claimed).text.tokens, (seed, claimed)
        yield result.proved


def test_own_vetoes_and_lists_that_spell_a_token_twice_cannot_be_judged() -> None:
    assert not can_judge((), lambda left, right: left == right)
    assert not can_judge([(b"a", b"b"), (b"a", b"b")])
    assert not can_judge([(b"ab", b"c")])
    assert can_judge([(b"a", b"b"), (b"ab", b"c")], vetoes.superbpe)


# The same lists in a program, whole and broken


def driver_case(
    dice: random.Random, table: dict[bytes, int], claimed: Sequence[Merge], numbers: Sequence[int], *inherited: object
) -> str:
    """A case for tests/support/replay_driver.cpp; `numbers` are num_merges, min_count and the tie-break's."""
    claims = [number for pair in zip(*token_ids(claimed), strict=True) for number in pair]
    settings = dice.choice(((1, 0), (30, 0), (1e9, 1), (0, 2)))
    return case_text((*numbers, *settings, *inherited, len(claims) // 2, *claims), table)


def driver_cases(folder: Path, seeds: range) -> tuple[Path, list[str]]:
    """A file of cases, and the lines that the driver should print."""
    texts, want = [], []
    for seed in seeds:
        for words, merges, num_merges, tie_break, min_count in lists(seed):
            known = len(token_ids(merges)[0])
            requested = num_merges if known == len(merges) else min(known, num_merges)
            numbers = (requested, min_count, list(TieBreak).index(tie_break))
            claimed = merges[:num_merges]
            texts.append(driver_case(random.Random(seed), dict(words), claimed, numbers, *veto_numbers(None), 0))
            result = expected(words, merges, num_merges, tie_break, min_count=min_count)
            want.append(f"{result.right} {int(result.too_few)}")
    (folder / "cases").write_text("".join(texts))
    return folder / "cases", want


def extension_case(seed: int) -> tuple[str, str]:
    """A case of an extension, and the line that the driver should print; half of them lack the first new merge."""
    dice, pieces, tie_break, options = random_extension(seed)
    num_merges = len(options["inherited"]) + dice.choice((5, 60))
    merges = naive_extending.train(WordCounts.from_items(pieces.items()), num_merges, tie_break=tie_break, **options)
    claimed, stays = inherited_first(merges, options["inherited"], options["inheriting"])
    new = claimed[len(stays) :]
    wrong = dice.random() < 0.5 and len(new) > 2 and len(set(new[:2])) == 2
    claimed = [*claimed[: len(stays)], *new[1:]] if wrong else claimed
    number = len(token_ids(claimed)[0])
    inherited = (*veto_numbers(options["veto"]), len(stays), *map(int, stays))
    text = driver_case(dice, pieces, claimed, (number, 1, list(TieBreak).index(tie_break)), *inherited)
    right = len(stays) if wrong and number > len(stays) else number
    return text, " ".join(map(str, [right, 0, *map(int, stays if options["inheriting"] == "met" else [])]))


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    program = sanitized("replay_driver.cpp", "address,undefined", tmp_path, f"-I{NATIVE}")
    cases, want = driver_cases(tmp_path, range(2000, 2100))
    ended = subprocess.run([program, cases], capture_output=True, text=True)
    assert (ended.stderr, ended.returncode, ended.stdout.splitlines()) == ("", 0, want)
    extensions = [extension_case(seed) for seed in range(3000, 3300)]
    cases.write_text("".join(text for text, _ in extensions))
    ended = subprocess.run([program, cases], capture_output=True, text=True)
    assert (ended.stderr, ended.returncode) == ("", 0)
    for printed, (_, line) in zip(ended.stdout.splitlines(), extensions, strict=True):
        # Which merges that are kept were met is printed too, and not compared.
        assert f"{printed} ".startswith(f"{line} ")


# A line of the replay, and what breaks it
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


@pytest.fixture(scope="module")
def many_cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    return driver_cases(tmp_path_factory.mktemp("cases"), range(200))


@pytest.mark.slow
@pytest.mark.parametrize(("header", "right", "wrong"), BROKEN)
def test_broken_replay_is_noticed(
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
