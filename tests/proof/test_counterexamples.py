"""A failure is made small and becomes a test to paste, which fails for that trainer and for no other reason."""

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

from harness.conformance import counter_checks, trainer_checks
from harness.proof.checks import Outcome, TrainerCall, call_of, outcome_of, smallest_test
from harness.proof.counter_checks import CounterCall
from variants import heap, naive
from variants.contract import TieBreak

CHECKS = {check.name: check for check in trainer_checks()}


def error_of(test: str, *arguments: Any) -> type[BaseException] | None:
    """What a pasted test raises; None if it passes."""
    module: dict[str, Any] = {}
    exec(test, module)
    (function,) = [value for name, value in module.items() if name.startswith("test_")]
    try:
        function(*arguments)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("train", [sabotaged.right_to_left, sabotaged.leaves_out_pairs_that_occur_once])
def test_wrong_trainer_gets_a_test_that_fails_for_it_alone(train: Callable[..., Any]) -> None:
    outcomes = (outcome_of(check, train) for check in CHECKS.values())
    test = smallest_test(next(outcome for outcome in outcomes if outcome.counterexample), train)
    assert error_of(test) is AssertionError, test
    (name,) = re.findall(r"from sabotaged import (\w+)", test)
    of_the_definition = test.replace(f"from sabotaged import {name}", f"from variants.naive import train as {name}")
    assert error_of(of_the_definition) is None, of_the_definition


def test_smallest_words_and_merges_that_show_the_failure() -> None:
    words = {b"\x00\xff\xff\xff\xff\xff": 7, b"low": 5, b"lower": 2, b"zzz": 2**40}
    smallest = TrainerCall(words, 99).smallest(sabotaged.right_to_left)
    assert (smallest.words, smallest.num_merges) == ({b"zzz": 1}, 2)
    assert smallest.as_test(*call_of(sabotaged.right_to_left)) == (
        "def test_these_words_give_the_defined_merges():\n"
        "    from variants.contract import WordCounts\n"
        "    from sabotaged import right_to_left\n"
        "\n"
        "    word_counts = WordCounts.from_items([(b'zzz', 1)])\n"
        "    merges = right_to_left(word_counts, 2)\n"
        "    assert merges == [(b'z', b'z'), (b'zz', b'z')]\n"
    )
    assert TrainerCall({b"a" * 600: 1}, 200).smallest(sabotaged.right_to_left).words == {b"aaa": 1}


def test_options_of_the_call_are_part_of_the_test() -> None:
    wrong = TrainerCall({b"ab": 3, b"cd": 3}, 2, TieBreak.RAW_BYTES, min_count=2)
    test = wrong.as_test(*call_of(functools.partial(heap.train, push="grown")))
    assert "    from variants.contract import TieBreak, WordCounts\n    from variants.heap import train\n" in test
    assert "train(word_counts, 2, push='grown', tie_break=TieBreak.RAW_BYTES, min_count=2)" in test
    extending = TrainerCall({b"abc": 3}, 2, inherited=((b"a", b"b"),), inheriting="met", veto="bytes:3")
    test = extending.as_test(*call_of(naive.train))
    assert error_of(test) is TypeError
    assert "    inherited = [(b'a', b'b')]\n" in test
    assert "inherited=inherited, inheriting='met', veto=vetoes.named('bytes:3')" in test
    long = TrainerCall({bytes((65 + number,)) * 9: number + 1 for number in range(40)}, 1)
    assert error_of(long.as_test(*call_of(naive.train))) is None
    assert max(map(len, long.as_test(*call_of(naive.train)).splitlines())) <= 120


@pytest.mark.parametrize(
    ("count", "case"),
    [
        (sabotaged_counters.counts_nothing, "F02"),
        (sabotaged_counters.cuts_anywhere, "F14"),
        (sabotaged_counters.names_the_offset_in_the_document, "first_of_two_invalid"),
    ],
)
def test_wrong_counter_gets_a_test_that_fails_for_it(count: Callable[..., Any], case: str, tmp_path: Path) -> None:
    (check,) = [check for check in counter_checks() if check.name == f"check_worked_file[{case}]"]
    outcome = outcome_of(check, count)
    test = smallest_test(outcome, count)
    assert error_of(test, tmp_path) is AssertionError, test
    assert isinstance(outcome.counterexample, CounterCall)
    assert len(outcome.counterexample.smallest(count).content) <= 8


def test_failure_without_a_counterexample_has_no_test() -> None:
    outcome = outcome_of(CHECKS["check_leaves_input_alone"], ill_mannered.changes_its_input)
    assert smallest_test(outcome, ill_mannered.changes_its_input) == ""
    long = TrainerCall({b"%06d" % number: 1 for number in range(3000)}, 1)  # which passes, so it is not shrunk
    assert smallest_test(Outcome("check_x", "g", "failed", "", long), naive.train) == ""


def test_input_that_does_not_fail_again_is_not_shrunk() -> None:
    words = TrainerCall({b"ab": 1}, 5)
    assert words.smallest(naive.train) is words
