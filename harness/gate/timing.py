"""The third tier: interleaved samples of base and head in fresh processes, until the rule has decided."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.common.progress import Show
from harness.common.units import duration_text
from harness.gate import verdict
from harness.gate.card import TimeSaid
from harness.gate.comparing import Comparison
from harness.gate.evidence import AGAIN, BASE, CONFIRM, HEAD, TRIAGE, EvidenceFile, blocks_of, sample_line
from harness.gate.judging import SAME_CODE
from harness.gate.rule import ESCALATE, decide
from harness.gate.tasks import Arm, Laboratory, Sampled, Task, hash_seed, timed, why
from harness.proof import IDENTICAL


@dataclass(frozen=True)
class Sized:
    """The size of corpus at which base takes long enough, and the digest of the right merges there."""

    task: Task
    merges_sha256: str | None
    seconds: float


class Timing:
    """Times comparisons one after another, each until it is decided."""

    def __init__(self, laboratory: Laboratory, evidence: EvidenceFile, show: Show) -> None:
        self.laboratory = laboratory
        self.said: TimeSaid = laboratory.card.time
        self.evidence = evidence
        self.show = show
        self.order = random.Random(0)
        self.until = time.monotonic() + self.said.seconds

    def observe(self, compared: Sequence[Comparison], all_named: bool) -> None:
        """Every comparison at every width; the same code is left out unless it was named or the card wants it."""
        for comparison in compared:
            if comparison.same_code and not all_named and self.said.unchanged == "skip":
                self.note(comparison, verdict.ABSENT, SAME_CODE)
                continue
            for threads in self.said.threads:
                if time.monotonic() > self.until:
                    left = duration_text(self.said.seconds)
                    self.note(comparison, verdict.INCONCLUSIVE, f"not begun within time.seconds, {left}")
                    continue
                self.compare(comparison, threads)

    def note(self, comparison: Comparison, state: str, reason: str) -> None:
        reason = f"{comparison.name}, time: {reason}"
        self.evidence.add("note", tier="time", variant=comparison.name, state=state, reason=reason)

    def compare(self, comparison: Comparison, threads: int) -> None:
        """Find the size, then measure blocks of triage, and of confirmation if they are asked for."""
        self.show(f"{comparison.name}: how large a corpus", "", 0, 0)
        sized = self.sized(comparison, threads)
        if isinstance(sized, tuple):
            self.note(comparison, *sized)
            return
        name = comparison.name if threads == 1 else f"{comparison.name}, {threads} threads"
        asked = self.evidence.add(
            "comparison",
            comparison=name,
            variant=comparison.head.variant.name,
            corpus=sized.task.cell.reading.file.name,
            data=sized.task.described,
            threads=threads,
            sample_seconds=round(sized.seconds, 6),
            merges_sha256=sized.merges_sha256,
        )
        decided = self.blocks(comparison, asked, sized, TRIAGE, self.said.triage.blocks)
        if decided and decide(self.said, *self.stages(name, threads)).state == ESCALATE:
            self.blocks(comparison, asked, sized, CONFIRM, self.said.confirm.blocks)

    def stages(self, name: str, threads: int) -> tuple[Any, Any]:
        samples = [each for each in self.evidence.evidence.of("sample") if each["comparison"] == name]
        return blocks_of(samples, TRIAGE, threads), blocks_of(samples, CONFIRM, threads)

    def sized(self, comparison: Comparison, threads: int) -> Sized | tuple[str, str]:
        """The smallest size at which base takes long enough, or the state and the reason of there being none.

        The next size is not tried where it is sure to take too long.
        """
        kept: tuple[Task, Sampled, float] | None = None
        for size in self.said.sizes:
            task = self.laboratory.task("time", [*self.said.say, f"{self.said.grow}={size}"], threads=threads)
            sampled = self.laboratory.sample(comparison.base, task)
            seconds = sampled.answer.get("cpu_seconds")
            if sampled.answer["status"] != "ok" or seconds is None:
                if kept is None:
                    return state_of(comparison.base, sampled, task)
                break
            kept = task, sampled, seconds
            if seconds >= self.said.sample.least or 2 * seconds > self.said.sample.most:
                break
        if kept is None:
            return verdict.UNMEASURED, "the card has no time.sizes"
        task, sampled, seconds = kept
        head = self.laboratory.sample(comparison.head, task)
        if head.answer["status"] != "ok":
            return state_of(comparison.head, head, task)
        arms = [(comparison.base.variant, sampled), (comparison.head.variant, head)]
        found = list(zip(self.laboratory.prove(task, arms), (sampled, head), strict=True))
        right = next((each.digest for one, each in found if one is not None and one.kind == IDENTICAL), None)
        if right is None:
            reasons = [f"{one.kind}, {one.reason}" for one, _ in found if one is not None]
            return (
                verdict.UNMEASURED,
                f"its merges are not proved: {'; '.join(dict.fromkeys(reasons)) or 'there are none'}",
            )
        return Sized(task, right, seconds)

    def blocks(self, comparison: Comparison, asked: dict[str, Any], sized: Sized, stage: str, number: int) -> bool:
        """Measure so many blocks; whether all samples could be measured and came to the right merges."""
        for block in range(number):
            self.show(f"{asked['comparison']}: {stage}", f"block {block + 1} of {number}", block, number)
            arms = [(BASE, comparison.base), (HEAD, comparison.head)]
            if block % self.said.control.every == 0:
                arms.append((AGAIN, comparison.base))
            self.order.shuffle(arms)
            seed = hash_seed(self.order)
            for name, arm in arms:
                sampled = self.laboratory.sample(arm, sized.task, environment=seed)
                if not self.add(asked, stage, block, name, sampled, sized):
                    return False
        return True

    def add(self, asked: dict[str, Any], stage: str, block: int, arm: str, sampled: Sampled, sized: Sized) -> bool:
        known = timed(sampled, block, asked["threads"]) if sampled.answer["status"] == "ok" else None
        figures = {} if known is None else {**sample_line(known), "merges_sha256": sampled.digest}
        self.evidence.add(
            "sample",
            comparison=asked["comparison"],
            stage=stage,
            block=block,
            arm=arm,
            status=sampled.answer["status"],
            reason=None if known is not None else why(sampled, sized.task),
            **figures,
        )
        return known is not None and sampled.digest == asked["merges_sha256"]


def state_of(arm: Arm, sampled: Sampled, task: Task) -> tuple[str, str]:
    """What cannot run here, or could not run in the base, is absent; a head that fails is not."""
    absent = sampled.answer["status"] == "skipped" or arm.side.name == BASE
    state = verdict.ABSENT if absent else verdict.UNMEASURED
    return state, f"{arm.side.name} was {sampled.answer['status']}: {why(sampled, task)}"
