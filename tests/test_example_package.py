"""A package outside this repository is installed, and seen wherever variants are: by globs, help,
tables, report.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from workbench import CHECKOUT, ran

from harness.records.file import read_records

PACKAGE = Path(__file__).parent / "fixtures" / "example_package"
MEASURED = ["data.path=book.txt", "vocab_size=270", "concurrent=true", "results=r"]


@pytest.mark.slow
def test_a_package_is_measured_proved_and_shown_as_a_variant_of_ours(tmp_path: Path) -> None:
    """It is put into a fresh folder by pip without a network, and every command runs in a folder of
    its own.
    """
    variables = {
        "PYTHONPATH": f"{CHECKOUT}:{tmp_path / 'site'}",
        "PIP_ROOT_USER_ACTION": "ignore",
    }

    def python(*arguments: str) -> str:
        ended = ran(tmp_path, *arguments, variables=variables)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    source = shutil.copytree(
        PACKAGE, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__")
    )
    offline = [
        "--quiet",
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
    ]
    python("-m", "pip", "install", *offline, "--target", str(tmp_path / "site"), str(source))
    (tmp_path / "book.txt").write_text("the cat sat on the mat. the cat sat on the hat.\n" * 3)
    shown = python("-m", "harness", "variants=[heap,example]", *MEASURED)
    records = read_records([tmp_path / "r"])
    trained = {record["variant"]: record for record in records if record["cell"] == "train"}
    assert trained["example"]["identity"]["kind"] == "identical"
    assert trained["example"]["merges_sha256"] == trained["heap"]["merges_sha256"]
    assert trained["example"]["seconds"]["max"] is not None
    for table in (shown, python("-m", "harness.table", "r")):
        rows = [
            line.split()[0] for line in table.splitlines() if line.startswith(("heap ", "example "))
        ]
        assert rows[:2] == ["heap", "example"]
    assert " example" in python("-m", "harness", "--help", "all")
    for everything in (["variants=external"], ["-m", "variant=glob(exa*)"]):
        assert "example" in python("-m", "harness", *everything, "plan=true", *MEASURED)
    assert "example conforms: " in python("-m", "harness.conformance", "example")
    python("-m", "harness", "variant=example", "variant.params.keep_finished=true", *MEASURED)
    record = read_records([tmp_path / "r"])[-1]
    assert (record["status"], record["params"]) == ("ok", {"keep_finished": True})
