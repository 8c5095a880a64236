"""The CI job for a repository of one's own installs what is installed here, or says that other machines cannot."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from harness.common.errors import Refusal
from harness.gate.__main__ import _parser, main
from harness.gate.observe import GateRequest
from harness.gate.workflow import requirement_of, workflow

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
    assert Path(stored) == GateRequest.output


def test_actions_are_those_of_this_project_and_pinned() -> None:
    jobs = [job for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values()]
    own = [step for job in jobs for step in job["steps"] if "uses" in step]
    for step in own:
        action, _, commit = step["uses"].partition("@")
        assert len(commit) == 40, f"{action} is not pinned by commit"
        if action == "actions/checkout":
            assert step["with"]["persist-credentials"] is False
    steps = yaml.safe_load(workflow("a:b", "c"))["jobs"]["gate"]["steps"]
    assert {step["uses"] for step in steps if "uses" in step} <= {step["uses"] for step in own}


@pytest.mark.parametrize("targets", [[], ["heap"], ["a:b", "c:d"]])
def test_job_is_for_one_trainer(targets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*targets, "--workflow", "x"]) == 2
    assert "package.module:function" in capsys.readouterr().err


def test_clone_is_installed_from_its_remote_and_a_folder_from_nowhere(tmp_path: Path) -> None:
    origin = {"url": tmp_path.as_uri(), "dir_info": {"editable": True}}
    with pytest.raises(Refusal, match="other machines cannot reach; pass what CI should install"):
        requirement_of(origin, "1.0")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True)
    subprocess.run([*git, "remote", "add", "origin", "https://me:secret@a.example/b/c"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert requirement_of(origin, "1.0") == f"bpe-harness @ git+https://a.example/b/c@{commit}"
    archive = {"url": "https://a.example/bpe_harness-1.0.whl", "archive_info": {}}
    assert requirement_of(archive, "1.0") == "bpe-harness @ https://a.example/bpe_harness-1.0.whl"
