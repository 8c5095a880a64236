"""A package outside this repository is installed, and seen wherever variants are: by globs, help, tables, report."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from workbench import CHECKOUT

from harness.records.file import read_records

PACKAGE = Path(__file__).parent / "fixtures" / "example_package"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh folder with the package in it, put there by pip without a network."""
    folder = tmp_path_factory.mktemp("example")
    source = shutil.copytree(PACKAGE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    installed = subprocess.run(
        [*command, "--disable-pip-version-check", "--target", str(folder / "site"), str(source)],
        env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0, installed.stderr
    return folder / "site"


class Shell(NamedTuple):
    """Runs commands in a folder of their own, where the package is installed."""

    folder: Path
    site: Path

    def python(self, *arguments: str) -> str:
        variables = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{self.site}"}
        command = [sys.executable, *arguments]
        ended = subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture
def shell(tmp_path: Path, site: Path) -> Shell:
    (tmp_path / "book.txt").write_text("the cat sat on the mat. the cat sat on the hat.\n" * 3)
    return Shell(tmp_path, site)


MEASURED = ["data.path=book.txt", "vocab_size=270", "concurrent=true", "results=r"]


@pytest.mark.slow
def test_it_is_measured_proved_and_shown_in_the_table(shell: Shell) -> None:
    shown = shell.python("-m", "harness", "variants=[heap,example]", *MEASURED)
    records = read_records([shell.folder / "r"])
    trained = {record["variant"]: record for record in records if record["cell"] == "train"}
    assert trained["example"]["identity"]["kind"] == "identical"
    assert trained["example"]["merges_sha256"] == trained["heap"]["merges_sha256"]
    assert trained["example"]["seconds"]["max"] is not None
    for table in (shown, shell.python("-m", "harness.table", "r")):
        assert [line.split()[0] for line in table.splitlines() if line.startswith(("heap ", "example "))][:2] == [
            "heap",
            "example",
        ]


@pytest.mark.slow
@pytest.mark.parametrize("everything", [["variants=external"], ["-m", "variant=glob(exa*)"]])
def test_it_is_in_the_help_and_among_all_that_there_are(shell: Shell, everything: list[str]) -> None:
    assert " example" in shell.python("-m", "harness", "--help", "all")
    assert "example" in shell.python("-m", "harness", *everything, "plan=true", *MEASURED)


@pytest.mark.slow
def test_it_conforms_and_a_parameter_of_its_own_is_passed_on(shell: Shell) -> None:
    assert "example conforms: " in shell.python("-m", "harness.conformance", "example")
    shell.python("-m", "harness", "variant=example", "variant.params.keep_finished=true", *MEASURED)
    record = read_records([shell.folder / "r"])[-1]
    assert (record["status"], record["params"]) == ("ok", {"keep_finished": True})
