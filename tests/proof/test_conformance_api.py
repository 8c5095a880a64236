"""The conformance suite from Python, from a test file and from a shell; a failure is made small and
becomes a test to paste.

tests/fixtures/command_rows/proof.toml has most of what the command prints.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ill_mannered
import pytest
import sabotaged
import sabotaged_counters
from checked import error_of
from rows import Row, each_row, merges_of
from sabotaged import right_to_left
from unruly import takes_two
from workbench import Call, ran

from harness import conformance
from harness.common.errors import MISMATCH
from harness.conformance import (
    check_conformance,
    counter_checks,
    parametrize_with_checks,
    trainer_checks,
)
from harness.proof.checks import (
    CheckFailed,
    CheckResult,
    TrainerCall,
    call_of,
    outcome_of,
    whole_test,
)
from variants import heap, naive, naive_extending
from variants.contract import Merge, Meter, TieBreak, WordCounts

pytestmark = pytest.mark.usefixtures("unruly_trainers")
CHECKS = {check.name: check for check in [*trainer_checks(), *counter_checks()]}


def raising(word_counts: WordCounts, num_merges: int, *_: Meter, **options: Any) -> list[Merge]:
    raise KeyError(f"{len(word_counts)} words, {num_merges} merges, {options}")


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (
            raising,
            r"raised KeyError: .* \(test_conformance_api.py:(.|\n)*"
            r"word counts: {b'aaa': 2.*\ncalled for 23 merges, tie_break=greatest_bytes",
        ),
        (
            right_to_left,
            r"(?s)check_worked_example\[C01\]: merge 3: "
            r".*to keep it as a test:.*def test_these_words_give.*right_to_left\(",
        ),
        (sabotaged_counters.counts_nothing, r"(?s)check_worked_file\[F01\].*\nfile: b'a"),
    ],
)
def test_first_failure_is_raised(subject: Callable[..., Any], message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_conformance(subject)


@pytest.mark.slow
def test_keywords_that_a_trainer_does_not_take_are_skipped(tmp_path: Path) -> None:
    outcomes = check_conformance(takes_two)
    skipped = {outcome.message for outcome in outcomes if outcome.status == "skipped"}
    assert {"the trainer takes no tie_break", "the trainer takes no min_count"} <= skipped
    assert CheckResult("check_worked_example[C02]", "worked examples", "passed") in outcomes

    program = "import sys, harness.conformance; assert 'pytest' not in sys.modules"
    assert ran(tmp_path, "-c", program).returncode == 0


# From a test file


PARAMETERS, CASES = parametrize_with_checks([right_to_left]).args


@pytest.mark.parametrize(PARAMETERS, CASES[:1])
@pytest.mark.xfail(strict=True, raises=CheckFailed)
def test_wrong_trainer_fails(trainer: Callable[..., Any], check: Callable[..., None]) -> None:
    check(trainer)


def test_ids_name_trainers_with_their_parameters_and_checks() -> None:
    trainers: list[Any] = [functools.partial(heap.train, push="grown"), naive_extending.train]
    ids = [case.id for case in parametrize_with_checks(trainers).args[1]]
    assert "train/push='grown'-check_equals_definition[20]" in ids
    assert len(set(ids)) == len(ids)
    assert "train-check_extends[kept_first]" in ids, "it takes inherited merges"
    assert "train/push='grown'-check_extends[kept_first]" not in ids

    parameters, cases = parametrize_with_checks([sabotaged_counters.honest]).args
    assert parameters == ("counter", "check")
    assert cases[0].id == "serial-check_worked_file[F01]"
    with pytest.raises(ValueError, match="a test function each"):
        parametrize_with_checks([takes_two, sabotaged_counters.honest])


# A test to paste


@pytest.mark.parametrize("wrong", [right_to_left, sabotaged.leaves_out_pairs_that_occur_once])
def test_wrong_trainer_gets_a_test_that_fails_for_it_alone(wrong: Callable[..., Any]) -> None:
    outcomes = (outcome_of(check, wrong) for check in CHECKS.values())
    test = next(outcome.test for outcome in outcomes if outcome.test)
    assert error_of(test) is AssertionError, test
    of_the_definition = re.sub(
        r"from sabotaged import (\w+)", r"from variants.naive import train as \1", test
    )
    assert error_of(of_the_definition) is None, of_the_definition


def test_options_of_the_call_are_part_of_the_test() -> None:
    call = TrainerCall(
        {b"ab": 3, b"cd": 3},
        2,
        TieBreak.RAW_BYTES,
        min_count=2,
        inherited=((b"a", b"b"),),
        inheriting="met",
        veto="bytes:3",
        threads=3,
    )
    test = call.as_test(*call_of(functools.partial(heap.train, push="grown")))
    assert error_of(test) is TypeError, "it takes no inherited merges"
    assert test == (
        "def test_these_words_give_the_defined_merges():\n"
        "    from variants import vetoes\n"
        "    from variants.contract import TieBreak, WordCounts\n"
        "    from variants.heap import train\n"
        "\n"
        "    word_counts = WordCounts.from_items([(b'ab', 3), (b'cd', 3)])\n"
        "    inherited = [(b'a', b'b')]\n"
        "    merges = train(word_counts, 2, push='grown', tie_break=TieBreak.RAW_BYTES, min_count=2,"
        " inherited=inherited, inheriting='met', veto=vetoes.named('bytes:3'), threads=3)\n"
        "    assert merges == [(b'a', b'b'), (b'c', b'd')]\n"
    )


def test_failure_without_a_counterexample_has_no_test() -> None:
    outcome = outcome_of(CHECKS["check_leaves_input_alone"], ill_mannered.changes_its_input)
    assert (outcome.status, outcome.test) == ("failed", "")
    long = TrainerCall({b"%06d" % number: 1 for number in range(3000)}, 1)
    assert whole_test(long, naive.train) == ""


# What is wrong


@each_row(__file__, "faults.toml")
def test_wrong_merge_is_explained_by_the_counts_at_its_moment(row: Row) -> None:
    words = {word.encode(): count for word, count in row["words"].items()}
    call = TrainerCall(words, 9)
    assert call.fault(merges_of(row["merges"]), call.defined()) == row["fault"]


# From a shell, where the parent finds out a crash, a hang or a lie of the target


def test_failure_and_its_test_come_first_in_at_most_25_lines(call: Call) -> None:
    code, out, _ = call("conformance sabotaged:right_to_left --only check_worked_*")

    assert code == MISMATCH
    fault = "merge 2: b'a' + b'aa', 0 times; the most frequent is b'aa' + b'a', once"
    assert out.startswith(f"FAILED check_worked_example[aaa]: {fault}\n")
    assert "failed: check_worked_example[C01], check_worked_example[C03], check_" in out
    assert "sabotaged:right_to_left does not conform: " in out.splitlines()[-1]
    assert len(out.splitlines()) <= 25
    assert 0 < out.index("def test_") < out.index("\nworked examples ")


@pytest.mark.parametrize(
    ("limit", "value", "target", "message"),
    [
        (
            "SECONDS_FOR_A_CHECK",
            0.3,
            "unruly:hangs_and_will_not_be_ended",
            "it took over 0.3 s; 8 checks more were not made",
        ),
        ("MEMORY_BYTES", 1 << 28, "unruly:allocates_without_end", "its processes held over 0 GiB"),
    ],
)
def test_breakdown_fails_the_check_that_was_being_made(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: float,
    target: str,
    message: str,
) -> None:
    monkeypatch.setattr(conformance, limit, value)
    code, out, _ = call(f"conformance {target} --only check_worked_example[[]C0*")
    assert code == MISMATCH
    assert out.startswith(f"FAILED check_worked_example[C01]: {message}")
    assert "to repeat it: --only 'check_worked_example[C01]'" in out
    assert "does not conform: 1 failed" in out


@pytest.mark.parametrize(
    ("target", "only", "shown"),
    [
        ("ill_mannered:replaces_the_judge", "check_worked_example[[]C0*", "\nword counts: {b"),
        ("sabotaged:ties_to_the_smallest", "check_worked_example[[]C17]", "\nword counts: {b"),
        (
            "sabotaged_counters:forgets_the_last_document",
            "check_worked_file[[]F12_empty]",
            "\nfile: b",
        ),
    ],
)
def test_target_that_only_fresh_inputs_show_does_not_conform(
    call: Call, target: str, only: str, shown: str
) -> None:
    code, out, _ = call(f"conformance {target} --tie-break greatest_bytes --only {only}")
    assert code == MISMATCH
    assert out.startswith("FAILED check_fresh_inputs: returned ")
    assert shown in out
    assert "judged outside   1 failed: check_fresh_inputs\n" in out
    assert " passed, 1 failed" in out.splitlines()[-1]
