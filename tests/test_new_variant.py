"""A new variant is whole from its first moment: its file, card and test pass all that a variant has
to pass.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from planted_faults import copied
from workbench import ran

from harness.common import errors, registry
from harness.new_variant import main

PLACES = ["variants/my_stage.py", "conf/variant/my_stage.yaml", "tests/variants/test_my_stage.py"]


def python(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {"PYTHONPATH": str(root), "BPE_HARNESS_CACHE": str(root / "cache")}
    return ran(root, *arguments, variables=variables)


@pytest.mark.slow
def test_three_files_pass_everything_and_an_edit_is_judged(tmp_path: Path) -> None:
    checkout = copied(tmp_path)
    made = python(checkout, "-m", "harness.new_variant", "my_stage")
    assert (made.returncode, made.stderr) == (errors.OK, "")
    assert made.stdout.splitlines()[:3] == PLACES
    card = yaml.safe_load((checkout / PLACES[1]).read_text())
    assert card["_target_"] == "variants.my_stage:train"
    assert list(card) == list(yaml.safe_load((checkout / "conf/variant/heap.yaml").read_text()))
    for command in (
        ["-m", "ruff", "check", *PLACES[::2]],
        ["-m", "ruff", "format", "--check", *PLACES[::2]],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", PLACES[2], PLACES[0]],
        ["-m", "mypy", "--follow-imports=silent", "--cache-dir", "cache", *PLACES[::2]],
        ["-m", "harness", "--help", "all"],
    ):
        ended = python(checkout, *command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "my_stage" in ended.stdout
    conformance = ["-m", "harness.conformance", "my_stage", "--tie-break", "greatest_bytes"]
    assert python(checkout, *conformance).returncode == errors.OK
    stage = checkout / PLACES[0]
    right = "[merge_pair(word, pair, new_token) for word in words]"
    assert right in stage.read_text()
    stage.write_text(stage.read_text().replace(right, "[word for word in words]"))
    assert python(checkout, *conformance).returncode == errors.MISMATCH


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("heap", "'heap' is a variant or a tag already; choose another name"),
        ("series", "'series' is a variant or a tag already"),
        ("words", "variants/words.py exists already; choose another name"),
        ("counting", "tests/variants/test_counting.py exists already"),
        ("My-Stage", "'My-Stage' cannot be a module's name; use small letters"),
        ("class", "'class' cannot be a module's name"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(
    name: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("harness.new_variant.write_whole", None)  # nothing is written
    assert main([name]) == errors.USAGE
    output = capsys.readouterr()
    assert (output.out, answer in output.err, output.err.count("\n")) == ("", True, 1)


def test_an_installed_package_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(registry, "conf_folder", lambda: tmp_path / "conf")
    assert main(["my_stage"]) == errors.UNMEASURED
    assert "not a checkout; a trainer of your own needs no place in it" in capsys.readouterr().err
