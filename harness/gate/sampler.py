"""Runs of one variant on one side, for every tier of the gate: a corpus as words, a fresh process, a proof."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.console import Show
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.gate.base import Side, file_states
from harness.gate.evidence import BASE, Evidence
from harness.gate.judge import ABSENT, UNMEASURED
from harness.gate.rule import Card
from harness.measure.machine import usable_cores
from harness.measure.process import Answer, measure
from harness.proof.prove import Identity, MergeList, prove
from harness.runs.cells import TrainCell
from harness.runs.jobs import read_merges, train_job, without_paths
from harness.runs.plan import planned
from harness.worker import exchange
from harness.worker.calling import OWN
from harness.worker.exchange import merges_sha256
from variants.contract import Merge, TieBreak


@dataclass(frozen=True)
class Task:
    """A corpus, its words counted once, and how many merges are wanted under which tie-break."""

    name: str
    cell: TrainCell
    words: Path


@dataclass(frozen=True)
class Arm:
    """A variant on one side."""

    side: Side
    variant: VariantCard


@dataclass(frozen=True)
class Result:
    """One run's answer, its merges if it has any, and why it failed."""

    answer: Answer
    merges: Sequence[Merge] | None
    reason: str

    @property
    def status(self) -> str:
        return str(self.answer["status"])

    @property
    def digest(self) -> str | None:
        return merges_sha256(self.merges) if self.merges is not None and self.status == "ok" else None


class NotMeasured(Exception):
    """A run failed; `state` says whether head is to blame."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state


@dataclass
class Sampler:
    """Makes tasks and runs variants; `folder` holds all it needs on disk. Frozen files are to stay as they are."""

    card: Card
    folder: Path
    evidence: Evidence
    show: Show
    tasks: dict[tuple[str, ...], Task] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    order: random.Random = field(default_factory=lambda: random.Random(0))
    frozen: dict[Path, dict[str, int]] = field(default_factory=dict)

    def freeze(self, folder: Path) -> None:
        self.frozen[folder] = file_states(folder)

    def changed_files(self) -> list[str]:
        """Return the frozen files that were changed, added or removed."""
        states = ((before.items(), file_states(folder).items()) for folder, before in self.frozen.items())
        return sorted({name for before, after in states for name, _ in before ^ after})

    def task(self, name: str, say: Sequence[str], wall: float | None = None) -> Task:
        """Return the task of these overrides; its words are counted once, by the counter that is the definition."""
        limits = self.card.limits
        overrides = (*say, f"limits.wall={wall or limits.wall:g}", f"limits.memory={limits.memory}")
        if overrides not in self.tasks:
            cells = planned(overrides).cells
            if len(cells) != 1:
                raise Refusal(f"corpus {name} of the gate makes {len(cells)} tasks; set one value for each key")
            self.tasks[overrides] = Task(name, cells[0], self._words(cells[0]))
        return self.tasks[overrides]

    def _words(self, cell: TrainCell) -> Path:
        if cell.reading.file.table:
            return cell.reading.file.path
        words = self.folder / "words" / str(len(self.tasks))
        words.parent.mkdir(parents=True, exist_ok=True)
        exchange.write_words(words, registry.definition_counter()(cell.reading.corpus))
        self.freeze(words)
        return words

    def run(self, arm: Arm, task: Task, do: Any = measure, *, seed: str = "", **options: Any) -> Result:
        """Run a variant once in a fresh process; `seed` is for its hashes."""
        output = self.folder / "samples" / str(next(self.numbers))
        output.parent.mkdir(parents=True, exist_ok=True)
        job = train_job(task.cell, arm.variant, task.words, None)
        # Where Python puts compiled files, whatever the user's settings are; the base was compiled when it was made.
        variables = {"PYTHONPYCACHEPREFIX": str(self.folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
        if arm.side.checkout is not None:
            variables = {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": "1"}
        variables |= {"PYTHONHASHSEED": seed} if seed else {}
        try:
            answer = do(job, output, task.cell.limits, places=arm.side.places, variables=variables, **options)
            reason = without_paths(answer["reason"], task.cell.reading)
            return Result(answer, read_merges(output, answer), reason or "no reason was given")
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def run_well(self, arm: Arm, task: Task, do: Any = measure, **options: Any) -> Result:
        """Run a variant. Raises NotMeasured if it fails: a base that fails, or what cannot run here, is only absent."""
        result = self.run(arm, task, do, **options)
        if result.status == "ok":
            return result
        absent = result.status == "skipped" or arm.side.name == BASE
        raise NotMeasured(ABSENT if absent else UNMEASURED, f"{arm.side.name} was {result.status}: {result.reason}")

    def prove(self, task: Task, results: Mapping[str, Result]) -> list[Identity | None]:
        """Return the identity of the merges of each result; None for a result without merges."""
        cell = task.cell
        tie_break = None if cell.tie_break == OWN else TieBreak(cell.tie_break)
        words, identities = exchange.read_words(task.words)[0], dict[str | None, Identity]()
        for name, result in results.items():
            if result.merges is not None and result.digest not in identities:
                merges = MergeList(f"{name} on {task.name}", result.merges, cell.num_merges, tie_break)
                identities[result.digest] = prove(words, merges, cell.min_count, **cell.extending())
        return [identities.get(result.digest) for result in results.values()]


@contextlib.contextmanager
def processors() -> Iterator[Executor]:
    """Yield a thread for each processor, for runs whose times do not matter; after a failure none starts."""
    threads = ThreadPoolExecutor(usable_cores())
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)
