"""What the gate trusts: a base that head's code cannot alter unseen, and nothing of the tree that it is run in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from gating import git, new_repository, tiny_card
from workbench import CHECKOUT

from harness.gate import __main__ as gate
from harness.gate.base import built_alike
from harness.gate.build_inputs import read_by_build
from harness.gate.watched import Watched, make_read_only, make_writable
from harness.measure.process import PACKAGES, Limits, measure
from harness.worker import word_store
from variants.contract import WordCounts

BOMB = "raise SystemExit('a file of the tree was imported')\n"
SLOWER = """
from variants.heap import train as honest

def train(word_counts, num_merges):
    honest(word_counts, num_merges)
    return honest(word_counts, num_merges)
"""
REWRITES_BASE = """
import glob, os

for base in glob.glob(FOLDERS + "/bpe-harness-*/checkout/mine.py"):
    times = os.stat(base)
    os.chmod(base, 0o600)
    with open(base, "w") as file:
        file.write(SLOWER)
    os.utime(base, ns=(times.st_atime_ns, times.st_mtime_ns))
"""


@pytest.mark.slow
def test_head_that_makes_the_base_slower_while_it_runs_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes twice as long, and so would what is left of the base."""
    folders = tmp_path / "temporary"
    folders.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folders))
    repository = new_repository(tmp_path / "repository")
    monkeypatch.chdir(repository)
    attack = f"FOLDERS = {str(folders)!r}\nSLOWER = {SLOWER!r}\n{REWRITES_BASE}{SLOWER}"
    (repository / "mine.py").write_text(attack)
    card = ["--card", str(tiny_card(tmp_path)), "--output", str(tmp_path / "out")]
    assert gate.main(["mine:train", *card, "--tiers", "identity,time"]) == 22
    headline = capsys.readouterr().out.partition("\n")[0]
    assert "(what was seen is not believed): " in headline
    assert "mine.py, of the base or of what the gate compares by, was changed while head's code ran" in headline


def test_what_was_altered_and_restored_is_seen(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "package").mkdir(parents=True)
    for name in ("package/kept.py", "package/altered.py", "package/gone.py"):
        (tree / name).write_text("x = 1\n")
    make_read_only(tree)
    watched = Watched()
    watched.add(tree)
    assert watched.changed() == []
    make_writable(tree)
    make_read_only(tree)  # to the eye all is as it was
    altered = tree / "package" / "altered.py"
    assert "package/altered.py" in watched.changed()
    make_writable(tree)
    watched.add(tree)
    times = altered.stat()
    altered.write_text("x = 2\n")
    altered.write_text("x = 1\n")
    os.utime(altered, ns=(times.st_atime_ns, times.st_mtime_ns))
    (tree / "package" / "gone.py").unlink()
    (tree / "package" / "json.py").write_text(BOMB)
    assert watched.changed() == ["package", "package/altered.py", "package/gone.py", "package/json.py"]


def test_nothing_of_the_tree_stands_in_for_what_the_measured_process_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, tree = tmp_path / "place", tmp_path / "tree"
    for folder in (place, tree / "harness"):
        folder.mkdir(parents=True)
    for package in ("harness", "variants"):
        (place / package).symlink_to(Path(PACKAGES, package))
    for name in ("json.py", "contextlib.py", "runpy.py", "sitecustomize.py", "harness/__init__.py"):
        (tree / name).write_text(BOMB)
    (tree / "mine.py").write_text("from variants.heap import train\n")
    word_store.write(tmp_path / "words", WordCounts.from_items([(b"low", 5), (b"lower", 2)]))
    monkeypatch.chdir(tree)
    job = {"kind": "train", "target": "mine:train", "params": {}, "threads": 1, "words": str(tmp_path / "words")}
    job |= {"num_merges": 2, "tie_break": "greatest_bytes", "min_count": 1}
    answer = measure(job, tmp_path / "output", Limits(60), places=[str(place), str(tree)])
    assert (answer["status"], answer["reason"]) == ("ok", None)


@pytest.mark.slow
def test_nothing_of_the_tree_stands_in_for_the_gate(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    (repository / "harness").mkdir()
    for name in ("json.py", "numpy.py", "yaml.py", "contextlib.py", "sitecustomize.py", "harness/__init__.py"):
        (repository / name).write_text(BOMB)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "files with names of others")
    command = [sys.executable, "-P", "-m", "harness.gate", "mine:train", "--card", str(tiny_card(tmp_path))]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    ended = subprocess.run(
        [*command, "--tiers", "identity,work"], cwd=repository, capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "  identity 1 passed" in ended.stdout


def test_python_files_that_a_build_reads_are_inputs_of_it(tmp_path: Path) -> None:
    repository = new_repository(tmp_path / "repository")
    for name, content in {
        "setup.py": "import tools.flags\nexec(open('version.py').read())\nparts = glob('parts/*.py')\n",
        "tools/__init__.py": "",
        "tools/flags.py": f"from . import more\nfrom tools import others\nletters = {'ß' * 150!r}\n",
        "tools/others.py": "",
        "tools/unread.py": "",
        "version.py": "",
        "parts/one.py": "",
        "backend/own.py": "",
        "built_by_hand.py": "",
        "pyproject.toml": "[build-system]\nbackend-path = ['backend']\n",
    }.items():
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text(content)
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "a build")
    read = {"setup.py", "tools/__init__.py", "tools/flags.py", "tools/others.py", "version.py", "parts/one.py"}
    assert read_by_build(repository, "python built_by_hand.py") == read | {"backend/own.py", "built_by_hand.py"}
    commit = git(repository, "rev-parse", "HEAD")
    assert built_alike(repository, repository, commit)
    (repository / "tools" / "unread.py").write_text("x = 1\n")
    assert built_alike(repository, repository, commit)
    (repository / "tools" / "others.py").write_text("x = 1\n")
    assert not built_alike(repository, repository, commit)


def test_actions_are_pinned_and_leave_no_credentials_behind() -> None:
    workflows = sorted((CHECKOUT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    for path in workflows:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for step in job["steps"]:
                action, _, commit = step.get("uses", "").partition("@")
                assert not action or len(commit) == 40, f"{path.name}: {action} is not pinned by commit"
                if action == "actions/checkout":
                    assert step["with"]["persist-credentials"] is False, path.name
