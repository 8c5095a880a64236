"""flat learns the definition's merges in every setting, and behaves: it stops, refuses, reports and runs in threads.

The conformance suite runs over it too, as over every variant. Here are the settings that suite does not know: each
idea switched off, guesses so high that the text must be counted again, wide ids and positions, and the sanitizers.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from checked import passing, quick_ones, slow_ones
from sanitizers import OF_FLAT, case_text, printed_merges, sanitized

from harness.conformance import trainer_checks
from harness.proof.checks import Check
from variants import flat, heap, naive
from variants.contract import Merge, Merges, Meter, TieBreak, WordCounts
from variants.words import merge_pair

flat_native = pytest.importorskip("variants.native._flat", reason="the compiled part is not built")

HUGE_GUESS = 1e9
"""Guesses the last merge's count far too high, so that pairs that are needed are left out and found missing."""


def learn(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter | None = None,
    tie_break: TieBreak = TieBreak.GREATEST_BYTES,
    min_count: int = 1,
    **settings: Any,
) -> Sequence[Merge]:
    """The compiled function itself, which has settings that the variant does not offer."""
    return flat_native.train(  # type: ignore[no-any-return]
        [word_counts.data, word_counts.offsets, word_counts.counts],
        num_merges,
        meter or Meter(),
        tie_break=list(TieBreak).index(tie_break),
        min_count=min_count,
        **{"threads": 1, **settings},
    )


def random_table(seed: int) -> dict[bytes, int]:
    """Up to thirty words over one to four symbols, short or long, a few with weights beyond 16 and 32 bits."""
    dice = random.Random(seed)
    alphabet = dice.sample((0x00, 0x01, ord("a"), ord("b"), 0xFF), dice.randint(1, 4))
    longest = dice.choice((4, 16, 60))
    heavy = (2**16 - 1, 2**16, 2**16 + 1, 2**31, 2**32 + 1, 2**55)
    return {
        bytes(dice.choices(alphabet, k=dice.randint(1, longest))): (
            dice.randint(1, 6) if dice.random() < 0.95 else dice.choice(heavy)
        )
        for _ in range(dice.randint(1, 30))
    }


@functools.cache
def random_words(seed: int) -> WordCounts:
    return WordCounts.from_items(random_table(seed).items())


@functools.cache
def chain_of_letters(length: int, seed: int = 0) -> WordCounts:
    """One long word of four letters at random."""
    return WordCounts.from_items([(bytes(random.Random(seed).choices(b"ACGT", k=length)), 1)])


def test_learns_what_the_definition_learns() -> None:
    for seed in range(30):
        for tie_break in TieBreak:
            min_count = 1 + seed % 3
            expected = naive.train(random_words(seed), 100, tie_break=tie_break, min_count=min_count)
            assert flat.train(random_words(seed), 100, tie_break=tie_break, min_count=min_count) == expected, seed


@pytest.mark.parametrize("choose", [quick_ones, pytest.param(slow_ones, marks=pytest.mark.slow)])
@pytest.mark.parametrize("idea", flat.IDEAS)
def test_every_switch_conforms(idea: str, choose: Callable[[list[Check]], list[Check]]) -> None:
    passing(choose(trainer_checks()), functools.partial(flat.train, **{idea: False}))  # type: ignore[arg-type]


def settings_at_random(dice: random.Random) -> dict[str, Any]:
    return {
        "ideas": dice.choice((7, dice.randrange(8))),
        "wide_symbols": dice.random() < 0.4,
        "wide_positions": dice.random() < 0.4,
        "threads": dice.randint(1, 5),
        "part": 16,
    }


def learn_in_any_setting(seed: int) -> None:
    dice = random.Random(seed)
    words = random_words(seed)
    tie_break, min_count = dice.choice(list(TieBreak)), dice.choice((1, 1, 2, 5))
    num_merges = dice.choice((5, 20, 100, 1000))
    expected = naive.train(words, num_merges, tie_break=tie_break, min_count=min_count)
    for guess_scale in (1.0, 30.0, HUGE_GUESS):
        settings = settings_at_random(dice)
        learned = learn(words, num_merges, None, tie_break, min_count, guess_scale=guess_scale, **settings)
        assert learned == expected, (seed, settings)


