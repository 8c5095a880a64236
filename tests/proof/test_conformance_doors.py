"""The three doors to the conformance suite: from Python, from a test file, from a shell."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sabotaged
import sabotaged_counters
from checked import quick_ones

from harness import conformance
from harness.common import errors
from harness.conformance import check_trainer, check_word_counter, main, parametrize_with_checks, trainer_checks
from harness.proof import differential
from harness.proof.checks import Check, CheckFailed, CheckSkipped, Outcome
from harness.proof.counter import counter_checks
from harness.proof.printed import report
from harness.proof.suite import Request, Suite
from variants import naive_extending
from variants.contract import Corpus, Merge, Meter, TieBreak, Unavailable, WordCounts

ROOT = Path(__file__).parents[2]


def plain(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """A trainer that knows no meter, no tie-break and no min_count."""
    return sabotaged.honest(word_counts, num_merges)


def unavailable(word_counts: WordCounts, num_merges: int, *_: Meter, **options: Any) -> list[Merge]:
    raise Unavailable(f"needs a machine with room for {len(word_counts)} words, {num_merges} merges, {options}")


def raising(word_counts: WordCounts, num_merges: int, *_: Meter, **options: Any) -> list[Merge]:
    raise KeyError(f"{len(word_counts)} words, {num_merges} merges, {options}")


def train(word_counts: WordCounts, num_merges: int, *meter: Meter, right: bool = True) -> list[Merge]:
    """A trainer with a parameter, for the shell."""
    return (sabotaged.honest if right else sabotaged.right_to_left)(word_counts, num_merges, *meter)


def count(corpus: Corpus) -> WordCounts:
    """A word counter, for the shell."""
    return sabotaged_counters.honest(corpus)


@pytest.fixture(autouse=True)
def without_what_begins_late(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A door needs neither the checks that take seconds nor the search; slow tests have them all."""

    def some(checks: Callable[..., list[Check]]) -> Callable[..., list[Check]]:
        return lambda *asked, **named: [
            check for check in quick_ones(checks(*asked, **named)) if check.group != "searched words"
        ]

    if not request.node.get_closest_marker("slow"):
        for name, checks in (("trainer_checks", trainer_checks), ("counter_checks", counter_checks)):
            monkeypatch.setattr(conformance, name, some(checks))


FEW = ["--only", "check_worked_*"]
"""From a shell, the quickest of the checks."""


# From Python.


def test_the_first_failure_is_raised_with_the_name_of_its_check() -> None:
    with pytest.raises(CheckFailed, match=r"check_worked_example\[C01\]: first difference at merge 3"):
        check_trainer(sabotaged.right_to_left)


@pytest.mark.slow
def test_all_outcomes_are_collected() -> None:
    outcomes = check_trainer(sabotaged.right_to_left, on_fail="collect", tie_breaks=[TieBreak.GREATEST_BYTES])
    assert {outcome.status for outcome in outcomes} == {"passed", "failed", "skipped"}
    assert Outcome("check_worked_example[C02]", "worked examples", "passed") in outcomes


def test_parameters_are_passed_on() -> None:
    with pytest.raises(CheckFailed, match="C01"):
        check_trainer(train, parameters={"right": False})


@pytest.mark.slow
def test_a_trainer_of_two_arguments_can_be_checked() -> None:
    outcomes = check_trainer(plain)
    skipped = {outcome.message for outcome in outcomes if outcome.status == "skipped"}
    assert {"the trainer takes no tie_break", "the trainer takes no min_count"} <= skipped


def test_a_trainer_that_raises_has_failed_and_its_input_is_shown() -> None:
    with pytest.raises(CheckFailed, match=r"raised KeyError(.|\n)*called for 23 merges\nword counts: {b'aaa': 2"):
        check_trainer(raising)


def test_what_cannot_run_here_is_skipped_and_not_failed() -> None:
    outcomes = check_trainer(unavailable, tie_breaks=[TieBreak.GREATEST_BYTES])
    assert {outcome.status for outcome in outcomes} == {"skipped"}


def test_only_two_answers_to_a_failure_are_known() -> None:
    with pytest.raises(ValueError, match="'raise' or 'collect'"):
        check_trainer(plain, on_fail="warn")


