"""Conformance from a shell: all checks in one child process, whose crash, hang or lies the parent finds out."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import conformance
from harness.common import errors
from harness.proof import suite
from harness.proof.suite import Request, judged_here
from variants.contract import TieBreak

FEW = "check_worked_example[[]C0*"


@pytest.fixture(autouse=True)
def found_where_the_tests_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a shell, the first place is the script's own; here it is what pytest has collected last."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "support")


def checked(target: str, capsys: pytest.CaptureFixture[str], only: str = FEW) -> tuple[int, str]:
    code = conformance.main([target, "--only", only])
    return code, capsys.readouterr().out


def test_a_trainer_that_replaces_its_judge_does_not_conform(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = checked("meddlers:replaces_the_judge", capsys)
    assert code == errors.MISMATCH
    assert shown.startswith("FAILED check_fresh_inputs: ")
    assert "\nworked examples  9 passed\njudged outside   1 failed: check_fresh_inputs\n" in shown
    assert "it ended after 0 merges" in shown
    assert "does not conform: 9 passed, 1 failed" in shown


def test_a_trainer_that_crashes_is_one_finding(capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = checked("unruly:segfaults", capsys)
    assert code == errors.MISMATCH
    assert shown.count("FAILED") == 1
    assert "FAILED check_worked_example[C01]: its process was ended by SIGSEGV; 8 checks more were not made" in shown
    assert "from unruly import segfaults" in shown, "the test to be pasted shows it"


@pytest.mark.parametrize("name", ["hangs_without_letting_go", "hangs_and_will_not_be_ended"])
def test_a_check_has_a_limit_of_time(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suite, "SECONDS_FOR_A_CHECK", 0.3)
    code, shown = checked(f"unruly:{name}", capsys)
    assert code == errors.MISMATCH
    assert "FAILED check_worked_example[C01]: it took over 0.3 s" in shown


def test_a_check_has_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(suite, "MEMORY_BYTES", 1 << 28)
    code, shown = checked("unruly:allocates_without_end", capsys)
    assert code == errors.MISMATCH
    assert "held over" in shown


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("says_nothing_of_json", "what it told is not an outcome"),
        ("says_nested_brackets", "what it told is not an outcome"),
        ("says_another_status", "what it told is not an outcome"),
        ("closes_its_lines", "its process ended without an answer"),
        ("ends_its_process", "exit status 7"),
    ],
)
def test_what_is_said_in_the_place_of_an_outcome_is_not_believed(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = checked(f"meddlers:{name}", capsys)
    assert code == errors.MISMATCH
    assert said in shown


def test_what_a_trainer_prints_is_told_when_all_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    conformance.main(["unruly:prints", "--only", FEW])
    shown = capsys.readouterr()
    assert shown.err.startswith("it printed, at last: ")
    assert "passed" in shown.out.splitlines()[-1]


@pytest.mark.parametrize(
    ("target", "counter", "status"),
    [
        ("sabotaged:honest", False, "passed"),
        ("sabotaged:right_to_left", False, "failed"),
        ("sabotaged:ties_to_the_smallest", False, "failed"),
        ("unruly:segfaults", False, "failed"),
        ("unruly:is_unavailable", False, "skipped"),
        ("sabotaged_counters:honest", True, "passed"),
        ("unruly:counter_that_loses_a_word", True, "failed"),
    ],
)
def test_fresh_inputs_are_judged_in_the_parent(target: str, counter: bool, status: str) -> None:
    outcome = judged_here(Request(target, {}, counter, (TieBreak.GREATEST_BYTES,)), counter)
    assert (outcome.status, bool(outcome.message)) == (status, status != "passed")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_such_module:train", "ModuleNotFoundError"),
        ("unruly:no_such_trainer", "AttributeError"),
        ("ends:train", "SystemExit: 7"),
        ("dies:train", "exit status 7"),
    ],
)
def test_what_cannot_be_imported_is_told(
    target: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(7)\n")
    (tmp_path / "dies.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.chdir(tmp_path)
    assert conformance.main([target]) == errors.USAGE
    assert said in capsys.readouterr().err


def test_a_check_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["sabotaged:honest", "--only", "no_such_check"]) == errors.USAGE
    assert "no check has such a name" in capsys.readouterr().err
