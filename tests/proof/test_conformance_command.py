"""Conformance from a shell, where a crash, a hang or a lie of the target is found out by the parent.

tests/fixtures/command_rows/proof.toml has most of what the command prints.
"""

from __future__ import annotations

import pytest
from checked import error_of
from workbench import SUPPORT

from harness import conformance
from harness.common.errors import MISMATCH
from harness.proof import suite


def printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> str:
    """What the command prints about a target of the folder of support that does not conform."""
    monkeypatch.syspath_prepend(SUPPORT)
    assert conformance.main(arguments) == MISMATCH
    return capsys.readouterr().out


def test_failure_and_its_test_come_first_in_at_most_25_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = printed(capsys, monkeypatch, "sabotaged:right_to_left", "--only", "check_worked_*")

    fault = "merge 2 does not occur: (b'a', b'aa'); (b'aa', b'a') has count 1"
    assert out.startswith(f"FAILED check_worked_example[C01]: {fault}\n")
    assert "failed: check_worked_example[C01], check_worked_example[C03], check_" in out
    assert "sabotaged:right_to_left does not conform: " in out.splitlines()[-1]
    assert len(out.splitlines()) <= 25
    assert error_of(out[out.index("def test_") : out.index("\nworked examples ")]) is AssertionError


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
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: float,
    target: str,
    message: str,
) -> None:
    monkeypatch.setattr(suite, limit, value)
    out = printed(capsys, monkeypatch, target, "--only", "check_worked_example[[]C0*")
    assert out.startswith(f"FAILED check_worked_example[C01]: {message}")
    assert "to repeat it: --only 'check_worked_example[C01]'" in out
    assert "does not conform: 1 failed" in out


@pytest.mark.parametrize(
    ("target", "only"),
    [
        ("ill_mannered:replaces_the_judge", "check_worked_example[[]C0*"),
        ("sabotaged:ties_to_the_smallest", "check_worked_example[[]C17]"),
        ("unruly:counter_that_loses_a_word", "check_worked_file[[]F12_empty]"),
    ],
)
def test_target_that_only_fresh_inputs_show_does_not_conform(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, target: str, only: str
) -> None:
    out = printed(capsys, monkeypatch, target, "--tie-break", "greatest_bytes", "--only", only)
    assert out.startswith("FAILED check_fresh_inputs: returned ")
    assert f"{target.partition(':')[2]}(" in out
    assert "judged outside   1 failed: check_fresh_inputs\n" in out
    assert " passed, 1 failed" in out.splitlines()[-1]
