"""The conformance suite from Python and from a test file; a failure is made small and becomes a
test to paste.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ill_mannered
import pytest
import sabotaged
import sabotaged_counters
from checked import error_of
from sabotaged import right_to_left
from workbench import CHECKOUT

from harness.conformance import (
    check_conformance,
    counter_checks,
    parametrize_with_checks,
    trainer_checks,
)
from harness.proof.checks import (
    CheckFailed,
    Outcome,
    TrainerCall,
    call_of,
    outcome_of,
    smallest_failure,
)
from variants import heap, naive, naive_extending
from variants.contract import Merge, Meter, TieBreak, WordCounts

CHECKS = {check.name: check for check in trainer_checks()}
FILE_CHECKS = {check.name: check for check in counter_checks()}


def plain(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """A trainer that knows no meter, no tie-break and no min_count."""
    return sabotaged.honest(word_counts, num_merges)


def passes_on(word_counts: WordCounts, num_merges: int, **keywords: Any) -> list[Merge]:
    """A trainer that gets the meter by its name."""
    return naive_extending.train(word_counts, num_merges, **keywords)


def raising(word_counts: WordCounts, num_merges: int, *_: Meter, **options: Any) -> list[Merge]:
    raise KeyError(f"{len(word_counts)} words, {num_merges} merges, {options}")


def train(
    word_counts: WordCounts, num_merges: int, *meter: Meter, right: bool = True
) -> list[Merge]:
    """A trainer with a parameter."""
    return (sabotaged.honest if right else right_to_left)(word_counts, num_merges, *meter)


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (
            functools.partial(train, right=False),
            r"check_worked_example\[C01\]: first difference at merge 3",
        ),
        (
            raising,
            r"raised KeyError(.|\n)*word counts: {b'aaa': 2.*\ncalled for 23 merges, tie_break=greatest_bytes",
        ),
        (
            right_to_left,
            r"(?s)C01.*to keep it as a test:.*def test_these_words_give.*right_to_left\(",
        ),
        (
            sabotaged_counters.counts_nothing,
            r"(?s)check_worked_file\[F01\].*def test_this_file_gives",
        ),
    ],
)
def test_first_failure_is_raised(subject: Callable[..., Any], message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_conformance(subject)


@pytest.mark.slow
def test_keywords_that_a_trainer_does_not_take_are_skipped() -> None:
    outcomes = check_conformance(plain)
    skipped = {outcome.message for outcome in outcomes if outcome.status == "skipped"}
    assert {"the trainer takes no tie_break", "the trainer takes no min_count"} <= skipped
    assert Outcome("check_worked_example[C02]", "worked examples", "passed") in outcomes
    check_conformance(passes_on)


def test_import_needs_no_pytest() -> None:
    program = "import sys, harness.conformance; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=CHECKOUT)


# From a test file


def only(decorator: pytest.MarkDecorator, name: str) -> pytest.MarkDecorator:
    """The decorator with the check of this name."""
    parameters, cases = decorator.args
    return pytest.mark.parametrize(
        parameters, [case for case in cases if case.id.partition("-")[2] == name]
    )


@only(parametrize_with_checks([right_to_left]), "check_worked_example[C01]")
@pytest.mark.xfail(strict=True, raises=CheckFailed)
def test_wrong_trainer_fails(trainer: Callable[..., Any], check: Callable[..., None]) -> None:
    check(trainer)


@only(parametrize_with_checks([sabotaged_counters.honest]), "check_worked_file[F01]")
def test_word_counters_pass_their_checks(
    counter: Callable[..., Any], check: Callable[..., None]
) -> None:
    check(counter)


def test_ids_name_trainers_with_their_parameters_and_checks() -> None:
    trainers: list[Any] = [functools.partial(train, right=True), naive_extending.train]
    ids = [case.id for case in parametrize_with_checks(trainers).args[1]]
    assert "train/right=True-check_equals_definition[20]" in ids
    assert len(set(ids)) == len(ids)
    assert "train-check_extends[kept_first]" in ids, "it takes inherited merges"
    assert "train/right=True-check_extends[kept_first]" not in ids
    with pytest.raises(ValueError, match="a test function each"):
        parametrize_with_checks([train, sabotaged_counters.honest])


# A test to paste


@pytest.mark.parametrize("wrong", [right_to_left, sabotaged.leaves_out_pairs_that_occur_once])
def test_wrong_trainer_gets_a_test_that_fails_for_it_alone(wrong: Callable[..., Any]) -> None:
    outcomes = (outcome_of(check, wrong) for check in CHECKS.values())
    _, test = smallest_failure(
        next(outcome for outcome in outcomes if outcome.counterexample), wrong
    )
    assert error_of(test) is AssertionError, test
    of_the_definition = re.sub(
        r"from sabotaged import (\w+)", r"from variants.naive import train as \1", test
    )
    assert error_of(of_the_definition) is None, of_the_definition


def test_smallest_words_and_merges_that_show_the_failure() -> None:
    words = {b"\x00\xff\xff\xff\xff\xff": 7, b"low": 5, b"lower": 2, b"zzz": 2**40}
    smallest = TrainerCall(words, 99).smallest(right_to_left)
    assert smallest.as_test(*call_of(right_to_left)) == (
        "def test_these_words_give_the_defined_merges():\n"
        "    from variants.contract import WordCounts\n"
        "    from sabotaged import right_to_left\n"
        "\n"
        "    word_counts = WordCounts.from_items([(b'zzz', 1)])\n"
        "    merges = right_to_left(word_counts, 2)\n"
        "    assert merges == [(b'z', b'z'), (b'zz', b'z')]\n"
    )
    assert TrainerCall({b"a" * 600: 1}, 200).smallest(right_to_left).words == {b"aaa": 1}
    passes = TrainerCall({b"ab": 1}, 5)
    assert passes.smallest(naive.train) is passes


def test_counts_become_smaller_in_small_steps() -> None:
    def counts_to_255(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        items = [(word, min(count, 255)) for word, count in word_counts.items()]
        return naive.train(WordCounts.from_items(items), num_merges)

    smallest = TrainerCall({b"ya": 400, b"cd": 900}, 1).smallest(counts_to_255)
    assert 255 < max(smallest.words.values()) < 280


def test_options_of_the_call_are_part_of_the_test() -> None:
    wrong = TrainerCall({b"ab": 3, b"cd": 3}, 2, TieBreak.RAW_BYTES, min_count=2, threads=3)
    test = wrong.as_test(*call_of(functools.partial(heap.train, push="grown")))
    assert (
        "    from variants.contract import TieBreak, WordCounts\n    from variants.heap import train\n"
        in test
    )
    assert (
        "train(word_counts, 2, push='grown', tie_break=TieBreak.RAW_BYTES, min_count=2, threads=3)"
        in test
    )
    test = TrainerCall(
        {b"abc": 3}, 2, inherited=((b"a", b"b"),), inheriting="met", veto="bytes:3"
    ).as_test(*call_of(naive.train))
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
def test_wrong_counter_gets_a_test_that_fails_for_it(
    count: Callable[..., Any], case: str, tmp_path: Path
) -> None:
    outcome = outcome_of(FILE_CHECKS[f"check_worked_file[{case}]"], count)
    assert error_of(smallest_failure(outcome, count)[1], tmp_path) is AssertionError
    assert len(outcome.counterexample.smallest(count).content) <= 8  # type: ignore[union-attr]


def test_failure_without_a_counterexample_has_no_test() -> None:
    outcome = outcome_of(CHECKS["check_leaves_input_alone"], ill_mannered.changes_its_input)
    assert smallest_failure(outcome, ill_mannered.changes_its_input) == ("", "")
    # which passes, so it is not shrunk
    long = TrainerCall({b"%06d" % number: 1 for number in range(3000)}, 1)
    assert smallest_failure(Outcome("check_x", "g", "failed", "", long), naive.train)[1] == ""