@pytest.mark.slow
def test_a_word_counter_is_asked_at_the_widths_given() -> None:
    check_word_counter(sabotaged_counters.cuts_anywhere, widths=[1])
    with pytest.raises(CheckFailed, match="threads=2"):
        check_word_counter(sabotaged_counters.cuts_anywhere, widths=[1, 2])


def test_without_hypothesis_the_search_is_skipped_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.setattr(differential, "searched_words", differential.searched_words.__wrapped__)
    (searched,) = [check for check in trainer_checks() if check.name == "check_searched_words"]
    with pytest.raises(CheckSkipped, match="pip install hypothesis"):
        searched(plain)


def test_a_trainer_that_fails_once_only_has_failed_all_the_same() -> None:
    calls = []

    def fails_once(word_counts: WordCounts, num_merges: int) -> list[Merge]:
        calls.append(word_counts)
        return [(b"x", b"y")] if len(calls) == 60 else sabotaged.honest(word_counts, num_merges)

    (searched,) = [check for check in trainer_checks() if check.name == "check_searched_words"]
    with pytest.raises(CheckFailed, match="first difference"):
        searched(fails_once)


def test_neither_pytest_nor_hypothesis_is_needed_to_import_the_suite() -> None:
    program = "import sys, harness.conformance; assert not {'pytest', 'hypothesis'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


# From a test file.


FLOAT_TRAINER = parametrize_with_checks(
    [sabotaged.counts_in_float],
    tie_breaks=[TieBreak.GREATEST_BYTES],
    expected_failures={
        "check_worked_example[past_2_to_53]": "a float holds 53 bits",
        "check_worked_example[near_2_to_63]": "a float holds 53 bits",
    },
)
COUNTERS = parametrize_with_checks([sabotaged_counters.honest, sabotaged_counters.always_cuts_at_endoftext], widths=[1])


def only(decorator: pytest.MarkDecorator, *names: str) -> pytest.MarkDecorator:
    """The decorator with the checks of these names alone."""
    parameters, cases = decorator.args
    kept = [case for case in cases if case.id.partition("-")[2] in names]
    return pytest.mark.parametrize(parameters, kept)


@only(FLOAT_TRAINER, *(f"check_worked_example[{name}]" for name in ("C01", "past_2_to_53", "near_2_to_63")))
def test_a_known_failure_is_expected(trainer: Callable[..., Any], check: Callable[..., None]) -> None:
    check(trainer)


@only(COUNTERS, "check_worked_file[F01]", "check_words_are_distinct", "check_equals_definition[1]")
def test_word_counters_are_told_by_their_first_parameter(
    counter: Callable[..., Any], check: Callable[..., None]
) -> None:
    check(counter)


@pytest.mark.slow
@FLOAT_TRAINER
def test_a_known_failure_is_expected_and_no_other(trainer: Callable[..., Any], check: Callable[..., None]) -> None:
    check(trainer)


@pytest.mark.slow
@COUNTERS
def test_word_counters_pass_every_check(counter: Callable[..., Any], check: Callable[..., None]) -> None:
    check(counter)


def test_ids_carry_the_parameters_the_check_and_the_seed() -> None:
    cases = parametrize_with_checks([functools.partial(train, right=True)]).args[1]
    ids = [case.id for case in cases]
    assert f"{__name__}:train/True-check_equals_definition[16]" in ids
    assert len(set(ids)) == len(ids)


def test_expected_failures_are_strict() -> None:
    cases = parametrize_with_checks([train], expected_failures={"check_is_repeatable": "keeps a cache"}).args[1]
    (mark,) = [mark for case in cases for mark in case.marks]
    assert mark.kwargs == {"strict": True, "reason": "keeps a cache"}


def test_an_expected_failure_must_be_the_name_of_a_check() -> None:
    with pytest.raises(ValueError, match="did you mean check_is_repeatable"):
        parametrize_with_checks([train], expected_failures={"check_is_repeatabel": "keeps a cache"})


def test_trainers_and_counters_do_not_mix() -> None:
    with pytest.raises(ValueError, match="a test function each"):
        parametrize_with_checks([train, count])


# From a shell.


