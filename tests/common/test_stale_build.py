"""After `git pull` compiled modules may be older than what calls them: then a crash says what mends it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.common import errors
from harness.runs import run


def test_a_module_is_outdated_when_a_source_is_newer(tmp_path: Path) -> None:
    folder = tmp_path / "variants" / "native"
    folder.mkdir(parents=True)
    assert not errors.is_build_outdated(tmp_path)
    for name, written in (("_flat.so", 10), ("flat.hpp", 9)):
        (folder / name).write_text("")
        os.utime(folder / name, (written, written))
    assert not errors.is_build_outdated(tmp_path)
    os.utime(folder / "flat.hpp", (11, 11))
    assert errors.is_build_outdated(tmp_path)


@pytest.mark.parametrize("outdated", [True, False])
def test_a_crash_beside_an_outdated_build_says_so(monkeypatch: pytest.MonkeyPatch, outdated: bool) -> None:
    monkeypatch.setattr(errors, "is_build_outdated", lambda: outdated)
    with pytest.raises(TypeError) as raised:
        errors.answered(lambda: len(5))  # type: ignore[arg-type]
    assert getattr(raised.value, "__notes__", []) == [errors.OUTDATED] * outdated


def test_a_crash_of_what_is_measured_beside_an_outdated_build_says_so_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(errors, "is_build_outdated", lambda: True)
    fine, slow = ({"status": "ok", "reason": None}, {"status": "timeout", "reason": "over 5 s"})
    run.report_stale_build([fine, slow])
    assert capsys.readouterr().err == ""
    crashed = {"status": "error", "reason": "counting failed: TypeError: cannot unpack (native.py:185, in count)"}
    run.report_stale_build([fine, crashed])
    assert capsys.readouterr().err == f"{errors.OUTDATED}\n"
