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
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from random_extensions import random_list, random_pieces, random_table, spoilt
from sanitizers import HEAVIEST, HERE, case_text, sanitized, veto_numbers
from workbench import first_fast

from harness.proof.prove import (
    can_judge,
    columns_of,
    inherited_first,
    judge,
    token_ids,
    tokens_left,
)
from harness.proof.true_counts import TrueCounts, replay
from variants import heap, naive, naive_extending, vetoes
from variants.contract import Merge, TieBreak, WordCounts
from variants.vetoes import limits_of

_replay = pytest.importorskip(
    "harness.proof.native._replay", reason="the compiled part is not built"
)

NATIVE = HERE.parents[1] / "harness" / "proof" / "native"
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


def expected(
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


def lists(seed: int) -> Iterator[Case]:
    """Right and wrong lists of merges for a table, how many were requested, and under which
    rules.
    """
    dice = random.Random(seed)
    words = WordCounts.from_items(random_table(dice).items())
    for tie_break in TieBreak:
        min_count, num_merges = dice.choice((1, 1, 2, 5)), dice.choice((3, 10, 60))
        rules: dict[str, Any] = {"tie_break": tie_break, "min_count": min_count}
        merges = naive.train(words, num_merges, **rules)
        yield words, merges, num_merges, rules
        yield words, spoilt(merges, dice), num_merges, rules
        others = {
            "tie_break": dice.choice(list(TieBreak)),
            "min_count": dice.choice((1, min_count)),
        }
        yield words, merges, num_merges, others


@pytest.mark.parametrize("block", first_fast(range(8)))
def test_first_wrong_merge_is_the_one_that_all_counts_show(block: int) -> None:
    wrong = 0
    for seed in range(20 * block, 20 * block + 20):
        for number, (words, merges, num_merges, rules) in enumerate(lists(seed)):
            settings = SETTINGS[(seed + number) % len(SETTINGS)]
            result = judge(words, merges, num_merges, **rules, **settings)
            assert result == expected(words, merges, num_merges, **rules), (
                seed,
                number,
                merges,
                settings,
            )
            wrong += result != (len(merges), False)
    assert wrong > 20


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(
    "items",
    [
        *(
            [(word, 3)]
            for word in (
                b"a" * 999,
                b"ab" * 700,
                b"aab" * 400,
                bytes(2000),
                b"\xff\x00" * 600 + b"\xff",
            )
        ),
        # Words of all bytes, with weights of all sizes.
        [
            (
                dice.randbytes(dice.randint(1, 3)) + b"-" * dice.randint(0, 9),
                1 + int(dice.paretovariate(0.3)) % 2**40,
            )
            for dice in [random.Random(0)]
            for _ in range(10_000)
        ],
    ],
    ids=["run", "pairs", "threes", "zeros", "two bytes", "many words"],
)
def test_long_words_and_large_tables(
    items: list[tuple[bytes, int]], settings: dict[str, Any]
) -> None:
    words = WordCounts.from_items(items)
    merges = heap.train(words, 150)
    number = len(merges)
    worse = [*merges[:-2], merges[-1], merges[-2]]
    for claimed, result in (
        (merges, (number, False)),
        (merges[:-1], (number - 1, True)),
        (worse, (number - 2, False)),
    ):
        assert judge(words, claimed, number, tie_break=GREATEST, **settings) == result
        assert expected(words, claimed, number, tie_break=GREATEST) == result


@pytest.mark.parametrize("items", [[], [(b"a", 5)], [(b"ab", 1)]])
@pytest.mark.parametrize("merges", [[], [(b"a", b"a")]])
@pytest.mark.parametrize("num_merges", [0, 1, 10])
def test_lists_of_next_to_nothing(
    items: list[tuple[bytes, int]], merges: list[Merge], num_merges: int
) -> None:
    words = WordCounts.from_items(items)
    want = expected(words, merges, num_merges, tie_break=GREATEST)
    assert judge(words, merges, num_merges, tie_break=GREATEST) == want


def test_counts_that_may_overflow_are_refused() -> None:
    words = WordCounts.from_columns([b"abc", b"ab"], [2**62, 1])
    with pytest.raises(
        ValueError, match=r"more than 2\*\*63 - 1 adjacent positions by weight; divide the counts"
    ):
        judge(words, [(b"a", b"b")], 1, tie_break=GREATEST)


def test_columns_of_unequal_length_are_refused() -> None:
    words, claims = WordCounts.from_items([(b"ab", 2)]), array("I", [97])
    rules: dict[str, Any] = {"num_merges": 1, "min_count": 1, "tie_break": 0, "on_progress": print}
    with pytest.raises(ValueError, match="1 counts need 2 offsets, not 1"):
        _replay.judge(words.data, words.offsets[:1], words.counts, claims, claims, **rules)
    with pytest.raises(ValueError, match="each merge has a left and a right token"):
        _replay.judge(words.data, words.offsets, words.counts, claims, claims * 2, **rules)


def test_exception_of_on_progress_is_raised() -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    words = WordCounts.from_items([(bytes(random.Random(0).choices(b"ACGT", k=200_000)), 1)])
    with pytest.raises(KeyboardInterrupt):
        judge(words, [(b"A", b"C")], 2, tie_break=GREATEST, on_progress=interrupt)


# Extending


def extensions(seed: int) -> Iterator[Case]:
    """Right and wrong lists of a trainer that goes on from inherited merges; the first is right."""
    dice = random.Random(seed)
    pieces = random_pieces(dice)
    inherited, inheriting = random_list(dice, pieces)
    veto = vetoes.named(dice.choice(VETOES))
    if not can_judge(inherited, veto):
        yield from extensions(seed + 1_000_000)
        return
    words = WordCounts.from_items(pieces.items())
    num_merges = len(inherited) + dice.choice((0, 5, 60))
    rules: dict[str, Any] = {
        "tie_break": dice.choice(list(TieBreak)),
        "min_count": dice.choice((1, 1, 2)),
    }
    options = {**rules, "inherited": inherited, "inheriting": inheriting, "veto": veto}
    merges = naive_extending.train(words, num_merges, **options)
    unvetoed = naive_extending.train(words, num_merges, **rules, inherited=inherited)
    for claimed in (merges, spoilt(merges, dice), spoilt(merges, dice), merges[:-1], unvetoed):
        yield words, claimed, num_merges, options


@pytest.mark.parametrize("block", first_fast(range(50)))
def test_extensions_are_judged_as_all_counts_judge_them(block: int) -> None:
    proved = []
    for seed in range(40 * block, 40 * block + 40):
        cases = list(extensions(seed))
        for number, (words, claimed, num_merges, options) in enumerate(cases):
            want = expected(words, claimed, num_merges, **options)
            result = judge(
                words, claimed, num_merges, **options, **SETTINGS[(seed + number) % len(SETTINGS)]
            )
            if len(options["inherited"]) <= want[0] < min(len(claimed), num_merges):
                assert result == want, (seed, claimed)
            proved.append(result == (len(claimed), False))
            assert proved[-1] == (claimed == cases[0][1]), (seed, claimed)
            assert (
                tokens_left(words, claimed) == TrueCounts(words, inherited=claimed).text.tokens
            ), (seed, claimed)
    assert proved.count(True) > 30
    assert proved.count(False) > 30


def test_own_vetoes_and_lists_that_spell_a_token_twice_cannot_be_judged() -> None:
    assert not can_judge((), lambda left, right: left == right)
    assert not can_judge([(b"a", b"b"), (b"a", b"b")])
    assert not can_judge([(b"ab", b"c")])
    assert can_judge([(b"a", b"b"), (b"ab", b"c")], vetoes.superbpe)


# The same lists in a program, whole and broken


def driver_cases(path: Path, cases: Iterable[Case]) -> list[str]:
    """Write cases for tests/support/replay_driver.cpp; returns the lines that it should print, as
    the module judges.
    """
    texts, want = [], []
    for number, (words, merges, num_merges, options) in enumerate(cases):
        tie_break, veto = list(TieBreak).index(options["tie_break"]), options.get("veto")
        claimed, stays = inherited_first(
            merges, options.get("inherited", ()), options.get("inheriting", "kept")
        )
        lefts, rights = token_ids(claimed[: num_merges + stays.count(False)])
        if len(lefts) < len(stays):
            continue
        right, too_few, _, _, _, met = _replay.judge(
            *columns_of(words),
            lefts,
            rights,
            num_merges=num_merges,
            min_count=options["min_count"],
            tie_break=tie_break,
            on_progress=lambda _: None,
            stays=bytes(stays),
            veto=limits_of(veto),
        )
        want.append(" ".join(map(str, [right, int(too_few), *map(int, met)])))
        settings = ((1, 0), (30, 0), (1e9, 1), (0, 2))[number % 4]
        inherited = (*veto_numbers(veto), len(stays), *map(int, stays))
        claims = [token for pair in zip(lefts, rights, strict=True) for token in pair]
        numbers = (
            num_merges,
            options["min_count"],
            tie_break,
            *settings,
            *inherited,
            len(lefts),
            *claims,
        )
        texts.append(case_text(numbers, dict(words)))
    path.write_text("".join(texts))
    return want


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    program = sanitized("replay_driver.cpp", "address,undefined", tmp_path, f"-I{NATIVE}")
    plain = (case for seed in range(2000, 2100) for case in lists(seed))
    extending = (case for seed in range(3000, 3300) for case in extensions(seed))
    heaviest = WordCounts.from_items(HEAVIEST.items())
    rules = {"tie_break": GREATEST, "min_count": 1}
    heavy: Case = heaviest, [(b"a", b"b")], 5, rules
    want = driver_cases(tmp_path / "cases", itertools.chain([heavy], plain, extending))
    ended = subprocess.run([program, tmp_path / "cases"], capture_output=True, text=True)
    assert (ended.stderr, ended.returncode, ended.stdout.splitlines()) == ("", 0, want)


# The header, a line of it, and what breaks it
BROKEN = (
    (
        "replay_order",
        "last_taken_.empty() && !tokens_.before(pair",
        "last_taken_.empty() && tokens_.before(pair",
    ),
    ("replay_order", "return found != last_taken_.end() && ", "return false && "),
    (
        "replay_order",
        "starts_[one] > starts_[other] ? 1 : -1;",
        "starts_[one] < starts_[other] ? 1 : -1;",
    ),
    ("replay_order", "huggingface_id(one) < huggingface_id(other)", "one < other"),
    ("replay", "if (pair.key) examine(pair);", "(void)pair;"),
    (
        "replay",
        "        examine(*pair);\n        pair->count -= weight;",
        "        pair->count -= weight;",
    ),
    (
        "replay",
        "token == merged ? key_of(right, left) : key_of(token, left)",
        "key_of(token, left)",
    ),
    ("replay", "after == step.merged ? static_cast<Symbol>(separator) : after;", "after;"),
    ("replay", "symbols[position + left_length] = static_cast<Symbol>(hole);", ""),
    ("replay", "if (left == right && (symbols[position]", "if (false && (symbols[position]"),
    ("replay", "if (count != counts_.back()) tied_.clear();", ""),
    ("replay", "highest_left_out_ = std::max(highest_left_out_, count);", ""),
    (
        "replay",
        "*before.next = occurrence.position - before.offset;",
        "*before.next = occurrence.position;",
    ),
    ("replay_text", "std::sort(heavy.rbegin(), heavy.rend());", ""),
)


@pytest.fixture(scope="module")
def many_cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("cases") / "cases"
    return path, driver_cases(path, (case for seed in range(200) for case in lists(seed)))


@pytest.mark.slow
@pytest.mark.parametrize(("header", "right", "wrong"), BROKEN)
def test_broken_replay_is_noticed(
    tmp_path: Path, many_cases: tuple[Path, list[str]], header: str, right: str, wrong: str
) -> None:
    headers = tmp_path / "native"
    shutil.copytree(NATIVE, headers, ignore=shutil.ignore_patterns("*.so", "_*"))
    broken = headers / f"{header}.hpp"
    assert broken.read_text().count(right) == 1
    broken.write_text(broken.read_text().replace(right, wrong))
    program = sanitized(
        "replay_driver.cpp", "undefined", tmp_path, f"-I{headers}", "-O0", "-fno-sanitize=all"
    )
    cases, want = many_cases
    try:
        ended = subprocess.run([program, cases], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return
    assert (ended.returncode, ended.stdout.splitlines()) != (0, want)
