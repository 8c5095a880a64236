"""The job for somebody's own repository installs what is installed here, or says that no other machine can."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from harness.common.errors import Refusal
from harness.gate.__main__ import main
from harness.gate.workflow import requirement_of, workflow

REPOSITORY = Path(__file__).resolve().parent.parent


def test_the_job_gates_the_trainer_by_what_it_is_told_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    requirement = "bpe-harness @ git+https://a.example/b"
    assert main(["mine.trainer:train", "--workflow", requirement]) == 0
    printed = capsys.readouterr().out
    assert printed == workflow("mine.trainer:train", requirement)
    job = yaml.safe_load(printed)["jobs"]["gate"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[0] == f"python -m pip install '{requirement}'"
    assert commands[1].startswith("python -P -m harness.gate mine.trainer:train --against ")
    assert job["steps"][0]["with"]["persist-credentials"] is False


def test_the_job_uses_the_actions_that_this_project_uses() -> None:
    own = "".join(path.read_text() for path in (REPOSITORY / ".github/workflows").glob("*.yml"))
    used = [step["uses"] for step in yaml.safe_load(workflow("a:b", "c"))["jobs"]["gate"]["steps"] if "uses" in step]
    assert used
    assert [action for action in used if action not in own] == []


@pytest.mark.parametrize("targets", [[], ["heap"], ["a:b", "c:d"]])
def test_one_trainer_has_to_be_named(targets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*targets, "--workflow", "x"]) == 2
    assert "package.module:function" in capsys.readouterr().err


def test_a_clone_is_installed_from_where_it_was_cloned_and_a_folder_from_nowhere(tmp_path: Path) -> None:
    origin = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    with pytest.raises(Refusal, match="no other machine reaches; say what CI should install"):
        requirement_of(origin, "1.0")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True)
    subprocess.run([*git, "remote", "add", "origin", "https://me:secret@a.example/b/c"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert requirement_of(origin, "1.0") == f"bpe-harness @ git+https://a.example/b/c@{commit}"
    archive = {"url": "https://a.example/bpe_harness-1.0.whl", "archive_info": {}}
    assert requirement_of(archive, "1.0") == "bpe-harness @ https://a.example/bpe_harness-1.0.whl"
