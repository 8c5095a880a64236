"""Progress output: in a log, without a terminal, and the summary of where the time went."""

from __future__ import annotations

import io
import sys
import time

import pytest

from harness.common.console import bar
from harness.common.units import BytesRead


def test_logs_report_at_doubling_times(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0, 1, 11, 12, 25, 39])
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    with bar("proof of x", 1000, "merges", 2_000_000) as on_progress:
        for done in (1, BytesRead(1_500_000), 20, 300, 999):
            on_progress(done)
    assert capsys.readouterr().err.splitlines() == [
        "proof of x: 1.50 MB of 2.00 MB after 11.0 s, 136 kB/s, 3.7 s left",
        "proof of x: 300 of 1,000 merges after 25 s, 58 s left",
    ]


def test_a_bar_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    monkeypatch.setattr(drawn, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", drawn)
    with bar("of [red]", 1000, "merges", 2_000_000) as on_progress:
        for done in (BytesRead(1_000_000), 300, 500):
            on_progress(done)
    assert "of [red]" in drawn.getvalue()
    assert "50%" in drawn.getvalue()
