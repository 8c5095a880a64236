"""Progress output: in a log, without a terminal, and the summary of where the time went."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress

from harness.common.progress import bar, stage_bar
from harness.common.units import BytesRead


def test_log_reports_long_work_at_doubling_times(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0, 1, 11, 12, 25, 39])
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    with bar("proof of x", 1000, "merges", Console(file=io.StringIO()), size=2_000_000) as on_progress:
        for done in (1, BytesRead(1_500_000), 20, 300, 999):
            on_progress(done)
    assert capsys.readouterr().err.splitlines() == [
        "proof of x: 1.50 MB of 2.00 MB after 11.0 s, 3.7 s left",
        "proof of x: 300 of 1,000 merges after 25 s, 58 s left",
    ]


def test_a_bar_can_be_drawn_at_any_moment_between_reading_and_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich draws from its own thread: also between the reset of a task and its next update."""
    reset = Progress.reset

    def drawn_at_once(self: Progress, *message: Any, **fields: Any) -> None:
        reset(self, *message, **fields)
        self.refresh()

    monkeypatch.setattr(Progress, "reset", drawn_at_once)
    out = io.StringIO()
    with bar("x", 1000, "merges", Console(file=out, force_terminal=True), size=2_000_000) as on_progress:
        on_progress(BytesRead(1_000_000))
        on_progress(300)
    assert "x" in out.getvalue()


def test_log_reports_the_start_of_a_stage(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0, 0, 1, 2, 15])
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    with stage_bar() as show:
        show("the base", "", 0, 0)
        show("identity", "heap", 0, 2)
        show("identity", "flat", 1, 2)
        show("blocks", "block 3 of 9", 2, 9)
    assert capsys.readouterr().err.splitlines() == [
        "[   0 s] the base",
        "[   1 s] identity: heap (1 of 2)",
        "[  15 s] blocks: block 3 of 9",
    ]


@pytest.mark.parametrize(("unit", "shown"), [("bytes", True), ("merges", False)])
def test_time_left_is_shown_once_it_can_be_estimated(unit: str, shown: bool) -> None:
    """A tenth of the bytes foretells the rest; the first tenth of the merges takes most of the time."""
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    with bar("work", 1000, unit, terminal) as on_progress:
        for done in (10, 50, 100):
            on_progress(done)
            time.sleep(0.01)
        on_progress(100)
    assert ("ETA" in terminal.file.getvalue()) == shown  # type: ignore[attr-defined]
