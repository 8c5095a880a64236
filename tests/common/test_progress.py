"""What a terminal and a log show: lines that fit, and the progress of long work."""

import io
import sys
import time

import pytest
from measured import RECORDS
from workbench import Call

from harness.common.printing import print_stdout
from harness.common.progress import Display, bar
from harness.common.units import BytesRead


def test_a_log_gets_lines_at_doubling_times_and_a_terminal_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        drawn = io.StringIO()
        patch.setattr(drawn, "isatty", lambda: True)
        patch.setattr(sys, "stderr", drawn)
        with bar("of [red]", 1000, "merges", 2_000_000) as on_progress:
            for done in (BytesRead(1_000_000), 300, 500):
                on_progress(done)
        assert "of [red]" in drawn.getvalue()
        assert "50%" in drawn.getvalue()

        drawn.truncate(0)
        patch.setenv("TERM", "dumb")
        with bar("of [red]", 1000, "merges") as on_progress:
            on_progress(300)
        assert drawn.getvalue() == ""

    monkeypatch.setattr(time, "monotonic", iter([0, 1, 11, 12, 25, 39]).__next__)
    with bar("proof of x", 1000, "merges", 2_000_000) as on_progress:
        for done in (1, BytesRead(1_500_000), 20, 300, 999):
            on_progress(done)
    assert capsys.readouterr().err.splitlines() == [
        "proof of x: 1.50 MB of 2.00 MB, 11 s elapsed, 4 s left",
        "proof of x: 300 of 1,000 merges, 25 s elapsed, 58 s left",
    ]


def test_a_run_tells_how_many_measurements_are_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", iter([0, 9, 12, 23, 45]).__next__)
    display = Display()
    for due in (3, 8, 3, 2):
        display.passed()
        display.expect(due)
    assert capsys.readouterr().err.splitlines() == [
        "run: 2 of 10 measurements, 12 s elapsed",
        "run: 4 of 6 measurements, 45 s elapsed, 22 s left",
    ]


def test_a_terminal_breaks_lines_between_words_and_a_pipe_gets_them_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = "  ties        raw_bytes breaks 3 of 4 ties as these merges do"
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setenv("COLUMNS", "40")
    print_stdout(line)
    monkeypatch.setattr(shown, "isatty", lambda: True)
    print_stdout(line)
    assert shown.getvalue().splitlines() == [
        line,
        "  ties        raw_bytes breaks 3 of 4",
        "              ties as these merges do",
    ]


def test_no_columns_are_as_many_as_usual(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    shown = []
    for columns in ("0", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        shown.append(call("table", RECORDS / "counting.jsonl").out)
    assert shown[0] == shown[1]
    assert "serial" in shown[0]