def test_any_mixture_of_settings_gives_the_same_merges() -> None:
    for seed in range(200, 250):
        learn_in_any_setting(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_fuzzed_tables_in_every_setting(block: int) -> None:
    for case in range(100):
        learn_in_any_setting(10_000 + 100 * block + case)


def test_guess_that_was_too_high_is_noticed_and_fixed() -> None:
    for seed in range(300, 306):
        dice = random.Random(seed)
        words = WordCounts.from_items((bytes(dice.choices(b"abcd", k=9)), dice.randint(1, 9)) for _ in range(60))
        meter = Meter()
        assert learn(words, 150, meter, guess_scale=HUGE_GUESS) == naive.train(words, 150)
        assert meter.tallies["rescans"] > 0


def test_repeated_words_break_the_certain_bound_but_not_the_merges() -> None:
    # Ten times the same two words: ten are finished by one merge, which the bound on the last count leaves out.
    words = [b"ab", b"cd"] * 10 + [b"xyz", b"xyw"]
    counts = [9] * 20 + [1, 1]
    table = WordCounts.from_columns(words, counts)
    assert flat.train(table, 6) == naive.train(table, 6)


def test_long_words() -> None:
    for word in (b"a" * 1000, b"ab" * 500, b"aab" * 300, bytes(1000), b"\xff\x00" * 400 + b"\xff"):
        words = WordCounts.from_items([(word, 3)])
        assert flat.train(words, 40) == naive.train(words, 40)
    words = chain_of_letters(2000)
    assert flat.train(words, 100) == naive.train(words, 100)


@pytest.mark.slow
def test_every_pair_of_bytes_at_once() -> None:
    words = WordCounts.from_items((bytes(pair), 1) for pair in itertools.product(range(256), repeat=2))
    assert flat.train(words, 20) == naive.train(words, 20)


def tied_table(dice: random.Random) -> Iterator[bytes]:
    """Words of weight 1, of which many pairs have one count."""
    letters = dice.choice((b"ab", b"ACGT", b"0123456789abcdef", bytes(range(256))))
    word = bytes(dice.choices(letters, k=dice.randint(2, 80)))
    fibonacci = [b"a", b"b"]
    for _ in range(dice.randint(2, 8)):
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    yield from dice.choice(
        (
            [word],
            [word * 3],
            [word, word[::-1]],
            [fibonacci[-1]],
            [word[:length] for length in range(1, len(word) + 1)],
            [word[start:] for start in range(len(word))],
            [b"%08x" % dice.getrandbits(32) for _ in range(20)],
            [letters[:1] * length for length in dice.sample(range(1, 60), 8)],
            [bytes(dice.choices(letters, k=dice.randint(1, 9))) for _ in range(30)],
            [b"".join(b"%d" % number for number in range(dice.randint(10, 50)))],
        )
    )


def check_ties(seeds: range) -> None:
    for seed in seeds:
        dice = random.Random(seed)
        words = WordCounts.from_items((word, 1) for word in tied_table(dice))
        num_merges, min_count = dice.choice((3, 20, 1000)), dice.choice((1, 1, 2))
        for tie_break in TieBreak:
            expected = naive.train(words, num_merges, tie_break=tie_break, min_count=min_count)
            learned = flat.train(words, num_merges, tie_break=tie_break, min_count=min_count)
            assert learned == expected, (seed, tie_break)


def test_ties_are_broken_as_defined() -> None:
    check_ties(range(60))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_fuzzed_ties_are_broken_as_defined(block: int) -> None:
    check_ties(range(1000 + 250 * block, 1250 + 250 * block))


@pytest.mark.parametrize("tie_break", TieBreak, ids=lambda tie: tie.value)
def test_a_token_that_grows_to_the_end_of_a_long_word_needs_little_memory(tie_break: TieBreak) -> None:
    """Spelled at every stage it would take gigabytes; sorted in, its neighbours would take minutes."""
    words = chain_of_letters(300_000)
    merges = flat.train(words, 10**6, tie_break=tie_break)
    assert isinstance(merges, Merges)
    assert sum(map(len, merges[len(merges) - 1])) == 300_000


def test_refuses_to_run_in_no_thread() -> None:
    with pytest.raises(ValueError, match="threads is 0; it is 1 or more"):
        flat.train(WordCounts.from_items([(b"ab", 1)]), 1, threads=0)


def test_every_width_learns_the_same_and_counts_the_same_work() -> None:
    """In the second table most pairs get their lists later, from what is left of the text, by all threads."""
    dice = random.Random(0)
    many = ((dice.randbytes(1) + b"-" * dice.randint(0, 40), seed) for seed in range(1, 5000))
    letters = ((bytes(dice.choices(range(30), k=12)), dice.randint(1, 3)) for _ in range(1500))
    for items, num_merges, part in ((many, 100, 1000), (letters, 400, 64)):
        words = WordCounts.from_items(items)
        learned = []
        for threads in (1, 2, 3, 16):
            meter = Meter()
            learned.append((learn(words, num_merges, meter, threads=threads, part=part), meter.tallies))
        assert learned[0][0] == heap.train(words, num_merges)
        assert [merges for merges, _ in learned] == [learned[0][0]] * 4
        assert part != 1000 or all(each == learned[0] for each in learned)


def test_words_are_sorted_where_that_is_worth_it() -> None:
    """Few of one weight by comparing, many digit by digit."""
    for number in (100, 5000):
        dice = random.Random(number)
        drawn = (dice.randbytes(dice.randint(1, 2)) + b"a" * dice.randint(1, 6) for _ in range(number))
        words = WordCounts.from_items((word, 1 + dice.randint(0, 1)) for word in drawn)
        assert learn(words, 60, part=1) == learn(words, 60) == heap.train(words, 60)


def test_phases_and_tallies_are_reported_and_tallies_are_repeatable() -> None:
    words = chain_of_letters(20_000)
    first, second = Meter(), Meter()
    merges = flat.train(words, 300, first)
    flat.train(words, 300, second)
    assert set(first.seconds) == {"convert", "init", "max", "update"}
    assert first.tallies == second.tallies
    assert first.followed == merges
    token, ids = 256, list(bytes(words.data))
    numbers = {bytes((byte,)): byte for byte in range(256)}
    for left, right in merges:
        ids = merge_pair(ids, (numbers[left], numbers[right]), token)
        numbers[left + right], token = token, token + 1
    assert first.tallies["occurrences_merged"] == 20_000 - len(ids)


def test_pruning_keeps_fewer_pairs() -> None:
    dice = random.Random(0)
    words = WordCounts.from_items((bytes(dice.choices(b"abcdefgh", k=6)), 1 + seed) for seed in range(2000))
    pruned, unpruned = Meter(), Meter()
    flat.train(words, 500, pruned)
    flat.train(words, 500, unpruned, pruning=False)
    assert pruned.tallies["rescans"] == unpruned.tallies["rescans"] == 0
    assert pruned.tallies["pairs_kept"] < unpruned.tallies["pairs_kept"]


@pytest.mark.slow
def test_each_allocation_that_fails_is_told_and_nothing_is_left_behind(tmp_path: Path) -> None:
    functions = ("malloc", "calloc", "realloc", "posix_memalign")
    wrapped = [f"-Wl,--wrap={function}" for function in functions]
    program = sanitized("failing_driver.cpp", "address,undefined", tmp_path, *wrapped)
    told = {**os.environ, "ASAN_OPTIONS": "alloc_dealloc_mismatch=0"}  # `new` is the driver's own, by malloc
    ended = subprocess.run([program], capture_output=True, text=True, env=told, check=False)
    assert (ended.stderr, ended.returncode) == ("", 0), ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("tie_break", [TieBreak.GREATEST_BYTES, TieBreak.RAW_BYTES], ids=lambda tie: tie.value)
def test_more_merges_than_sixteen_bits_number(tie_break: TieBreak) -> None:
    dice = random.Random(1)
    words = WordCounts.from_items((dice.randbytes(4), dice.randint(1, 9)) for _ in range(30_000))
    merges = flat.train(words, 2**20, tie_break=tie_break)
    assert len(merges) > 2**16
    assert merges == heap.train(words, 2**20, tie_break=tie_break)


def driver_cases(seeds: range) -> Iterator[tuple[str, Mapping[bytes, int], int, TieBreak]]:
    """Cases for tests/support/flat_driver.cpp: as it reads them, and what they were made of."""
    for seed in seeds:
        dice = random.Random(seed)
        # Of the heaviest words even the sums of their ends pass 63 bits.
        table = random_table(seed) if seed % 50 else {b"ab": 2**62, b"cb": 2**62 - 1}
        num_merges, tie_break = dice.choice((5, 50, 1000)), dice.choice(list(TieBreak))
        switches = 0b00111 if dice.random() < 0.5 else dice.randrange(32)
        threads, guess_scale = dice.randint(1, 3), dice.choice((1, 30, 1e9))
        numbers = (num_merges, 1, list(TieBreak).index(tie_break), threads, switches, guess_scale, 0)
        yield case_text(numbers, table), table, num_merges, tie_break


@pytest.mark.slow
@pytest.mark.parametrize("sanitizers", OF_FLAT)
def test_sanitizers_find_nothing(sanitizers: str, programs: Path, tmp_path: Path) -> None:
    threads = 3 if sanitizers == "thread" else 1
    listed = list(driver_cases(range(20_000, 20_000 + 300 // threads)))
    cases = tmp_path / "cases"
    cases.write_text("".join(text for text, *_ in listed))
    answers = printed_merges(sanitized("flat_driver.cpp", sanitizers, programs), cases, str(threads), first_byte=2)
    for merges, (_, table, num_merges, tie_break) in zip(answers, listed, strict=True):
        assert merges == naive.train(WordCounts.from_items(table.items()), num_merges, tie_break=tie_break)
