"""The CI job for a repository of one's own installs what is installed here, or says that other machines cannot."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from gating import git

from harness.common.errors import Refusal
from harness.gate.__main__ import OUTPUT, _parser, installed_from, main, workflow

WORKFLOWS = sorted((Path(__file__).resolve().parents[2] / ".github" / "workflows").glob("*.yml"))


def test_job_gates_the_trainer_and_stores_the_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    requirement = "bpe-harness @ git+https://a.example/b"
    assert main(["mine.trainer:train", "--workflow", requirement]) == 0
    job = yaml.safe_load(capsys.readouterr().out)["jobs"]["gate"]
    assert job["steps"][0]["with"] == {"fetch-depth": 0, "persist-credentials": False}
    install, gate = [step["run"] for step in job["steps"] if "run" in step]
    assert install == f"python -m pip install '{requirement}'"
    assert gate.startswith("python -P -m harness.gate ")  # nothing of the tree replaces the gate
    options = _parser().parse_args(shlex.split(gate.partition("harness.gate ")[2]))
    assert options.targets == ["mine.trainer:train"]
    stored = next(step["with"]["path"] for step in job["steps"] if "upload-artifact" in step.get("uses", ""))
    assert Path(stored) == OUTPUT


def test_actions_are_those_of_this_project_and_pinned() -> None:
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values()]
    own = [step for job in jobs for step in job["steps"] if "uses" in step]
    for step in own:
        action, _, commit = step["uses"].partition("@")
        assert len(commit) == 40, f"{action} is not pinned by commit"
        if action == "actions/checkout":
            assert step["with"]["persist-credentials"] is False
    steps = yaml.safe_load(workflow(["a:b"], "c"))["jobs"]["gate"]["steps"]
    assert {step["uses"] for step in steps if "uses" in step} <= {step["uses"] for step in own}


@pytest.mark.parametrize("targets", [[], ["heap"], ["a:b", "c:d"]])
def test_job_is_for_one_trainer(targets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*targets, "--workflow", "x"]) == 2
    assert "package.module:function" in capsys.readouterr().err


def test_clone_is_installed_from_its_remote_and_never_from_this_machine(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    with pytest.raises(Refusal, match="other machines cannot reach; pass what CI should install"):
        installed_from(tmp_path)
    git(tmp_path, "remote", "add", "origin", "https://me:secret@a.example/b/c")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert installed_from(tmp_path) == f"bpe-harness @ git+https://a.example/b/c@{commit}"
