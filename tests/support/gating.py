"""A small card for tests of the gate, and a repository with a trainer."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from rows import write_files

CARD = Path(__file__).resolve().parents[1] / "fixtures/command_rows/folder/tiny_gate.yaml"


def git(folder: Path, *arguments: str) -> str:
    name = "-c user.name=test -c user.email=test@example.org -c commit.gpgsign=false"
    command = ["git", "-C", str(folder), *name.split(), *arguments]
    return subprocess.check_output(command, text=True).strip()


def commit_all(folder: Path, message: str = "a change") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


def commit_files(folder: Path, files: Mapping[str, str]) -> str:
    write_files(folder, files)
    return commit_all(folder)


def new_repository(folder: Path) -> Path:
    """A folder, which may have files, as a repository: they and a trainer are its first commit, on main."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "mine.py").write_text("from variants.heap import train\n")
    commit_all(folder, "first")
    return folder
