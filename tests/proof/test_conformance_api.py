"""The conformance suite from Python and from a test file."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import sabotaged
import sabotaged_counters
import sabotaged_extenders
from workbench import CHECKOUT

from harness.conformance import check_conformance, parametrize_with_checks
from harness.proof.checks import CheckFailed, Outcome
from variants import extending as naive_extending
from variants.contract import Merge, Meter, WordCounts


def plain(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """A trainer that knows no meter, no tie-break and no min_count."""
    return sabotaged.honest(word_counts, num_merges)


def raising(word_counts: WordCounts, num_merges: int, *_: Meter, **options: Any) -> list[Merge]:
    raise KeyError(f"{len(word_counts)} words, {num_merges} merges, {options}")


def train(word_counts: WordCounts, num_merges: int, *meter: Meter, right: bool = True) -> list[Merge]:
    """A trainer with a parameter."""
    return (sabotaged.honest if right else sabotaged.right_to_left)(word_counts, num_merges, *meter)


def passes_on(word_counts: WordCounts, num_merges: int, **keywords: Any) -> list[Merge]:
    """A trainer that gets the meter by its name."""
    return naive_extending.train(word_counts, num_merges, **keywords)


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (functools.partial(train, right=False), r"check_worked_example\[C01\]: first difference at merge 3"),
        (raising, r"raised KeyError(.|\n)*word counts: {b'aaa': 2.*\ncalled for 23 merges, tie_break=greatest_bytes"),
        (sabotaged.right_to_left, r"(?s)C01.*to keep it as a test:.*def test_these_words_give.*right_to_left\("),
        (sabotaged_counters.counts_nothing, r"(?s)check_worked_file\[F01\].*def test_this_file_gives"),
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
    return pytest.mark.parametrize(parameters, [case for case in cases if case.id.partition("-")[2] == name])


@only(parametrize_with_checks([functools.partial(train, right=True)]), "check_worked_example[C01]")
def test_trainer_passes_its_checks(trainer: Callable[..., Any], check: Callable[..., None]) -> None:
    check(trainer)


@only(parametrize_with_checks([sabotaged.right_to_left]), "check_worked_example[C01]")
@pytest.mark.xfail(strict=True, raises=CheckFailed)
def test_wrong_trainer_fails(trainer: Callable[..., Any], check: Callable[..., None]) -> None:
    check(trainer)


@only(parametrize_with_checks([sabotaged_counters.honest]), "check_worked_file[F01]")
def test_word_counters_pass_their_checks(counter: Callable[..., Any], check: Callable[..., None]) -> None:
    check(counter)


def test_ids_name_trainers_with_their_parameters_and_checks() -> None:
    trainers: list[Any] = [functools.partial(train, right=True), sabotaged_extenders.honest]
    ids = [case.id for case in parametrize_with_checks(trainers).args[1]]
    assert "train/right=True-check_equals_definition[20]" in ids
    assert len(set(ids)) == len(ids)
    extending = {name.partition("-")[0] for name in ids if "check_extends" in name}
    assert extending == {"honest"}, "it takes inherited merges"


def test_trainers_and_counters_need_a_test_each() -> None:
    with pytest.raises(ValueError, match="a test function each"):
        parametrize_with_checks([train, sabotaged_counters.honest])
