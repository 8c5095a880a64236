"""A failure is made small and comes as a test to be pasted, which fails for that trainer and for no other reason."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ill_mannered
import pytest
import sabotaged
import sabotaged_counters
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from workbench import first_fast

from harness.common import errors
from harness.conformance import check_trainer, check_word_counter, main, trainer_checks
from harness.proof.checks import CheckFailed, Outcome, outcome_of
from harness.proof.counter import counter_checks
from harness.proof.counterexamples import WrongFile, WrongWords, cuts, pasted, shrunk, smaller_text, smaller_words
from harness.proof.suite import counter_checks_of
from variants import heap, naive
from variants.contract import TieBreak, WordCounts

WRONG_TRAINERS = [
    sabotaged.non_overlapping_count,
    sabotaged.right_to_left,
    sabotaged.heap_without_refresh,
    sabotaged.nul_as_truth_value,
    sabotaged.leaves_out_pairs_that_occur_once,
]
CHECKS = {check.name: check for check in trainer_checks()}


def ended(test: str, *arguments: Any) -> type[BaseException] | None:
    """How a pasted test ends: by what it raises, or None if it passes."""
    written: dict[str, Any] = {}
    exec(test, written)
    (function,) = [value for name, value in written.items() if name.startswith("test_")]
    try:
        function(*arguments)
    except Exception as error:
        return type(error)
    return None


def mended(test: str) -> str:
    """The same test of the definition instead of a sabotaged trainer."""
    (name,) = re.findall(r"from sabotaged import (\w+)", test)
    return test.replace(f"from sabotaged import {name}", f"from variants.naive import train as {name}")


@pytest.mark.parametrize("train", WRONG_TRAINERS)
def test_a_wrong_trainer_comes_with_a_test_that_fails_for_it_alone(train: Callable[..., Any]) -> None:
    outcome = next(each for check in CHECKS.values() if (each := outcome_of(check, train)).shown_by is not None)
    test = pasted(outcome, train, "trainer_checks()")
    assert ended(test) is AssertionError, test
    assert ended(mended(test)) is None, mended(test)


def test_the_smallest_words_are_asked_for_no_more_merges_than_show_the_failure() -> None:
    words = {b"\x00\xff\xff\xff\xff\xff": 7, b"low": 5, b"lower": 2, b"zzz": 2**40}
    smallest = WrongWords(words, 99).smallest(sabotaged.right_to_left)
    assert (smallest.words, smallest.num_merges) == ({b"aaa": 1}, 2)
    assert smallest.as_test(sabotaged.right_to_left) == (
        "def test_these_words_give_the_defined_merges():\n"
        "    from variants.contract import WordCounts\n"
        "    from sabotaged import right_to_left\n"
        "\n"
        "    word_counts = WordCounts.from_items([(b'aaa', 1)])\n"
        "    merges = right_to_left(word_counts, 2)\n"
        "    assert merges == [(b'a', b'a'), (b'aa', b'a')]\n"
    )


def test_the_test_asks_for_what_the_failure_was_asked_with() -> None:
    wrong = WrongWords({b"ab": 3, b"cd": 3}, 2, TieBreak.RAW_BYTES, min_count=2)
    test = wrong.as_test(functools.partial(heap.train, push="grown"))
    assert "    from variants.contract import TieBreak, WordCounts\n    from variants.heap import train\n" in test
    assert "train(word_counts, 2, push='grown', tie_break=TieBreak.RAW_BYTES, min_count=2)" in test


def test_long_words_are_made_short_without_end_of_patience() -> None:
    outcome = outcome_of(CHECKS["check_long_word[run_of_600]"], sabotaged.right_to_left)
    assert isinstance(outcome.shown_by, WrongWords)
    assert outcome.shown_by.smallest(sabotaged.right_to_left).words == {b"aaa": 1}


@pytest.mark.parametrize(
    ("count", "width"),
    first_fast([(sabotaged_counters.cuts_anywhere, 2), (sabotaged_counters.counts_nothing, None)]),
)
def test_a_wrong_counter_comes_with_a_test_that_fails_for_it(
    count: Callable[..., Any], width: int | None, tmp_path: Path
) -> None:
    outcomes = check_word_counter(count, on_fail="collect", widths=[width or 1])
    outcome = next(outcome for outcome in outcomes if outcome.shown_by is not None)
    test = pasted(outcome, count, "counter_checks()")
    assert ended(test, tmp_path) is AssertionError, test
    assert isinstance(outcome.shown_by, WrongFile)
    assert len(outcome.shown_by.smallest(count).content) <= 8


def test_a_failure_without_words_comes_as_its_check() -> None:
    outcome = outcome_of(CHECKS["check_leaves_input_alone"], ill_mannered.changes_its_input)
    test = pasted(outcome, ill_mannered.changes_its_input, "trainer_checks()")
    assert "from ill_mannered import changes_its_input" in test
    assert "if check.name == 'check_leaves_input_alone']" in test
    assert ended(test) is CheckFailed
    bound = functools.partial(ill_mannered.changes_its_input, push="grown")
    assert "check(functools.partial(changes_its_input, push='grown'))" in pasted(outcome, bound, "trainer_checks()")


def test_an_input_too_long_to_paste_comes_as_its_check() -> None:
    outcome = Outcome("check_x", "g", "failed", "", Endless())
    assert "if check.name == 'check_x'" in pasted(outcome, naive.train, counter_checks_of([3]))
    assert "counter_checks([3])" in pasted(outcome, naive.train, counter_checks_of([3]))


class Endless:
    """A counterexample as long as a book."""

    def smallest(self, _: Callable[..., Any]) -> Endless:
        return self

    def as_test(self, _: Callable[..., Any]) -> str:
        return "x" * 10**6


def test_what_does_not_fail_again_is_left_as_it_was() -> None:
    words = WrongWords({b"ab": 1}, 5)
    assert words.smallest(naive.train) is words


@pytest.mark.slow
def test_every_door_shows_the_test(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "support")
    with pytest.raises(
        CheckFailed, match=r"(?s)C01.*to keep it as a test:.*def test_these_words_give.*right_to_left\("
    ):
        check_trainer(sabotaged.right_to_left)
    assert main(["sabotaged:right_to_left", "--tie-break", "greatest_bytes"]) == errors.MISMATCH
    shown = capsys.readouterr().out
    test = shown[shown.index("\ndef test_") : shown.index("\nworked examples ")]
    assert ended(test) is AssertionError


# Shrinking


def test_parts_that_are_left_out_are_never_all() -> None:
    assert list(cuts(0)) == list(cuts(1)) == []
    assert all(stop - start < 9 for start, stop in cuts(9))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(some.dictionaries(some.binary(min_size=1, max_size=8), some.integers(1, 2**40), max_size=5))
def test_every_smaller_table_is_one_of_words_and_smaller_at_last(words: dict[bytes, int]) -> None:
    for smaller in smaller_words(words):
        WordCounts.from_items(smaller.items())
        assert all(smaller) or not smaller
    assert shrunk(words, smaller_words, lambda _: True) == ({} if words else words)


@given(some.binary(max_size=40))
def test_what_must_stay_stays(content: bytes) -> None:
    def fails(text: bytes) -> bool:
        return text.count(b"x") >= 2

    found = shrunk(b"x" + content + b"x", smaller_text, fails)
    assert found == b"xx"


def test_effort_comes_to_an_end() -> None:
    tried = []

    def never(text: bytes) -> bool:
        tried.append(text)
        return False

    assert shrunk(b"x" * 1000, smaller_text, never, effort=10) == b"x" * 1000
    assert len(tried) == 10


def test_the_checks_of_other_widths_are_named() -> None:
    assert counter_checks_of([1, 2]) == "counter_checks([1, 2])"
    assert [check.name for check in counter_checks()] == [check.name for check in counter_checks([1, 2])]
