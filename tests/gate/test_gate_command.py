"""The gate as a command in repositories, and what an interrupted one leaves behind; the rows of
gate.toml have its tiers and what it refuses.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gating import CARD, commit_all, commit_files, git, new_repository
from workbench import CHECKOUT, Call, heed_signals, processes_that_mention, started, wait_until

from harness.measure.machine import usable_cores
from harness.records.file import read_records
from harness.records.lines import RecordFile

GATE = [sys.executable, "-m", "harness.gate"]


@pytest.mark.slow
@pytest.mark.usefixtures("unruly_trainers")
def test_interruption_ends_every_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    targets = ["unruly:hangs", "unruly:hangs_after_some_merges", "--against-variant", "heap"]
    command = ["-m", "harness.gate", *targets, "--tiers", "identity,work", "--card", str(CARD)]
    process = started(Path(), *command, preexec_fn=heed_signals)

    def running() -> int:
        return len(processes_that_mention(str(tmp_path)))

    beside = 2 * min(2, usable_cores())  # each has its guard
    wait_until(lambda: running() > beside, "processes beside each other")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err == "interrupted; what was observed until then is in the output folder\n"
    wait_until(lambda: running() == 0, "the end of every process of the gate")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_variants_are_timed_against_each_other_and_judged_again(here: Path, call: Call) -> None:
    line = f"heap --against-variant heap_python --tiers time --card {CARD}"
    code, text, _ = call(f"gate {line} --output out")
    assert code == 0
    verdict = json.loads(Path("out", "verdict.json").read_text())
    assert verdict["base"] == "the variant heap_python"

    code, shown, _ = call("gate --replay out --output again")
    assert code == 0
    assert text.startswith(f"{shown}next: python -m harness.table out shows ")
    again = json.loads(Path("again", "verdict.json").read_text())
    assert again["findings"] == verdict["findings"]

    records = read_records([here / "out"])
    sides = [record["gate"]["side"] for record in records if not record["warm_up"]]
    assert [sides.count(side) for side in ("base", "head", "again")] == [6, 6, 2]
    assert len({record["merges_sha256"] for record in records}) == 1
    assert {"side", "base", "head", "again"} <= set(call("table out").out.split())


def test_git_ignores_the_default_results(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    for folder in ("results/local/gate", "results/local", "results/mine"):
        RecordFile(repository / folder)
    untracked = git(repository, "status", "--short", "--untracked-files=all")
    assert untracked == "?? results/mine/records.jsonl"


def ended(command: list[str], folder: Path, **variables: str) -> tuple[int, str]:
    """The exit code of a command in a folder, and what it printed."""
    process = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": "", **variables},
    )
    return process.returncode, process.stdout


TWICE = """
import functools

once = train

@functools.wraps(once)
def train(*given, **options):
    once(*given, **options)
    return once(*given, **options)
"""


@pytest.mark.slow
def test_branch_with_a_slower_heap_fails(tmp_path: Path) -> None:
    """In a copy of this project: training twice is found, also if its counts of work are
    accepted.
    """
    branch = tmp_path / "branch"
    git(CHECKOUT, "checkout-index", "--all", f"--prefix={branch}/")
    for room in ("variants", "harness"):
        for module in (CHECKOUT / room).rglob("*.so"):
            shutil.copy(module, branch / module.relative_to(CHECKOUT))
    git(branch, "init", "-q", "-b", "main")
    commit_all(branch, "base")
    git(branch, "checkout", "-qb", "change")
    with (branch / "variants" / "heap.py").open("a") as file:
        file.write(TWICE)

    command = [*GATE, "heap", "--card", str(CARD)]
    assert ended([*command, "--accept"], branch)[0] == 0
    commit_all(branch, "training twice")
    code, text = ended([*command, "--tiers", "identity,work"], branch)
    has_valgrind = shutil.which("valgrind") is not None
    assert (code, "heap: instructions " in text) == ((20, True) if has_valgrind else (0, False))


PAGE = (CHECKOUT / "docs/how-to/gate.md").read_text()
JOB = yaml.safe_load(PAGE.partition("```yaml\nname: gate")[2].partition("```")[0])
STEPS = JOB["jobs"]["gate"]["steps"]
(COMMAND,) = [step["run"] for step in STEPS if "harness.gate" in step.get("run", "")]
"""Of the job that the page about the gate shows."""


@pytest.mark.slow
def test_job_gates_another_repository(tmp_path: Path) -> None:
    """Its command as it is: a branch that breaks nothing ends with 0, one with wrong merges does
    not.

    No file of the tree replaces what the gate imports.
    """
    repository, clone = new_repository(tmp_path / "repository"), tmp_path / "clone"
    stolen = ("json", "numpy", "yaml", "contextlib", "sitecustomize", "harness/__init__")
    files = {f"{name}.py": "raise SystemExit('it was imported')\n" for name in stolen}
    files["my_package/__init__.py"] = ""
    files["my_package/my_module.py"] = "from variants.heap import train\n"
    commit_files(repository, files)
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "checkout", "-qb", "change")
    commit_files(clone, {"my_package/notes.py": '"""Nothing."""\n'})

    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def gated(command: str) -> tuple[int, str]:
        return ended(["bash", "-e", "-c", command], clone, GITHUB_BASE_REF="main", PATH=path)

    code, text = gated(f"{COMMAND} --tiers identity,work")
    assert code == 0, text

    wrong = "def train(word_counts, num_merges):\n    return [(b'a', b'b')] * num_merges\n"
    (clone / "my_package" / "my_module.py").write_text(wrong)
    code, text = gated(COMMAND)
    assert code == 21, text
    assert "mismatch     my_package.my_module:train on letters: merge 1" in text
    summary = clone / STEPS[-1]["with"]["path"] / "summary.md"
    assert summary.read_text().startswith("### ❌ gate: wrong merges; ")
