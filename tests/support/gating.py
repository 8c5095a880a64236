"""A small card for tests of the gate, a repository with a trainer, and records of a gate."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec

from harness.records.file import Record
from harness.records.schema import Cell, Data, Measurement, Run

CARD = Path(__file__).resolve().parents[1] / "fixtures/command_rows/folder/tiny_gate.yaml"


def git(folder: Path, *arguments: str) -> str:
    identity = [
        "-c",
        "user.name=test",
        "-c",
        "user.email=test@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def commit_all(folder: Path, message: str = "a change") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


def new_repository(folder: Path) -> Path:
    """A folder, which may have files, as a repository: they and a trainer are its first commit, on main."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "mine.py").write_text("from variants.heap import train\n")
    commit_all(folder, "first")
    return folder


# Records of a gate

STARTED = "2026-01-01T00:00:00+00:00"
DIGEST = "0" * 64
RUN = Run(run=STARTED, schema=2)


def gate_cell(
    tier: str, side: str = "head", variant: str = "mine", corpus: str = "letters"
) -> Cell:
    """The cell of a gate, which measures one side for a tier."""
    gate: Any = {"tier": tier, "corpus": corpus, "comparison": variant, "side": side}
    shared: Any = {"run": STARTED, "cell": 0, "role": "train", "counting": "given", "data": Data()}
    return Cell(variant=variant, threads=1, gate=gate, **shared)


def timed(
    block: int,
    wall: float,
    *,
    cpu: float | None = None,
    threads: int = 1,
    pressure: float = 0.0,
    **figures: Any,
) -> Record:
    """What one sample shows."""
    cell = msgspec.structs.replace(gate_cell("time"), threads=threads)
    is_whole = figures.get("status", "ok") in ("ok", "mismatch")
    measurement = Measurement(
        run=STARTED,
        cell=0,
        block=block,
        started=STARTED,
        seconds={"other": wall, "total": wall} if is_whole else {},
        cpu_seconds=wall * threads if cpu is None else cpu,
        disturbance={"psi_cpu_seconds": pressure * wall},
        **{"status": "ok", "merges_sha256": DIGEST, **figures},
    )
    return Record(RUN, cell, measurement)
