"""Measuring the two sides, tier after tier: each run is a fresh process, each observation is
written as it comes.

Identity and work run every variant once on every corpus. Instructions of base and head are counted
under callgrind: a count may depend on where things lie in memory, so a higher one is repeated in
other layouts. Time takes interleaved samples of base and head, until the rule has decided.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.comparison import Sample as Times
from harness.common.comparison import shares_of
from harness.common.console import bar
from harness.common.errors import Refusal
from harness.common.files import temporary_folder
from harness.common.registry import VariantCard
from harness.common.units import duration_text
from harness.gate import evidence as store
from harness.gate.base import Side, file_states
from harness.gate.evidence import (
    ABSENT,
    BASE,
    HEAD,
    INCONCLUSIVE,
    PASS,
    UNMEASURED,
    Evidence,
    Sample,
    Snapshot,
    Timed,
)
from harness.gate.judge import SAME_CODE, relative_increase
from harness.gate.rule import ESCALATE, Card, decide
from harness.measure.callgrind import measure_instructions
from harness.measure.machine import source_sha256, usable_cores
from harness.measure.process import Answer, measure
from harness.proof import IDENTICAL
from harness.proof.prove import Identity, MergeList, prove
from harness.runs.cells import TrainCell
from harness.runs.jobs import read_merges, train_job, without_paths
from harness.runs.plan import planned
from harness.worker import exchange
from harness.worker.calling import OWN
from harness.worker.exchange import merges_sha256
from variants.contract import Merge, TieBreak

CLOCKS = ("wall_seconds", "cpu_seconds", "cpu_wait_seconds", "cpu_wait_unknown", "pressure")


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

    @property
    def name(self) -> str:
        return self.variant.name

    def code(self) -> tuple[Any, ...]:
        """Return what it runs: target, parameters, and the digest of the source, None if there is
        none.
        """
        target, params = self.variant.target, self.variant.params
        return target, params, source_sha256(target, params, self.side.places)


@dataclass(frozen=True)
class Comparison:
    """Head against base, of one variant or of two."""

    name: str
    base: Arm
    head: Arm

    @property
    def same_source(self) -> bool:
        """Whether both run the same code of their package, with the same parameters."""
        base, head = self.base.code(), self.head.code()
        return base == head and head[-1] is not None

    @property
    def same_code(self) -> bool:
        """Whether nothing can differ: no file but documents has changed."""
        return self.same_source and not self.base.side.changed


@dataclass(frozen=True)
class Result:
    """One run's answer, its merges if it has any, and why it failed."""

    answer: Answer
    merges: Sequence[Merge] | None
    reason: str

    @property
    def status(self) -> str:
        return self.answer.status

    @property
    def digest(self) -> str | None:
        return (
            merges_sha256(self.merges) if self.merges is not None and self.status == "ok" else None
        )


class NotMeasured(Exception):
    """A run failed: the state, which says whether head is to blame, and the reason."""


