"""The three tiers, as they are measured: each observation is appended to the evidence as it comes.

Identity and work run every variant once on every corpus. Instructions of base and head are counted under callgrind: a
count may depend on where things lie in memory, so a higher one is repeated in other layouts. Time takes interleaved
samples of base and head in fresh processes, until the rule has decided.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.common import registry
from harness.common.comparison import sample_of
from harness.common.progress import Show
from harness.common.registry import VariantCard
from harness.common.units import duration_text
from harness.gate.base import Side
from harness.gate.evidence import (
    AGAIN,
    BASE,
    CONFIRM,
    HEAD,
    TRIAGE,
    EvidenceFile,
    Observation,
    Snapshot,
    Tallies,
    accept,
    blocks_of,
    changes,
    read_snapshot,
    write_snapshot,
)
from harness.gate.judge import ABSENT, INCONCLUSIVE, PASS, SAME_CODE, UNMEASURED, relative_increase
from harness.gate.rule import ESCALATE, Card, decide
from harness.gate.sampler import Arm, Sampled, Sampler, Task, processors, reason_of
from harness.proof import IDENTICAL, WRONG


@dataclass(frozen=True)
class Comparison:
    """Head against base, of one variant or of two."""

    name: str
    base: Arm
    head: Arm

    @property
    def same_code(self) -> bool:
        """Whether nothing can differ: the same variant, from code with the same digest."""
        base, head = (
            (arm.variant.target, dict(arm.variant.params), arm.side.interpreter) for arm in (self.base, self.head)
        )
        digest = self.head.side.digest(self.head.variant)
        return base == head and digest is not None and digest == self.base.side.digest(self.base.variant)


class NotMeasured(Exception):
    """A sample failed; `state` says whether head is to blame."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state


def failure(arm: Arm, sampled: Sampled, task: Task) -> NotMeasured:
    """A base that fails, or what cannot run here, is absent; a head that fails is not measured."""
    absent = sampled.status == "skipped" or arm.side.name == BASE
    return NotMeasured(
        ABSENT if absent else UNMEASURED, f"{arm.side.name} was {sampled.status}: {reason_of(sampled, task)}"
    )


# Identity, and counts of work


class CountsOfWork:
    """Identity and tallies of the variants of head; `all_variants` if others in the snapshot are gone."""

    def __init__(self, sampler: Sampler, card: Card, variants: Sequence[VariantCard], all_variants: bool) -> None:
        self.sampler = sampler
        self.card = card
        self.variants = variants
        self.path = Path(card.work.counters)
        self.snapshot = read_snapshot(self.path) if "work" in card.tiers else None
        names = {variant.name for variant in variants}
        self.gone = set(self.snapshot.counters) - names if all_variants and self.snapshot else set()
        self.measured: dict[tuple[str, str], Tallies] = {}
        self.wrong: set[tuple[str, str]] = set()
        self.corpora: dict[str, dict[str, Any]] = {}

    def observe(self, head: Side, evidence: EvidenceFile, show: Show) -> None:
        for corpus, rule in self.card.corpora.items():
            chosen = None if rule.variants is None else {card.name for card in registry.select(rule.variants)}
            variants = [card for card in self.variants if chosen is None or card.name in chosen]
            if variants and rule.say:
                self.observe_corpus(head, self.sampler.task(corpus, rule.say), variants, evidence, show)
        for name in sorted(self.gone):
            evidence.add("tallies", variant=name, corpus=None, tallies=None, expected=None, snapshot=True)

    def observe_corpus(
        self, head: Side, task: Task, variants: Sequence[VariantCard], evidence: EvidenceFile, show: Show
    ) -> None:
        samples: list[tuple[VariantCard, Sampled]] = []
        with processors() as threads:
            results = threads.map(
                lambda card: self.sampler.sample(Arm(head, card), task, tallies_by_phase=True), variants
            )
            for place, card in enumerate(variants):
                show(f"identity and work on {task.name}", card.name, place, len(variants))
                samples.append((card, next(results)))
        self.corpora[task.name] = task.facts
        if "identity" in self.card.tiers:
            show(f"identity and work on {task.name}", "the replay", len(variants), len(variants))
            self.observe_identity(task, samples, evidence)
        if "work" in self.card.tiers:
            for card, sampled in samples:
                if sampled.digest is not None:
                    self.observe_tallies(card.name, task.name, sampled.answer["tallies"], evidence)

    def observe_identity(
        self, task: Task, samples: Sequence[tuple[VariantCard, Sampled]], evidence: EvidenceFile
    ) -> None:
        for (card, sampled), identity in zip(samples, self.sampler.prove(task, samples), strict=True):
            if identity is not None and identity.kind == WRONG:
                self.wrong.add((card.name, task.name))
            evidence.add(
                "identity",
                variant=card.name,
                corpus=task.name,
                status=sampled.status,
                reason=reason_of(sampled, task) if identity is None else None,
                merges=None if sampled.merges is None else len(sampled.merges),
                merges_sha256=sampled.digest,
                identity=None if identity is None else asdict(identity),
            )

    def observe_tallies(self, variant: str, corpus: str, tallies: Tallies, evidence: EvidenceFile) -> None:
        left_out = self.card.work.left_out
        counted = {name: number for name, number in sorted(tallies.items()) if name.rpartition("/")[2] not in left_out}
        self.measured[variant, corpus] = counted
        expected = self.snapshot.of(variant, corpus) if self.snapshot else None
        same_corpus = self.snapshot is not None and self.snapshot.corpora.get(corpus) == self.corpora[corpus]
        evidence.add(
            "tallies",
            variant=variant,
            corpus=corpus,
            tallies=counted,
            expected=expected,
            snapshot=self.snapshot is not None,
            other_corpus=expected is not None and not same_corpus,
        )

    def accept(self) -> list[str]:
        """Write the measured tallies into the snapshot, except those of wrong merges; returns the changes."""
        before = self.snapshot or Snapshot()
        measured = {key: tallies for key, tallies in self.measured.items() if key not in self.wrong}
        after = accept(before, self.corpora, measured, self.gone)
        if self.snapshot is None or after != self.snapshot:
            write_snapshot(self.path, after)
        return changes(before, after)


