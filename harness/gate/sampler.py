"""Samples for the gate: a corpus as words with what is wanted of it, and one run of one variant on one side."""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.gate.base import Side, file_states
from harness.gate.rule import Card
from harness.measure.callgrind import measure_instructions
from harness.measure.machine import usable_cores
from harness.measure.process import Answer, measure
from harness.proof.prove import Identity, MergeList, prove
from harness.runs.cells import TrainCell
from harness.runs.jobs import read_merges, train_job, without_paths
from harness.runs.plan import planned
from harness.worker import word_store
from harness.worker.calling import OWN
from harness.worker.merges_bytes import merges_sha256
from variants.contract import Merge, TieBreak


@dataclass(frozen=True)
class Task:
    """A corpus, its words counted once, and how many merges are wanted under which tie-break."""

    name: str
    cell: TrainCell
    words: Path

    @property
    def facts(self) -> dict[str, Any]:
        file = self.cell.reading.file
        facts = {"sha256": file.sha256, "bytes": file.bytes}
        return {**facts, "merges": self.cell.num_merges, "tie_break": self.cell.tie_break}


@dataclass(frozen=True)
class Arm:
    """A variant on one side."""

    side: Side
    variant: VariantCard


@dataclass(frozen=True)
class Sampled:
    """One run's answer, and its merges if it has any."""

    answer: Answer
    merges: Sequence[Merge] | None

    @property
    def status(self) -> str:
        return str(self.answer["status"])

    @property
    def digest(self) -> str | None:
        return merges_sha256(self.merges) if self.merges is not None and self.status == "ok" else None


class Sampler:
    """Makes tasks and takes samples; `folder` holds all it needs on disk. Frozen files are to stay as they are."""

    def __init__(self, card: Card, overrides: Sequence[str], folder: Path) -> None:
        self.card = card
        self.overrides = list(overrides)
        self.folder = folder
        self.tasks: dict[str, Task] = {}
        self.numbers = itertools.count(1)
        self.frozen: dict[Path, dict[str, tuple[int, ...]]] = {}

    def freeze(self, folder: Path) -> None:
        self.frozen[folder] = file_states(folder)

    def changed_files(self) -> list[str]:
        """The frozen files that were changed, added or removed."""
        changed: list[str] = []
        for folder, before in self.frozen.items():
            after = file_states(folder)
            changed += [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
        return changed

    def task(self, name: str, say: Sequence[str], wall: float | None = None, threads: int = 1) -> Task:
        """The task of these overrides; its words are counted once, by the counter that is the definition."""
        limits = [f"limits.wall={wall or self.card.limits.wall:g}", f"limits.memory={self.card.limits.memory}"]
        overrides = [*say, *limits, *self.overrides]
        key = " ".join(overrides)
        if key not in self.tasks:
            cells = planned(overrides).cells
            if len(cells) != 1:
                raise Refusal(f"corpus {name} of the gate makes {len(cells)} tasks; set one value for each key")
            self.tasks[key] = Task(name, cells[0], self._words(cells[0]))
        task = self.tasks[key]
        return replace(task, cell=replace(task.cell, count=replace(task.cell.count, threads=threads)))

    def _words(self, cell: TrainCell) -> Path:
        if cell.reading.file.table:
            return cell.reading.file.path
        words = self.folder / "words" / str(len(self.tasks))
        words.parent.mkdir(parents=True, exist_ok=True)
        word_store.write(words, registry.definition_counter()(cell.reading.corpus))
        self.freeze(words)
        return words

    def sample(self, arm: Arm, task: Task, variables: Mapping[str, str] | None = None, **job: Any) -> Sampled:
        """Run a variant once in a fresh process; `job` is added to what it is given."""
        return self._run(arm, task, measure, job, variables=variables or {})

    def count_instructions(self, arm: Arm, task: Task, layout: int = 0) -> Sampled:
        """Run a variant once under callgrind."""
        return self._run(arm, task, measure_instructions, {}, variables={}, layout=layout)

    def _run(
        self, arm: Arm, task: Task, run: Any, job: Mapping[str, Any], variables: Mapping[str, str], **options: Any
    ) -> Sampled:
        output = self.folder / "samples" / str(next(self.numbers))
        output.parent.mkdir(parents=True, exist_ok=True)
        job = {**train_job(task.cell, arm.variant, task.words, arm.side.interpreter), **job}
        variables = {**self._bytecode(arm.side), **variables}
        try:
            answer = run(job, output, task.cell.limits, places=arm.side.places, variables=variables, **options)
            return Sampled(answer, read_merges(output, answer))
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def _bytecode(self, side: Side) -> dict[str, str]:
        """Where Python puts compiled files, whatever the user's settings are: once for all samples of a side."""
        if side.frozen:
            return {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": "1"}
        return {"PYTHONPYCACHEPREFIX": str(self.folder / "compiled" / side.name), "PYTHONDONTWRITEBYTECODE": ""}

    def prove(self, task: Task, samples: Sequence[tuple[VariantCard, Sampled]]) -> list[Identity | None]:
        """The identity of the merges of each sample; None for a sample without merges."""
        cell = task.cell
        tie_break = None if cell.tie_break == OWN else TieBreak(cell.tie_break)
        lists = [
            MergeList(f"{card.name} on {task.name}", sampled.merges, cell.num_merges, tie_break)
            for card, sampled in samples
            if sampled.digest is not None and sampled.merges is not None
        ]
        words = word_store.read(task.words)[0]
        identities = iter(prove(words, lists, cell.min_count, **cell.extension.keywords()))
        return [None if sampled.digest is None else next(identities) for _, sampled in samples]


@contextlib.contextmanager
def processors() -> Iterator[Executor]:
    """A thread for each processor, for samples whose times do not matter; after a failure none starts."""
    threads = ThreadPoolExecutor(usable_cores())
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


def reason_of(sampled: Sampled, task: Task) -> str:
    """Why a sample failed, without this machine's paths."""
    return without_paths(sampled.answer["reason"], task.cell.reading) or "no reason was given"