@pytest.fixture(autouse=True)
def surroundings_as_they_were(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # As from a shell, the first place is the script's own; here it is what pytest has collected last.
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests/support"))
    monkeypatch.setenv("HYPOTHESIS_STORAGE_DIRECTORY", str(tmp_path / "hypothesis"))


def test_a_trainer_that_conforms_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sabotaged:honest", *FEW]) == errors.OK  # a module that is quickly imported
    shown = capsys.readouterr()
    assert shown.out.startswith("worked examples ")
    assert shown.out.splitlines()[-1].startswith("sabotaged:honest conforms: ")
    assert shown.err == "", "no progress where nobody watches"


def test_a_trainer_that_fails_ends_with_21(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [f"{__name__}:train", "--set", "right=false", "--tie-break", "greatest_bytes", *FEW]
    assert main(asked) == errors.MISMATCH
    shown = capsys.readouterr().out
    assert shown.startswith("FAILED check_worked_example[C01]: first difference at merge 3")
    assert "check_worked_example[C03]" in shown
    assert "does not conform" in shown.splitlines()[-1]


def test_a_trainer_that_cannot_run_here_ends_with_22(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{__name__}:unavailable", "--tie-break", "greatest_bytes", *FEW]) == errors.UNMEASURED
    assert "needs a machine with room" in capsys.readouterr().out


def test_a_word_counter_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sabotaged_counters:honest", *FEW]) == errors.OK
    assert capsys.readouterr().out.startswith("worked files ")


def test_a_name_of_the_registry_will_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serial", *FEW]) == errors.OK
    assert capsys.readouterr().out.splitlines()[-1].startswith("serial conforms")


def conformance_of(module: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command on `mine:train` in a folder that holds only this module."""
    (folder / "mine.py").write_text(module, encoding="utf-8")
    command = [sys.executable, "-BP", "-m", "harness.conformance", "mine:train", "--tie-break", "greatest_bytes"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    del environment["HYPOTHESIS_STORAGE_DIRECTORY"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_module_in_the_current_folder_is_found_and_nothing_is_left_there(tmp_path: Path) -> None:
    ended = conformance_of("def train(word_counts, num_merges):\n    return []\n", tmp_path)
    assert (ended.returncode, ended.stderr) == (errors.MISMATCH, "")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


def test_a_module_that_cannot_be_imported_is_answered_with_a_sentence(tmp_path: Path) -> None:
    ended = conformance_of("raise SystemError('half built')\n", tmp_path)
    assert ended.returncode == errors.USAGE
    assert ended.stderr.startswith("cannot import 'mine:train' (SystemError: half built); ")


def test_a_failure_and_its_test_come_first_and_the_rest_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    class Made(Suite):
        """A suite whose outcomes are known."""

        checks_from = "trainer_checks()"

        def outcomes(self) -> Iterator[Outcome]:
            for number in range(9):
                yield Outcome(f"check_worked_example[C0{number}]", "worked examples", "failed", "raised KeyError")
            yield Outcome("check_one", "first", "skipped", "not here")
            yield Outcome("check_two", "second", "skipped", "not here")

    assert report(Made(Request("mine:train", {})), "mine") == errors.MISMATCH
    shown = capsys.readouterr().out
    assert shown.startswith("FAILED check_worked_example[C00]: raised KeyError\n\ndef test_")
    assert "from mine import train" in shown
    assert "worked examples  9 failed: check_worked_example[C00], " in shown
    assert "and 6 more\n" in shown
    assert shown.endswith("\nmine does not conform: 9 failed, 2 skipped\n")
    assert len(shown.splitlines()) <= 25


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("variants.heap:trian", "did you mean variants.heap:train?"),
        ("variants.haep:train", "did you mean variants.heap?"),
        ("hepa", "did you mean heap?"),
        ("variants.heap", "package.module:function, such as variants.heap:train"),
    ],
)
def test_a_typo_in_the_target_gets_the_likely_one(target: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([target]) == errors.USAGE
    told = capsys.readouterr().err
    assert answer in told
    assert len(told) < 300


@pytest.mark.slow
def test_a_trainer_of_keywords_gets_the_meter_by_its_name() -> None:
    def passes_on(word_counts: WordCounts, num_merges: int, **keywords: Any) -> list[Merge]:
        return naive_extending.train(word_counts, num_merges, **keywords)

    assert {outcome.status for outcome in check_trainer(passes_on, on_fail="collect")} == {"passed", "skipped"}
