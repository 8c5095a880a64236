"""What tests of the gate gate: a card of one small corpus, and a repository of somebody's own with a trainer in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

TINY = {
    "like": "usual",
    "corpora": {
        "letters": {"say": ["data=random_text", "data.source.bytes=2000", "vocab_size=290"]},
        **{corpus: {"say": []} for corpus in ("ties", "runs", "smallest_ids", "smallest_characters")},
    },
    "work": {"instructions": {"layouts": 2, "say": ["data=random_text", "data.source.bytes=2000", "vocab_size=290"]}},
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
"""Thresholds so wide that no machine is too slow or too busy for them: times are not what these tests are about."""


def tiny_card(folder: Path) -> Path:
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def new_repository(folder: Path) -> Path:
    """A repository with one commit on main, and a trainer in it."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "mine.py").write_text("from variants.heap import train\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder
