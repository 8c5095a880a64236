"""One gate: what is gated and against what, then tier after tier. Every observation is written as it comes.

Identity and work run every variant once on every corpus. Instructions of base and head are counted under callgrind: a
count may depend on where things lie in memory, so a higher one is repeated in other layouts. Time takes interleaved
samples of base and head in fresh processes, until the rule has decided.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from harness.common import registry
from harness.common.comparison import sample_of
from harness.common.console import stage_lines
from harness.common.errors import Refusal
from harness.common.files import temporary_folder
from harness.common.registry import VariantCard
from harness.common.units import duration_text
from harness.gate import evidence as lines
from harness.gate.base import NoBase, Side, base_side, working_side
from harness.gate.evidence import AGAIN, BASE, CONFIRM, HEAD, TRIAGE, Evidence, Sample, Timed, blocks_of
from harness.gate.judge import ABSENT, ALL, INCONCLUSIVE, PASS, SAME_CODE, UNMEASURED, relative_increase
from harness.gate.rule import ESCALATE, TIERS, decide, read_card
from harness.gate.sampler import Arm, NotMeasured, Result, Sampler, Task, processors
from harness.measure import process
from harness.measure.callgrind import measure_instructions
from harness.measure.machine import environment, source_sha256
from harness.proof import IDENTICAL


@dataclass(frozen=True)
class Comparison:
    """Head against base, of one variant or of two."""

    name: str
    base: Arm
    head: Arm

    @property
    def same_code(self) -> bool:
        """Whether nothing can differ: the same variant, from code with the same digest."""
        (base, of_base), (head, of_head) = (
            (arm.variant, source_sha256(arm.variant.target, arm.variant.params, arm.side.places))
            for arm in (self.base, self.head)
        )
        return (base.target, base.params, of_base) == (head.target, head.params, of_head) and of_base is not None


def observe(options: argparse.Namespace) -> Evidence:
    """Measure what the command line requests. Raises Refusal before anything runs."""
    with temporary_folder() as folder:
        return Gate(options, folder).run()


class Gate:
    """A gate that is about to run."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        tiers = "identity,work" if options.accept else options.tiers  # wrong merges are never accepted
        for tier in tiers.split(",") if tiers else ():
            if tier not in TIERS:
                raise Refusal(registry.unknown("tier", tier, TIERS))
        overrides = [*options.overrides, *([f"tiers=[{tiers}]"] if tiers else [])]
        overrides += [f"base.against=[{options.against}]"] if options.against else []
        self.card = read_card(options.card, overrides)
        self.variants = registry.select(options.targets or self.card.variants)
        if not self.variants:
            raise Refusal("the card names no variants; pass a name, a tag, or package.module:function")
        self.against = registry.select([options.against_variant])[0] if options.against_variant else None
        self.targets = [card.target for card in (*self.variants, self.against) if card]

    def run(self) -> Evidence:
        """Measure every tier. The base is made before anything of head runs, in a place that head is not given."""
        head = working_side(self.targets, self.folder)
        question = lines.Question(
            msgspec.to_builtins(self.card),
            started=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            head=head.described,
            environment=environment(),
        )
        evidence = lines.new_evidence(self.options.output / lines.FILE_NAME, question)
        sampler = Sampler(self.card, self.folder, evidence, stage_lines())
        with self.base(head, sampler) as base:
            if {"identity", "work"} & set(self.card.tiers):
                observe_counts(sampler, head, self.variants)
            if self.options.accept and not sampler.changed_files():
                accept_counts(sampler)
            if base is not None:
                self.compare(head, base, sampler)
            note_changed_files(sampler)
        return evidence

    @contextlib.contextmanager
    def base(self, head: Side, sampler: Sampler) -> Iterator[Side | None]:
        """Yield the base, if a tier needs it and there is one; else the evidence says why not."""
        if self.options.no_base:
            note_no_base(sampler, ABSENT, "no base, because of --no-base")
        if self.options.no_base or self.options.accept or not {"work", "time"} & set(self.card.tiers):
            yield None
            return
        sampler.show("the base", "", 0, 0)
        base = None if self.against is None else replace(head, name=BASE, described=f"the variant {self.against.name}")
        with contextlib.ExitStack() as stack:
            try:
                if base is None:
                    folder = stack.enter_context(temporary_folder())
                    base = stack.enter_context(base_side(self.targets, self.card.base, folder))
                    sampler.freeze(folder)
                sampler.evidence.add(lines.BaseChosen(base.described))
            except NoBase as reason:
                note_no_base(sampler, UNMEASURED, str(reason))
            yield base

    def compare(self, head: Side, base: Side, sampler: Sampler) -> None:
        """Compare what needs a base: instructions, and time."""
        against = "" if self.against is None else f" against {self.against.name}"
        comparisons = [
            Comparison(f"{card.name}{against}", Arm(base, self.against or card_on(base, card)), Arm(head, card))
            for card in self.variants
        ]
        if "work" in self.card.tiers:
            observe_instructions(sampler, comparisons)
        if "time" in self.card.tiers:
            with process.timing(self.options.concurrent):
                observe_times(sampler, comparisons)


def note_no_base(sampler: Sampler, state: str, reason: str) -> None:
    for tier, what in (("work", "instructions"), ("time", "times")):
        if tier in sampler.card.tiers:
            sampler.evidence.add(lines.Note(tier, ALL, state, f"{what} were not compared: {reason}"))


def note_changed_files(sampler: Sampler) -> None:
    """If the base or the words are not what they were, nothing that was measured is trusted."""
    changed = sampler.changed_files()
    for tier in sampler.card.tiers if changed else ():
        reason = f"the results are not trusted: {', '.join(changed[:3])}, of the base, changed while head ran"
        sampler.evidence.add(lines.Note(tier, ALL, UNMEASURED, reason))


def card_on(side: Side, card: VariantCard) -> VariantCard:
    """Return a variant with the parameters of the side's own configuration, if its checkout has one."""
    return next(filter(None, (registry.variant_at(Path(place, "conf"), card.name) for place in side.places)), card)


# Identity, and counts of work


def observe_counts(sampler: Sampler, head: Side, variants: Sequence[VariantCard]) -> None:
    """Observe merges and tallies of every variant on every corpus."""
    card = sampler.card
    snapshot = lines.read_snapshot(Path(card.work.counters)) if "work" in card.tiers else None
    for corpus, rule in card.corpora.items():
        chosen = None if rule.variants is None else {card.name for card in registry.select(rule.variants)}
        cards = [card for card in variants if chosen is None or card.name in chosen]
        if not cards or not rule.say:
            continue
        task = sampler.task(corpus, rule.say)
        results = run_all(sampler, head, task, cards)
        if "identity" in card.tiers:
            observe_merges(sampler, task, results)
        if "work" in card.tiers:
            observe_tallies(sampler.evidence, task, results, snapshot)


def run_all(sampler: Sampler, head: Side, task: Task, cards: Sequence[VariantCard]) -> dict[str, Result]:
    results = {}
    with processors() as threads:
        running = threads.map(lambda card: sampler.run(Arm(head, card), task), cards)
        for place, card in enumerate(cards):
            sampler.show(f"identity and work on {task.name}", card.name, place, len(cards))
            results[card.name] = next(running)
    return results


def observe_merges(sampler: Sampler, task: Task, results: Mapping[str, Result]) -> None:
    for (name, result), identity in zip(results.items(), sampler.prove(task, results), strict=True):
        number = None if result.merges is None else len(result.merges)
        reason = result.reason if identity is None else None
        sampler.evidence.add(lines.Merges(name, task.name, result.status, reason, number, result.digest, identity))


def observe_tallies(
    evidence: Evidence, task: Task, results: Mapping[str, Result], snapshot: lines.Snapshot | None
) -> None:
    for name, result in results.items():
        if result.digest is not None:
            tallies = dict(sorted(result.answer["tallies"].items()))
            expected = snapshot.counters.get(name, {}).get(task.name) if snapshot else None
            evidence.add(lines.Tallies(name, task.name, tallies, expected, snapshot is not None))


def accept_counts(sampler: Sampler) -> None:
    """Write the measured tallies into the snapshot, except those of wrong merges."""
    path = Path(sampler.card.work.counters)
    lines.write_snapshot(path, lines.accept(lines.read_snapshot(path) or lines.Snapshot(), sampler.evidence))
    sampler.evidence.add(lines.Accepted())


# Instructions


def observe_instructions(sampler: Sampler, comparisons: Sequence[Comparison]) -> None:
    """Count base and head of each comparison whose code differs."""
    changed = [comparison for comparison in comparisons if not comparison.same_code]
    for comparison in comparisons:
        if comparison not in changed:
            sampler.evidence.add(lines.Instructions(comparison.name, ABSENT, SAME_CODE))
    if not changed:
        return
    rule = sampler.card.work.instructions
    task = sampler.task("instructions", rule.say, wall=rule.wall)
    with processors() as threads:
        running = threads.map(partial(count_instructions, sampler, task), changed)
        for place, comparison in enumerate(changed):
            sampler.show("instructions", comparison.name, place, len(changed))
            sampler.evidence.add(next(running))


