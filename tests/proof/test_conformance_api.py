"""The conformance suite from Python and from a test file."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sabotaged
import sabotaged_counters
import sabotaged_extenders
from checked import quick_ones

from harness.conformance import check_trainer, check_word_counter, parametrize_with_checks
from harness.proof import suite
from harness.proof.checks import CheckFailed, Outcome
from variants import naive_extending
from variants.contract import Corpus, Merge, Meter, TieBreak, Unavailable, WordCounts

GREATEST = TieBreak.GREATEST_BYTES


def plain(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """A trainer that knows no meter, no tie-break and no min_count."""
    return sabotaged.honest(word_counts, num_merges)


def unavailable(word_counts: WordCounts, num_merges: int, *_: Meter, **options: Any) -> list[Merge]:
    raise Unavailable(f"needs a machine with room for {len(word_counts)} words, {num_merges} merges, {options}")


def raising(word_counts: WordCounts, num_merges: int, *_: Meter, **options: Any) -> list[Merge]:
    raise KeyError(f"{len(word_counts)} words, {num_merges} merges, {options}")


def train(word_counts: WordCounts, num_merges: int, *meter: Meter, right: bool = True) -> list[Merge]:
    """A trainer with a parameter."""
    return (sabotaged.honest if right else sabotaged.right_to_left)(word_counts, num_merges, *meter)


def count(corpus: Corpus) -> WordCounts:
    return sabotaged_counters.honest(corpus)


@pytest.fixture(autouse=True)
def quick_checks_only(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the checks that take seconds; slow tests have them all."""
    if not request.node.get_closest_marker("slow"):
        for name in ("trainer_checks", "counter_checks"):
            checks = getattr(suite, name)

            def quick(*arguments: Any, checks: Callable[..., Any] = checks, **options: Any) -> Any:
                return quick_ones(checks(*arguments, **options))

            monkeypatch.setattr(suite, name, quick)


# From Python


@pytest.mark.parametrize(
    ("trainer", "parameters", "message"),
    [
        (sabotaged.right_to_left, {}, r"check_worked_example\[C01\]: first difference at merge 3"),
        (train, {"right": False}, "C01"),
        (raising, {}, r"raised KeyError(.|\n)*called for 23 merges\nword counts: {b'aaa': 2"),
        (sabotaged.right_to_left, {}, r"(?s)C01.*to keep it as a test:.*def test_these_words_give.*right_to_left\("),
    ],
)
def test_first_failure_is_raised(trainer: Callable[..., Any], parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_trainer(trainer, parameters=parameters)


@pytest.mark.slow
def test_all_outcomes_are_collected() -> None:
    outcomes = check_trainer(sabotaged.right_to_left, on_fail="collect", tie_breaks=[GREATEST])
    assert {outcome.status for outcome in outcomes} == {"passed", "failed", "skipped"}
    assert Outcome("check_worked_example[C02]", "worked examples", "passed") in outcomes


def test_trainer_that_cannot_run_here_is_skipped() -> None:
    outcomes = check_trainer(unavailable, tie_breaks=[GREATEST])
    assert {outcome.status for outcome in outcomes} == {"skipped"}


@pytest.mark.slow
def test_trainer_of_two_arguments_skips_the_other_keywords() -> None:
    skipped = {outcome.message for outcome in check_trainer(plain) if outcome.status == "skipped"}
    assert {"the trainer takes no tie_break", "the trainer takes no min_count"} <= skipped


@pytest.mark.slow
def test_trainer_of_keywords_gets_the_meter_by_its_name() -> None:
    def passes_on(word_counts: WordCounts, num_merges: int, **keywords: Any) -> list[Merge]:
        return naive_extending.train(word_counts, num_merges, **keywords)

    assert {outcome.status for outcome in check_trainer(passes_on, on_fail="collect")} == {"passed", "skipped"}


@pytest.mark.slow
def test_word_counter_is_called_at_the_given_widths() -> None:
    check_word_counter(sabotaged_counters.cuts_anywhere, widths=[1])
    with pytest.raises(CheckFailed, match="threads=2"):
        check_word_counter(sabotaged_counters.cuts_anywhere, widths=[1, 2])


def test_import_needs_no_pytest() -> None:
    program = "import sys, harness.conformance; assert 'pytest' not in sys.modules"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


# From a test file


IN_A_FLOAT = ("check_worked_example[past_2_to_53]", "check_worked_example[near_2_to_63]")
FLOAT_TRAINER = parametrize_with_checks(
    [sabotaged.counts_in_float],
    tie_breaks=[GREATEST],
    expected_failures=dict.fromkeys(IN_A_FLOAT, "a float holds 53 bits"),
)
COUNTERS = parametrize_with_checks([sabotaged_counters.honest, sabotaged_counters.always_cuts_at_endoftext], widths=[1])


def only(decorator: pytest.MarkDecorator, *names: str) -> pytest.MarkDecorator:
    """The decorator with the checks of these names."""
    parameters, cases = decorator.args
    return pytest.mark.parametrize(parameters, [case for case in cases if case.id.partition("-")[2] in names])


@only(FLOAT_TRAINER, "check_worked_example[C01]", *IN_A_FLOAT)
def test_expected_failures_and_no_others(trainer: Callable[..., Any], check: Callable[..., None]) -> None:
    check(trainer)


@only(COUNTERS, "check_worked_file[F01]", "check_words_are_distinct", "check_equals_definition[1]")
def test_word_counters_pass_every_check(counter: Callable[..., Any], check: Callable[..., None]) -> None:
    check(counter)


def test_trainer_that_can_extend_is_checked_for_it() -> None:
    cases = parametrize_with_checks([sabotaged_extenders.honest, sabotaged.honest]).args[1]
    extending = {case.id.partition("-")[0] for case in cases if "check_extends" in case.id}
    assert extending == {"sabotaged_extenders:replacing.<locals>.train"}


def test_ids_and_marks() -> None:
    trainer = functools.partial(train, right=True)
    cases = parametrize_with_checks([trainer], expected_failures={"check_is_repeatable": "keeps a cache"}).args[1]
    ids = [case.id for case in cases]
    assert f"{__name__}:train/True-check_equals_definition[20]" in ids
    assert len(set(ids)) == len(ids)
    (mark,) = [mark for case in cases for mark in case.marks]
    assert mark.kwargs == {"strict": True, "reason": "keeps a cache"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_trainer(plain, on_fail="warn"), "'raise' or 'collect'"),
        (lambda: parametrize_with_checks([train, count]), "a test function each"),
        (
            lambda: parametrize_with_checks([train], expected_failures={"check_is_repeatabel": "keeps a cache"}),
            "did you mean check_is_repeatable",
        ),
    ],
)
def test_bad_arguments_get_one_sentence(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