# Instructions


def observe_instructions(
    sampler: Sampler, comparisons: Sequence[Comparison], evidence: EvidenceFile, show: Show
) -> None:
    """Count base and head of each comparison whose code differs; the evidence has them in order."""
    rule = sampler.card.work.instructions
    differing = [comparison for comparison in comparisons if not comparison.same_code]
    task = sampler.task("instructions", rule.say, wall=rule.wall) if differing else None
    with processors() as counting, processors() as comparing:  # a comparison waits for its two counts
        counts = comparing.map(lambda comparison: counts_of(sampler, comparison, task, counting), differing)
        for place, comparison in enumerate(comparisons):
            if comparison.same_code:
                count: dict[str, Any] = {"state": ABSENT, "reason": SAME_CODE, "base": [], "head": []}
            else:
                show("instructions", comparison.name, place, len(comparisons))
                count = next(counts)
            evidence.add("instructions", variant=comparison.name, **count)


def counts_of(sampler: Sampler, comparison: Comparison, task: Task | None, counting: Executor) -> dict[str, Any]:
    """Counts of base and head in one layout of memory, and in more while head takes too many in all of them."""
    assert task is not None
    rule = sampler.card.work.instructions
    bases: list[int] = []
    heads: list[int] = []
    try:
        while not bases or (len(bases) < rule.layouts and relative_increase(bases, heads) > rule.most):
            arms = (comparison.base, comparison.head)
            base, head = [counting.submit(count_instructions, sampler, arm, task, len(bases)) for arm in arms]
            bases.append(base.result())
            heads.append(head.result())
    except NotMeasured as error:
        return {"state": error.state, "reason": str(error), "base": [], "head": []}
    return {"state": PASS, "reason": None, "base": bases, "head": heads}


def count_instructions(sampler: Sampler, arm: Arm, task: Task, layout: int) -> int:
    """The instructions of one arm in one layout of memory. Raises NotMeasured."""
    sampled = sampler.count_instructions(arm, task, layout)
    if sampled.status != "ok":
        raise failure(arm, sampled, task)
    return int(sampled.answer["instructions"]["count"])


# Time


@dataclass(frozen=True)
class SizedTask:
    """The size of corpus at which base takes long enough, and the digest of the right merges there."""

    task: Task
    merges_sha256: str
    seconds: float