def count_instructions(sampler: Sampler, task: Task, comparison: Comparison) -> lines.Instructions:
    """Count base and head beside each other; again in other layouts while head takes more."""
    rule, name = sampler.card.work.instructions, comparison.name
    base, head = [], []
    for layout in range(rule.layouts):
        run = partial(sampler.run_well, task=task, do=measure_instructions, layout=layout)
        try:
            with ThreadPoolExecutor() as threads:
                of_base, of_head = threads.map(run, (comparison.base, comparison.head))
        except NotMeasured as error:
            return lines.Instructions(name, error.state, str(error))
        base.append(int(of_base.answer["instructions"]["count"]))
        head.append(int(of_head.answer["instructions"]["count"]))
        if relative_increase(base, head) <= rule.most:
            break
    return lines.Instructions(name, PASS, None, base, head)


# Time


def observe_times(sampler: Sampler, comparisons: Sequence[Comparison]) -> None:
    """Time every comparison whose code differs, one after another."""
    rule = sampler.card.time
    until = time.monotonic() + rule.seconds
    for comparison in comparisons:
        try:
            if comparison.same_code:
                raise NotMeasured(ABSENT, SAME_CODE)
            if time.monotonic() > until:
                raise NotMeasured(INCONCLUSIVE, f"not started within time.seconds, {duration_text(rule.seconds)}")
            observe_time(sampler, comparison)
        except NotMeasured as error:
            name = comparison.name
            sampler.evidence.add(lines.Note("time", name, error.state, f"{name}, time: {error}"))


def observe_time(sampler: Sampler, comparison: Comparison) -> None:
    """Choose the size, then measure the blocks of triage, and of confirmation if they are requested."""
    rule, name = sampler.card.time, comparison.name
    sampler.show(f"{name}: choosing a size", "", 0, 0)
    task, of_base = sized_task(sampler, comparison.base)
    timed = Timed(
        comparison=name,
        variant=comparison.head.variant.name,
        corpus=task.cell.reading.file.name,
        threads=task.cell.count.threads,
        merges_sha256=right_digest(sampler, comparison, task, of_base),
    )
    sampler.evidence.add(timed)
    stages = {TRIAGE: rule.triage.blocks, CONFIRM: rule.confirm.blocks}
    for stage, number in stages.items():
        samples = list(sample_blocks(sampler, comparison, timed, task, stage, number))
        if decide(rule, blocks_of(samples, TRIAGE), threads=timed.threads).state != ESCALATE:
            return


def sized_task(sampler: Sampler, base: Arm) -> tuple[Task, Result]:
    """Return the smallest size at which base takes long enough, and its result. Raises NotMeasured."""
    rule = sampler.card.time
    for size in rule.sizes:
        task = sampler.task("time", [*rule.say, f"{rule.grow}={size}"])
        result = sampler.run_well(base, task)
        seconds = result.answer["cpu_seconds"]
        if seconds >= rule.sample.least or 2 * seconds > rule.sample.most:
            break
    return task, result


def right_digest(sampler: Sampler, comparison: Comparison, task: Task, of_base: Result) -> str:
    """The digest of the right merges, of base or else of head. Raises NotMeasured."""
    reasons = []
    for result in (of_base, sampler.run_well(comparison.head, task)):
        (identity,) = sampler.prove(task, {comparison.name: result})
        if identity is not None and identity.kind == IDENTICAL and result.digest is not None:
            return result.digest
        reasons.append("there are none" if identity is None else f"{identity.kind}, {identity.reason}")
    raise NotMeasured(UNMEASURED, f"its merges are not proved: {'; '.join(dict.fromkeys(reasons))}")


def sample_blocks(
    sampler: Sampler, comparison: Comparison, timed: Timed, task: Task, stage: str, number: int
) -> Iterator[Sample]:
    """Measure these blocks, up to a sample that fails or has other merges."""
    for block in range(number):
        sampler.show(f"{timed.comparison}: blocks of {stage}", "", block, number)
        arms = [(BASE, comparison.base), (HEAD, comparison.head)]
        if block % sampler.card.time.control.every == 0:
            arms.append((AGAIN, comparison.base))
        sampler.order.shuffle(arms)
        seed = str(sampler.order.randrange(1, 1 << 32))  # of hashes: their cost is the same for all samples of a block
        for name, arm in arms:
            result = sampler.run(arm, task, seed=seed)
            sample = Sample(timed.comparison, stage, block, name, result.status, **figures_of(result, timed.threads))
            sampler.evidence.add(sample)
            if sample.status != "ok" or sample.merges_sha256 != timed.merges_sha256:
                return
            yield sample


def figures_of(result: Result, threads: int) -> dict[str, Any]:
    """Return time and memory of a result as an observation has them."""
    answer = result.answer
    times = sample_of({**answer, "threads": threads, "seconds": {"total": answer.get("total")}})
    if result.status != "ok" or times is None:
        return {"reason": result.reason}
    figures = {"wall_seconds": times.wall_seconds, "cpu_seconds": times.cpu_seconds, "pressure": times.pressure}
    return {**figures, "peak_bytes": answer.get("peak_rss_bytes"), "merges_sha256": result.digest}
