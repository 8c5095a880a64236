"""Conformance from a shell: all checks in one child process, whose crash, hang or lies the parent
finds out.

tests/fixtures/command_rows/proof.toml has more of what it prints.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from checked import error_of
from workbench import SUPPORT

from harness import conformance
from harness.common.errors import MISMATCH, USAGE
from harness.proof import suite
from harness.proof.suite import Request, child_of
from variants.contract import TieBreak

EXAMPLES = "check_worked_example[[]C0*"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainers are found as from a shell in the folder of support; few fresh inputs suffice to see
    them judged.
    """
    monkeypatch.syspath_prepend(SUPPORT)
    monkeypatch.setattr(suite, "FRESH_INPUTS", 3)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code and what is printed."""
    code = conformance.main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_failure_and_its_test_come_first_in_at_most_25_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(
        capsys,
        "sabotaged:right_to_left",
        "--tie-break",
        "greatest_bytes",
        "--only",
        "check_worked_*",
    )
    assert code == MISMATCH
    fault = "merge 2 does not occur: (b'a', b'aa'); (b'aa', b'a') has count 1"
    assert out.startswith(f"FAILED check_worked_example[C01]: {fault}\n")
    assert (
        "failed: check_worked_example[C01], check_worked_example[C03], check_worked_example[C04] and more"
        in out
    )
    assert "sabotaged:right_to_left does not conform: " in out.splitlines()[-1]
    assert len(out.splitlines()) <= 25
    assert error_of(out[out.index("def test_") : out.index("\nworked examples ")]) is AssertionError


def test_trainer_that_replaces_its_judge_does_not_conform(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run(capsys, "ill_mannered:replaces_the_judge", "--only", EXAMPLES)
    assert code == MISMATCH
    assert out.startswith("FAILED check_fresh_inputs: returned [], not [(b")
    assert "\nworked examples  9 passed\njudged outside   1 failed: check_fresh_inputs\n" in out
    assert "    merges = replaces_the_judge(word_counts, " in out
    assert "does not conform: 9 passed, 1 failed" in out


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("unruly:segfaults", "its process was ended by SIGSEGV; 8 checks more were not made"),
        ("unruly:hangs_and_will_not_be_ended", "it took over 0.3 s"),
        ("unruly:allocates_without_end", "its processes held over "),
        ("ill_mannered:ends_its_process", "exit status 7"),
    ],
)
def test_breakdown_fails_the_check_that_was_being_made(
    target: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "took" in message:
        monkeypatch.setattr(suite, "SECONDS_FOR_A_CHECK", 0.3)
    if "held" in message:
        monkeypatch.setattr(suite, "MEMORY_BYTES", 1 << 28)
    code, out, _ = run(capsys, target, "--only", EXAMPLES)
    assert (code, out.count("FAILED")) == (MISMATCH, 1)
    assert out.startswith("FAILED check_worked_example[C01]: ")
    assert message in out.splitlines()[0]
    assert "to repeat it: --only 'check_worked_example[C01]'" in out


@pytest.mark.parametrize(
    ("target", "only"),
    [
        ("sabotaged:ties_to_the_smallest", "check_worked_example[[]C17]"),
        ("unruly:counter_that_loses_a_word", "check_worked_file[[]F12_empty]"),
    ],
)
def test_parent_judges_fresh_inputs(
    target: str, only: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "FRESH_INPUTS", 20)
    with child_of(Request(target, {}, tie_breaks=(TieBreak.GREATEST_BYTES,), only=only)) as child:
        first, fresh = child.outcomes()
    assert (first.status, fresh.check, fresh.status) == ("passed", "check_fresh_inputs", "failed")


@pytest.mark.parametrize("source", ["raise SystemExit(7)", "import os\nos._exit(7)"])
def test_module_that_ends_its_process_gets_one_sentence(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ends.py").write_text(f"{source}\ndef train(): ...\n")
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "ends:train")
    assert (code, out, "exit status 7" in err, err.count("\n")) == (USAGE, "", True, 1)