class Timing:
    """Times comparisons one after another, each until it is decided."""

    def __init__(self, sampler: Sampler, evidence: EvidenceFile, show: Show) -> None:
        self.sampler = sampler
        self.rule = sampler.card.time
        self.evidence = evidence
        self.show = show
        self.order = random.Random(0)
        self.until = time.monotonic() + self.rule.seconds

    def observe(self, comparisons: Sequence[Comparison], named: bool) -> None:
        """Time every comparison at every width; unchanged code only if it was named or the card wants it."""
        for comparison in comparisons:
            if comparison.same_code and not named and self.rule.unchanged == "skip":
                self.note(comparison, ABSENT, SAME_CODE)
                continue
            for threads in self.rule.threads:
                if time.monotonic() > self.until:
                    limit = duration_text(self.rule.seconds)
                    self.note(comparison, INCONCLUSIVE, f"not started within time.seconds, {limit}")
                    continue
                try:
                    self.compare(comparison, threads)
                except NotMeasured as error:
                    self.note(comparison, error.state, str(error))

    def note(self, comparison: Comparison, state: str, reason: str) -> None:
        reason = f"{comparison.name}, time: {reason}"
        self.evidence.add("note", tier="time", variant=comparison.name, state=state, reason=reason)

    def compare(self, comparison: Comparison, threads: int) -> None:
        """Choose the size, then measure the blocks of triage, and of confirmation if they are requested."""
        self.show(f"{comparison.name}: choosing a size", "", 0, 0)
        sized = self.sized_task(comparison, threads)
        name = comparison.name if threads == 1 else f"{comparison.name}, {threads} threads"
        observation = self.evidence.add(
            "comparison",
            comparison=name,
            variant=comparison.head.variant.name,
            corpus=sized.task.cell.reading.file.name,
            data=sized.task.facts,
            threads=threads,
            sample_seconds=round(sized.seconds, 6),
            merges_sha256=sized.merges_sha256,
        )
        if self.measure_blocks(comparison, observation, sized.task, TRIAGE, self.rule.triage.blocks):
            samples = [each for each in self.evidence.evidence.of("sample") if each["comparison"] == name]
            if decide(self.rule, blocks_of(samples, TRIAGE, threads)).state == ESCALATE:
                self.measure_blocks(comparison, observation, sized.task, CONFIRM, self.rule.confirm.blocks)

    def sized_task(self, comparison: Comparison, threads: int) -> SizedTask:
        """The smallest size at which base takes long enough, with proved merges. Raises NotMeasured."""
        task, base, seconds = self.base_sample(comparison.base, threads)
        head = self.sampler.sample(comparison.head, task)
        if head.status != "ok":
            raise failure(comparison.head, head, task)
        samples = [(comparison.base.variant, base), (comparison.head.variant, head)]
        identities = self.sampler.prove(task, samples)
        for identity, (_, sampled) in zip(identities, samples, strict=True):
            if identity is not None and identity.kind == IDENTICAL and sampled.digest is not None:
                return SizedTask(task, sampled.digest, seconds)
        reasons = dict.fromkeys(f"{identity.kind}, {identity.reason}" for identity in identities if identity)
        raise NotMeasured(UNMEASURED, f"its merges are not proved: {'; '.join(reasons) or 'there are none'}")

    def base_sample(self, base: Arm, threads: int) -> tuple[Task, Sampled, float]:
        best: tuple[Task, Sampled, float] | None = None
        for size in self.rule.sizes:
            task = self.sampler.task("time", [*self.rule.say, f"{self.rule.grow}={size}"], threads=threads)
            sampled = self.sampler.sample(base, task)
            seconds = sampled.answer.get("cpu_seconds")
            if sampled.status != "ok" or seconds is None:
                if best is None:
                    raise failure(base, sampled, task)
                break
            best = task, sampled, seconds
            if seconds >= self.rule.sample.least or 2 * seconds > self.rule.sample.most:
                break
        if best is None:
            raise NotMeasured(UNMEASURED, "the card has no time.sizes")
        return best

    def measure_blocks(
        self, comparison: Comparison, observation: Observation, task: Task, stage: str, number: int
    ) -> bool:
        """Measure these blocks; whether every sample succeeded with the right merges."""
        for block in range(number):
            self.show(f"{observation['comparison']}: {stage}", f"block {block + 1} of {number}", block, number)
            arms = [(BASE, comparison.base), (HEAD, comparison.head)]
            if block % self.rule.control.every == 0:
                arms.append((AGAIN, comparison.base))
            self.order.shuffle(arms)
            # One seed for the hashes of a block: its cost is the same for all its samples.
            variables = {"PYTHONHASHSEED": str(self.order.randrange(1, 1 << 32))}
            for name, arm in arms:
                sampled = self.sampler.sample(arm, task, variables)
                if not self.add_sample(observation, stage, block, name, sampled, task):
                    return False
        return True

    def add_sample(
        self, comparison: Observation, stage: str, block: int, arm: str, sampled: Sampled, task: Task
    ) -> bool:
        figures = figures_of(sampled, block, comparison["threads"])
        self.evidence.add(
            "sample",
            comparison=comparison["comparison"],
            stage=stage,
            block=block,
            arm=arm,
            status=sampled.status,
            reason=None if figures else reason_of(sampled, task),
            **(figures or {}),
        )
        return figures is not None and sampled.digest == comparison["merges_sha256"]


def figures_of(sampled: Sampled, block: int, threads: int) -> dict[str, Any] | None:
    """Time and memory of a sample, as an observation holds them; None if it has none."""
    answer = sampled.answer
    seconds = {"total": answer.get("total")}
    sample = sample_of({**answer, "run_id": "gate", "block": block, "threads": threads, "seconds": seconds})
    if sampled.status != "ok" or sample is None:
        return None
    phases = dict(answer.get("seconds") or {})
    phases["other"] = sample.wall_seconds - sum(phases.values())
    return {
        "wall_seconds": sample.wall_seconds,
        "cpu_seconds": sample.cpu_seconds,
        "pressure": sample.pressure,
        "steal": sample.steal,
        "peak_bytes": answer.get("peak_rss_bytes"),
        "seconds": phases,
        "merges_sha256": sampled.digest,
    }
