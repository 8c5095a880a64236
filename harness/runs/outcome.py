"""The result of one measured process: a counter's answer, or a trainer's with its merges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.measure.process import Answer
from harness.runs.cells import CountCell, TrainCell
from harness.runs.resume import Block
from harness.worker.calling import OWN
from variants.contract import Merge


@dataclass
class Counted:
    """A counter's answer, and its words if it counted any."""

    answer: Answer
    words: Path | None
    failed_by: str | None = None


@dataclass
class CountRun:
    """A counter measured in one block; `concurrent` if other runs were timed at the same time."""

    cell: CountCell
    block: Block
    started: str
    counted: Counted
    concurrent: bool = False


@dataclass
class Trained:
    """A trainer's answer in one block, its merges and their identity; the merges go once they are recorded."""

    cell: TrainCell
    block: Block
    started: str
    answer: Answer
    counted: Counted
    merges: Sequence[Merge] | None = None
    concurrent: bool = False
    tokens: int | None = None
    """How many tokens are left of the text; None unless tokens=true."""
    identity: Any = None
    """Whether its merges are the defined ones (proof/prove.py); None if they were not judged."""

    @property
    def tie_break(self) -> str | None:
        """How ties were broken; None if a trainer's own way is not one of the contract's."""
        return self.answer.get("tie_break") if self.cell.tie_break == OWN else self.cell.tie_break