@dataclass
class Sampler:
    """Makes tasks and runs variants; `folder` holds what they need. Frozen files are to stay as
    they are.
    """

    card: Card
    folder: Path
    evidence: Evidence
    tasks: dict[tuple[str, ...], Task] = field(default_factory=dict)
    order: random.Random = field(default_factory=lambda: random.Random(0))
    frozen: dict[Path, dict[str, int]] = field(default_factory=dict)

    def freeze(self, folder: Path) -> None:
        self.frozen[folder] = file_states(folder)

    def changed_files(self) -> list[str]:
        """Return the frozen files that were changed, added or removed."""
        states = (
            (before.items(), file_states(folder).items()) for folder, before in self.frozen.items()
        )
        return sorted({name for before, after in states for name, _ in before ^ after})

    def task(self, name: str, say: Sequence[str], wall: float | None = None) -> Task:
        """Return the task of these overrides; its words are counted once, by the counter that is
        the definition.
        """
        limits = self.card.limits
        overrides = (*say, f"limits.wall={wall or limits.wall:g}", f"limits.memory={limits.memory}")
        if overrides not in self.tasks:
            cells = planned(overrides).cells
            if len(cells) != 1:
                raise Refusal(
                    f"corpus {name} of the gate makes {len(cells)} tasks; set one value for each key"
                )

            reading, words = cells[0].reading, self.folder / f"words{len(self.tasks)}"
            if reading.file.table:
                words = reading.file.path
            else:
                exchange.write_words(words, registry.definition_counter()(reading.corpus))
                reading.file.check_unchanged()
                self.freeze(words)
            self.tasks[overrides] = Task(name, cells[0], words)
        return self.tasks[overrides]

    def run(
        self,
        arm: Arm,
        task: Task,
        do: Callable[..., Answer] = measure,
        seed: str = "",
    ) -> Result:
        """Run a variant once in a fresh process; `seed` is for its hashes."""
        # Where Python puts compiled files, whatever the user's settings are; the base was compiled
        # when it was made.
        variables = {
            "PYTHONPYCACHEPREFIX": str(self.folder / "compiled"),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        if arm.side.checkout is not None:
            variables = {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": "1"}
        if seed:
            variables["PYTHONHASHSEED"] = seed

        job = train_job(task.cell, arm.variant, task.words)
        with temporary_folder() as folder:
            output = folder / "output"
            answer = do(
                job,
                output,
                task.cell.count.limits,
                places=arm.side.places,
                variables=variables,
            )
            reason = without_paths(answer.reason, task.cell.reading)
            return Result(answer, read_merges(output, answer), reason or "no reason was given")

    def run_well(self, arm: Arm, task: Task, do: Callable[..., Answer] = measure) -> Result:
        """Run a variant. Raises NotMeasured if it fails: a base that fails, or what cannot run
        here, is only absent.
        """
        result = self.run(arm, task, do)
        if result.status == "ok":
            return result
        absent = result.status == "skipped" or arm.side.name == BASE
        raise NotMeasured(
            ABSENT if absent else UNMEASURED,
            f"{arm.side.name} was {result.status}: {result.reason}",
        )

    def beside(self, stage: str, do: Callable[[Any], Any], things: Sequence[Any]) -> Iterator[Any]:
        """Yield what `do` returns of each, on all processors, for no time is taken; after a failure
        none starts.
        """
        threads = ThreadPoolExecutor(usable_cores())
        try:
            with bar(stage, len(things), "variants") as show:
                for done, result in enumerate(threads.map(do, things), 1):
                    yield result
                    show(done)
        finally:
            threads.shutdown(cancel_futures=True)


def identities(task: Task, results: Mapping[str, Result]) -> list[Identity | None]:
    """Return the proof of each result's merges, equal ones proved once; None for a result without
    merges.
    """
    cell = task.cell
    tie_break = None if cell.tie_break == OWN else TieBreak(cell.tie_break)
    words, proofs = exchange.read_words(task.words)[0], dict[str | None, Identity]()
    for name, result in results.items():
        if result.merges is not None and result.digest not in proofs:
            merges = MergeList(f"{name} on {task.name}", result.merges, cell.num_merges, tie_break)
            proofs[result.digest] = prove(words, merges, cell.min_count, **cell.extending())
    return [proofs.get(result.digest) for result in results.values()]


def observe_counts(sampler: Sampler, head: Side, variants: Sequence[VariantCard]) -> None:
    """Observe merges and tallies of every variant on every corpus."""
    card = sampler.card
    snapshot = store.read_snapshot(Path(card.work.counters)) if "work" in card.tiers else None
    for corpus, rule in card.corpora.items():
        chosen = variants if rule.variants is None else registry.select(rule.variants)
        names = {card.name for card in chosen}
        arms = [Arm(head, card) for card in variants if card.name in names]
        if not arms or not rule.say:
            continue
        task = sampler.task(corpus, rule.say)
        runs = sampler.beside(
            f"identity and work on {corpus}", partial(sampler.run, task=task), arms
        )
        results = dict(zip([arm.name for arm in arms], runs, strict=True))
        observe_results(sampler, task, results, snapshot)


def observe_results(
    sampler: Sampler, task: Task, results: Mapping[str, Result], snapshot: Snapshot | None
) -> None:
    tiers, add = sampler.card.tiers, sampler.evidence.add
    proofs = identities(task, results) if "identity" in tiers else [None] * len(results)
    for (name, result), identity in zip(results.items(), proofs, strict=True):
        if "identity" in tiers:
            number = None if result.merges is None else len(result.merges)
            reason = result.reason if identity is None else None
            add(
                store.Merges(
                    name, task.name, result.status, reason, number, result.digest, identity
                )
            )

        if "work" in tiers and result.digest is not None:
            tallies = dict(sorted((result.answer.tallies or {}).items()))
            expected = snapshot.counters.get(name, {}).get(task.name) if snapshot else None
            add(store.Tallies(name, task.name, tallies, expected, snapshot is not None))


def observe_instructions(sampler: Sampler, comparisons: Sequence[Comparison]) -> None:
    """Count base and head of each comparison whose code differs."""
    rule, changed = sampler.card.work.instructions, []
    for comparison in comparisons:
        if comparison.same_code:
            sampler.evidence.add(store.Instructions(comparison.name, ABSENT, SAME_CODE))
        else:
            changed.append(comparison)
    if changed:
        task = sampler.task("instructions", rule.say, wall=rule.wall)
        for counted in sampler.beside(
            "instructions", partial(count_instructions, sampler, task), changed
        ):
            sampler.evidence.add(counted)


def count_instructions(sampler: Sampler, task: Task, comparison: Comparison) -> store.Instructions:
    """Count base and head beside each other; again in other layouts while head takes more."""
    rule, name = sampler.card.work.instructions, comparison.name
    base, head = [], []
    for layout in range(rule.layouts):
        count = partial(measure_instructions, layout=layout)
        run = partial(sampler.run_well, task=task, do=count)
        try:
            with ThreadPoolExecutor() as threads:
                of_base, of_head = threads.map(run, (comparison.base, comparison.head))
        except NotMeasured as error:
            return store.Instructions(name, *error.args)
        base.append(instructions_of(of_base))
        head.append(instructions_of(of_head))
        if relative_increase(base, head) <= rule.most:
            break
    return store.Instructions(name, PASS, None, base, head)


def instructions_of(result: Result) -> int:
    assert result.answer.instructions is not None, "a run under callgrind that is ok has a count"
    return int(result.answer.instructions["count"])


def observe_times(sampler: Sampler, comparisons: Sequence[Comparison]) -> None:
    """Time every comparison whose code differs, one after another; those whose own package differs
    first.
    """
    rule = sampler.card.time
    until = time.monotonic() + rule.seconds
    for comparison in sorted(comparisons, key=lambda comparison: comparison.same_source):
        try:
            if comparison.same_code:
                raise NotMeasured(ABSENT, SAME_CODE)
            if time.monotonic() > until:
                raise NotMeasured(
                    INCONCLUSIVE, f"not started within time.seconds, {duration_text(rule.seconds)}"
                )
            observe_time(sampler, comparison)
        except NotMeasured as error:
            (state, reason), name = error.args, comparison.name
            sampler.evidence.add(store.Note("time", name, state, f"{name}, time: {reason}"))


def observe_time(sampler: Sampler, comparison: Comparison) -> None:
    """Choose the size, then measure the blocks of triage, and of confirmation if they are
    requested.
    """
    rule, name = sampler.card.time, comparison.name
    task, of_base = sized_task(sampler, comparison.base)
    timed = Timed(
        comparison=name,
        variant=comparison.head.name,
        corpus=task.cell.reading.file.name,
        threads=task.cell.count.threads,
        merges_sha256=right_digest(
            task, {"base": of_base, "head": sampler.run_well(comparison.head, task)}
        ),
    )
    sampler.evidence.add(timed)

    for stage, number in {
        store.TRIAGE: rule.triage.blocks,
        store.CONFIRM: rule.confirm.blocks,
    }.items():
        samples = list(sample_blocks(sampler, comparison, timed, task, stage, number))
        if (
            decide(rule, store.blocks_of(samples, store.TRIAGE), threads=timed.threads).state
            != ESCALATE
        ):
            return


def sized_task(sampler: Sampler, base: Arm) -> tuple[Task, Result]:
    """Return the smallest size at which base takes long enough, and its result. Raises
    NotMeasured.
    """
    rule = sampler.card.time
    for size in rule.sizes:
        task = sampler.task("time", [*rule.say, f"{rule.grow}={size}"])
        result = sampler.run_well(base, task)
        times = times_of(result, task.cell.count.threads)
        seconds = times.seconds if times is not None else 0.0
        if seconds >= rule.sample.least or 2 * seconds > rule.sample.most:
            break
    return task, result


def right_digest(task: Task, results: Mapping[str, Result]) -> str:
    """The digest of the right merges, of base or else of head. Raises NotMeasured."""
    reasons = []
    for result, identity in zip(results.values(), identities(task, results), strict=True):
        if identity is not None and identity.kind == IDENTICAL and result.digest is not None:
            return result.digest
        reasons.append(
            "there are none" if identity is None else f"{identity.kind}, {identity.reason}"
        )
    raise NotMeasured(UNMEASURED, f"its merges are not proved: {'; '.join(dict.fromkeys(reasons))}")


def sample_blocks(
    sampler: Sampler, comparison: Comparison, timed: Timed, task: Task, stage: str, number: int
) -> Iterator[Sample]:
    """Measure these blocks, up to a sample that fails or has other merges."""
    for block in blocks_shown(f"{timed.comparison}: {stage}", number):
        arms = [(BASE, comparison.base), (HEAD, comparison.head)]
        if block % sampler.card.time.control.every == 0:
            arms.append((store.AGAIN, comparison.base))
        sampler.order.shuffle(arms)
        # of hashes: their cost is the same for all samples of a block
        seed = str(sampler.order.randrange(1, 1 << 32))
        for name, arm in arms:
            result = sampler.run(arm, task, seed=seed)
            sample = Sample(
                timed.comparison,
                stage,
                block,
                name,
                result.status,
                **figures_of(result, timed.threads),
            )
            sampler.evidence.add(sample)
            if sample.status != "ok" or sample.merges_sha256 != timed.merges_sha256:
                return
            yield sample


def blocks_shown(label: str, number: int) -> Iterator[int]:
    with bar(label, number, "blocks") as show:
        for block in range(number):
            yield block
            show(block + 1)


def figures_of(result: Result, threads: int) -> dict[str, Any]:
    """Return time and memory of a result as an observation has them."""
    times = times_of(result, threads)
    if result.status != "ok" or times is None:
        return {"reason": result.reason}
    figures = {name: getattr(times, name) for name in CLOCKS}
    return {**figures, "peak_bytes": result.answer.peak_rss_bytes, "merges_sha256": result.digest}


def times_of(result: Result, threads: int) -> Times | None:
    """Return what the clocks show of a result; None if it has no total."""
    answer, wall = result.answer, result.answer.total
    if not wall:
        return None
    return Times(
        "",
        0,
        wall,
        answer.cpu_seconds,
        threads,
        cpu_wait_seconds=answer.cpu_wait_seconds,
        cpu_wait_unknown=answer.cpu_wait_unknown,
        **shares_of(wall, answer.witness, answer.disturbance),
    )
