"""What the measured process is told to do, and the merges that it leaves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.measure import Answer
from harness.plan import CountCell, TrainCell
from harness.record import merges_from_bytes
from harness.registry import VariantCard
from variants.contract import Merge


def count_job(cell: CountCell, affinity: list[int] | None) -> dict[str, Any]:
    return {
        "kind": "count",
        "target": cell.counter.target,
        "params": dict(cell.counter.params),
        "threads": cell.threads,
        "affinity": affinity,
        "corpus": asdict(cell.reading.corpus()),
    }


def train_job(
    cell: TrainCell, variant: VariantCard, num_merges: int, words: Path, interpreter: str | None
) -> dict[str, Any]:
    """It has the words with their counts and, for a trainer that reads by itself, the corpus where there is one."""
    return {
        "kind": "train",
        "target": variant.target,
        "params": dict(variant.params),
        "threads": cell.threads,
        "interpreter": interpreter,
        "words": str(words),
        "corpus": None if cell.reading.file.table else asdict(cell.reading.corpus()),
        "num_merges": num_merges,
        "tie_break": cell.tie_break,
        "min_count": cell.min_count,
    }


def read_merges(output: Path, answer: Answer) -> list[Merge] | None:
    """The merges that a process left; without an answer that names them, half of them may be there, which are none."""
    return merges_from_bytes((output / "merges").read_bytes()) if "merges_done" in answer else None
