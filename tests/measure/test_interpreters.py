"""Another interpreter runs a trainer's merging; one that cannot is told why, each by itself."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

import pytest
from workbench import TEXT

from harness import run
from harness.common import registry

SMALL = "vocab_size=270"


def test_another_interpreter_runs_the_trainer_and_one_that_cannot_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    (tmp_path / "old").write_text("#!/bin/sh\necho CPython 3.7.16 3 7\n")
    (tmp_path / "old").chmod(0o755)
    none = "/".join(Path(str(shutil.which("true"))).parts[-3:])
    asked = f"{sys.executable},no-such-python,./none/python,./old,{shutil.which('true')}"
    found, *others = run("-m", "variant=heap", "data.path=text", SMALL, f"interpreter={asked}")
    assert found["status"] == "ok"
    assert found["identity"]["kind"] == "identical"
    assert found["interpreter"].startswith(f"{platform.python_implementation()} {platform.python_version()} (")
    assert [(other["status"], other["interpreter"], other["reason"]) for other in others] == [
        (
            "skipped",
            "no-such-python",
            "interpreter 'no-such-python' not found; apt-get install no-such-python, or set interpreter=PATH",
        ),
        ("skipped", "none/python", "interpreter 'none/python' not found; give another path"),
        ("error", "old", "'old' is CPython 3.7.16; trainers run under 3.9 or later"),
        ("error", none, f"'{none}' is not a Python; set interpreter=NAME, such as pypy3"),
    ]


@pytest.mark.slow
def test_every_stage_in_python_is_proved_under_pypy_and_none_that_is_compiled_runs_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("pypy3") is None:
        pytest.skip("pypy3 is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    records = run("variants=[python,cpp,cython,flat_file]", "data.path=text", SMALL, "interpreter=pypy3")
    trained = {record["variant"]: record for record in records}
    cards = registry.variants()
    for name, record in trained.items():
        assert record["interpreter"].startswith("PyPy")
        if record["status"] == "ok":
            assert "python" in cards[name].tags
            assert record["identity"]["kind"] in ("identical", "unproved")
        else:
            assert record["status"] == "skipped"
            assert "only Python stages run under others" in record["reason"] or name == "heap_max"
    assert {name for name, card in cards.items() if "python" in card.tags} - {"heap_max"} <= {
        name for name, record in trained.items() if record["status"] == "ok"
    }
