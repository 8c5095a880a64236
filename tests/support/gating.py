"""A small card for tests of the gate, and a repository with a trainer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

NO_CORPORA: dict[str, dict[str, list[str]]] = {
    corpus: {"say": []} for corpus in ("letters", "ties", "runs", "smallest_ids", "smallest_characters")
}
SMALL = ["data=random_text", "data.source.bytes=2000", "vocab_size=290"]
TINY = {
    "corpora": {**NO_CORPORA, "letters": {"say": SMALL}},
    "work": {"instructions": {"layouts": 2, "say": SMALL}},
    "time": {
        "say": ["data=random_text", "vocab_size=290"],
        "sizes": [2000],
        "sample": {"least": 0.0001, "most": 60},
        "triage": {"blocks": 6, "most": 0.9},
        "confirm": {"blocks": 6, "most": 0.9},
        "control": {"every": 3, "most": 0.9},
        "fewest": 6,
        "must_see": 0.99,
        "memory": {"most": 0.9},
    },
    "limits": {"wall": 300},
}
"""With thresholds so wide that no machine is too slow or too busy."""


def tiny_card(folder: Path) -> Path:
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def commit_all(folder: Path, message: str = "a change") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


def new_repository(folder: Path) -> Path:
    """A repository with one commit on main, and a trainer in it."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "mine.py").write_text("from variants.heap import train\n")
    commit_all(folder, "first")
    return folder
