"""What users install: described once, complete, released by workflows that take nothing on trust and need no secret."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import tomllib
import yaml
from test_house import git_files

import harness
from harness.__main__ import main

REPOSITORY = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
ACTION = re.compile(r"uses: *([^\s@]+)@(\S+)(.*)")
PINNED = re.compile(r"[0-9a-f]{40}")


def text(name: str) -> str:
    return (REPOSITORY / name).read_text()


def test_the_version_is_ours_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    version = PROJECT["project"]["version"]
    assert harness.__version__ == importlib.metadata.version("bpe-harness") == version
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bpe-harness {version}\n"
    citation = yaml.safe_load(text("CITATION.cff"))
    assert (citation["version"], citation["repository-code"]) == (version, PROJECT["project"]["urls"]["Repository"])


def test_every_action_is_pinned_by_its_commit_and_says_its_version() -> None:
    pages = [*WORKFLOWS, *(REPOSITORY / "docs").rglob("*.md")]
    used = [found.groups() for page in pages for found in ACTION.finditer(page.read_text())]
    assert len(used) > 10
    assert [
        action for action in used if not PINNED.fullmatch(action[1]) or not re.fullmatch(r"  # v[\d.]+", action[2])
    ] == []
    assert len({(name, commit) for name, commit, _ in used}) == len({name for name, _, _ in used})


def test_releasing_needs_no_secret_and_may_do_nothing_else() -> None:
    assert [page.name for page in WORKFLOWS if "secrets." in page.read_text()] == []
    workflow = yaml.safe_load(text(".github/workflows/wheels.yml"))
    assert workflow["permissions"] == {"contents": "read"}
    permitted = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    assert permitted == {"wheels": None, "sdist": None, "release": {"id-token": "write"}}
    release = workflow["jobs"]["release"]
    assert (release["needs"], release["environment"]) == (["wheels", "sdist"], "release")
    assert release["if"] == "startsWith(github.ref, 'refs/tags/v')"


def test_wheels_are_for_the_pythons_that_are_tested() -> None:
    versions = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.MULTILINE)
    assert " ".join(versions) in text(".ci/run")
    assert PROJECT["tool"]["cibuildwheel"]["build"] == [f"cp{version.replace('.', '')}-*" for version in versions]
    (script,) = re.findall(r"\{project\}/(\S+)", PROJECT["tool"]["cibuildwheel"]["test-command"])
    assert (REPOSITORY / script).is_file()


@pytest.mark.slow
def test_the_source_distribution_holds_all_that_the_project_is(tmp_path: Path) -> None:
    """So that it builds, is tested and documented from there as from a checkout; and nothing that was made."""
    building = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), "."]
    subprocess.run(building, cwd=REPOSITORY, check=True, capture_output=True)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames() if not name.endswith("/")}
    kept = set(git_files("--cached", "--others", "--exclude-standard"))
    assert kept - held == set()
    files = {name for name in held if "." in Path(name).name and not name.startswith("bpe_harness.egg-info")}
    folders = {str(parent) for name in held for parent in Path(name).parents}
    assert files - kept - folders <= {"PKG-INFO", "setup.cfg"}
