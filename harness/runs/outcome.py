"""What came of one measurement, before it is a record: a counter's answer, a trainer's answer with its merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.measure.process import Answer
from harness.runs.cells import CountCell, TrainCell
from harness.worker.calling import OWN
from variants.contract import Merge

STOPPED = ("timeout", "extrapolated")
"""The statuses of what was stopped at limits.wall."""


@dataclass(frozen=True)
class Block:
    """A pass over all cells."""

    number: int
    warm_up: bool = False

    @property
    def place(self) -> tuple[bool, int]:
        """Where it stands among the others: warm-up comes first."""
        return not self.warm_up, self.number


@dataclass
class Counted:
    """A counter's answer, and its words if it came to any."""

    answer: Answer
    words: Path | None
    failed_by: str | None = None


@dataclass
class CountRun:
    """A counter measured in one block; `concurrent` if other timed runs were going on beside it."""

    cell: CountCell
    block: Block
    started: str
    counted: Counted
    cut_short: bool = False
    concurrent: bool = False


@dataclass
class Trained:
    """A trainer's answer in one block, its merges, and in the end their identity.

    `cut_short` if its block was interrupted: what it has in common with the cells measured later is not the moment.
    """

    cell: TrainCell
    block: Block
    started: str
    answer: Answer
    counted: Counted
    merges: Sequence[Merge] | None = None
    cut_short: bool = False
    concurrent: bool = False
    tokens: int | None = None
    """How many tokens are left of the text; None where nobody asks."""
    identity: Any = None
    """Whether its merges are the defined ones (proof/prove.py); None if they were not judged."""

    @property
    def tie_break(self) -> str | None:
        """How ties were broken; None where a trainer's own way is none of the contract's."""
        return self.answer.get("tie_break") if self.cell.tie_break == OWN else self.cell.tie_break


def stopped_at_the_limit(trained: Iterable[Trained]) -> set[str]:
    """The keys of cells that were over limits.wall: more of the same would only show it again."""
    return {each.cell.key() for each in trained if each.answer["status"] in STOPPED}
