"""What the gate lets trainers do: a corpus as words with what is asked of it, and one sample of one trainer on it."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.common import registry
from harness.common.comparison import sample_of
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.gate.card import Card
from harness.gate.rule import Timed
from harness.gate.sides import Side
from harness.gate.watched import Watched
from harness.measure.environment import usable_cores
from harness.measure.instructions import measure_instructions
from harness.measure.process import Answer, measure
from harness.proof.prove import Identity, MergeList, prove
from harness.runs import record_of
from harness.runs.cells import TrainCell, read_merges, train_job
from harness.runs.running import planned
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
    def described(self) -> dict[str, Any]:
        file = self.cell.reading.file
        return {"sha256": file.sha256, "bytes": file.bytes, "merges": self.cell.num_merges} | {
            "tie_break": self.cell.tie_break
        }


@dataclass(frozen=True)
class Arm:
    """A variant as one side has it."""

    side: Side
    variant: VariantCard


@dataclass(frozen=True)
class Sampled:
    """One trainer's answer, and its merges where it has any."""

    answer: Answer
    merges: Sequence[Merge] | None

    @property
    def digest(self) -> str | None:
        return merges_sha256(self.merges) if self.merges is not None and self.answer["status"] == "ok" else None


class Laboratory:
    """Makes tasks and takes samples; all that it needs of a disk is in `folder`."""

    def __init__(self, card: Card, overrides: Sequence[str], folder: Path) -> None:
        self.card = card
        self.overrides = list(overrides)
        self.folder = folder
        self.tasks: dict[str, Task] = {}
        self.numbers = itertools.count(1)
        self.watched = Watched()

    def task(self, name: str, say: Sequence[str], wall: float | None = None, threads: int = 1) -> Task:
        """The task that these overrides describe, its words counted here and now by the definition."""
        limits = [f"limits.wall={wall or self.card.limits.wall:g}", f"limits.memory={self.card.limits.memory}"]
        asked = [*say, *limits, *self.overrides]
        key = " ".join(asked)
        if key not in self.tasks:
            cells, _ = planned(asked)
            if len(cells) != 1:
                raise Refusal(f"the gate's corpus {name} is one corpus at one width, and these are {len(cells)}")
            words = self.folder / "words" / str(len(self.tasks))
            words.parent.mkdir(parents=True, exist_ok=True)
            cell = cells[0]
            if cell.reading.file.table:
                words = cell.reading.file.path
            else:
                word_store.write(words, registry.definition_counter()(cell.reading.corpus))
                self.watched.add(words)
            self.tasks[key] = Task(name, cell, words)
        task = self.tasks[key]
        return replace(task, cell=replace(task.cell, count=replace(task.cell.count, threads=threads)))

    def sample(
        self, arm: Arm, task: Task, *, phased: bool = False, environment: Mapping[str, str] = MappingProxyType({})
    ) -> Sampled:
        """Run a variant once in a fresh process; `phased` names its tallies by their phases."""
        return self._run(arm, task, measure, {"tallies_by_phase": phased}, variables=environment)

    def instructions(self, arm: Arm, task: Task, layout: int = 0) -> Sampled:
        """Run a variant once under callgrind."""
        return self._run(arm, task, measure_instructions, {}, layout=layout)

    def compiled(self, side: Side) -> dict[str, str]:
        """Where Python keeps what it compiles, whatever the user's own settings are: once for all samples of a side."""
        if side.frozen:
            return {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": "1"}
        return {"PYTHONPYCACHEPREFIX": str(self.folder / "compiled" / side.name), "PYTHONDONTWRITEBYTECODE": ""}

    def _run(
        self,
        arm: Arm,
        task: Task,
        run: Any,
        further: dict[str, Any],
        variables: Mapping[str, str] = MappingProxyType({}),
        **how: Any,
    ) -> Sampled:
        output = self.folder / "samples" / str(next(self.numbers))
        output.parent.mkdir(parents=True, exist_ok=True)
        job = train_job(task.cell, arm.variant, task.cell.num_merges, task.words, arm.side.interpreter) | further
        try:
            variables = {**self.compiled(arm.side), **variables}
            answer = run(job, output, task.cell.limits, places=arm.side.places, variables=variables, **how)
            return Sampled(answer, read_merges(output, answer))
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def prove(self, task: Task, arms: Sequence[tuple[VariantCard, Sampled]]) -> list[Identity | None]:
        """The identity of the merges of each sample; None for a sample without merges."""
        cell = task.cell
        tie_break = None if cell.tie_break == OWN else TieBreak(cell.tie_break)
        lists = [
            MergeList(f"{card.name} on {task.name}", each.merges, cell.num_merges, tie_break)
            for card, each in arms
            if each.digest is not None and each.merges is not None
        ]
        found = iter(prove(word_store.read(task.words)[0], lists, cell.min_count, **cell.extension.keywords()))
        return [None if each.digest is None else next(found) for _, each in arms]


@contextlib.contextmanager
def at_a_time() -> Iterator[Executor]:
    """As many threads as there are processors, for samples whose times do not matter; none begins after a failure.

    An interruption ends those that run, for their processes are attended by who looks for it.
    """
    threads = ThreadPoolExecutor(usable_cores())
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


def hash_seed(order: random.Random) -> dict[str, str]:
    """One seed for the hashes of a block: what it costs is the same for all its samples, and another in the next."""
    return {"PYTHONHASHSEED": str(order.randrange(1, 1 << 32))}


def timed(sampled: Sampled, block: int, threads: int) -> Timed | None:
    """What a sample says of time and memory; None if it says nothing."""
    answer = sampled.answer
    seconds = {"total": answer.get("total")}
    sample = sample_of({**answer, "run_id": "gate", "block": block, "threads": threads, "seconds": seconds})
    if sample is None:
        return None
    phases = dict(answer.get("seconds") or {})
    phases["other"] = sample.wall_seconds - sum(phases.values())
    return Timed(sample, answer.get("peak_rss_bytes"), tuple(phases.items()))


def why(sampled: Sampled, task: Task) -> str:
    """Why a sample has no figures, without the paths of this machine."""
    return record_of.without_paths(sampled.answer["reason"], task.cell.reading) or "it did not say why"
