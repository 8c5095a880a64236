"""The second half of work: instructions of head against those of base, counted by callgrind in the same job.

A count may depend on where things lie in memory, which differs between two folders though the code is the same. More of
them are held against a change only if they are more in every layout: the least of head against the most of base.

A count is the same however busy the machine is, so that all processors count at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from harness.common.progress import Show
from harness.gate import verdict
from harness.gate.comparing import Comparison
from harness.gate.evidence import BASE, EvidenceFile
from harness.gate.judging import SAME_CODE, surplus
from harness.gate.tasks import Arm, Laboratory, Task, at_a_time, why


class Uncounted(Exception):
    """There is no count; `state` says whether that is held against the change, the message why there is none."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state


@dataclass(frozen=True)
class Counted:
    """One count for each layout, and what there is to say where counting ended early."""

    state: str
    reason: str | None = None
    base: Sequence[int] = ()
    head: Sequence[int] = ()


def observe_instructions(
    laboratory: Laboratory, compared: Sequence[Comparison], evidence: EvidenceFile, show: Show
) -> None:
    """Count base and head of every comparison whose code differs; what is seen is written in their order."""
    differing = [comparison for comparison in compared if not comparison.same_code]
    said = laboratory.card.work.instructions
    task = laboratory.task("instructions", said.say, wall=said.wall) if differing else None
    with at_a_time() as counting, at_a_time() as comparing:  # who waits for two counts is in nobody's way
        counts = comparing.map(lambda comparison: counted(laboratory, comparison, task, counting), differing)
        for place, comparison in enumerate(compared):
            if comparison.same_code:
                seen = Counted(verdict.ABSENT, SAME_CODE)
            else:
                show("instructions", comparison.name, place, len(compared))
                seen = next(counts)
            evidence.add("instructions", variant=comparison.name, **vars(seen))


def counted(laboratory: Laboratory, comparison: Comparison, task: Task | None, counting: Executor) -> Counted:
    """Base and head beside each other, in one layout after the other."""
    assert task is not None
    said = laboratory.card.work.instructions
    bases: list[int] = []
    heads: list[int] = []
    try:
        while not bases or (len(bases) < said.layouts and surplus(bases, heads) > said.most):
            arms = (comparison.base, comparison.head)
            base, head = [counting.submit(count, laboratory, arm, task, len(bases)) for arm in arms]
            bases.append(base.result())
            heads.append(head.result())
    except Uncounted as why_not:
        return Counted(why_not.state, str(why_not))
    return Counted(verdict.PASS, None, bases, heads)


def count(laboratory: Laboratory, arm: Arm, task: Task, layout: int) -> int:
    """The instructions of one arm in one layout of memory. Raises Uncounted."""
    sampled = laboratory.instructions(arm, task, layout)
    if sampled.answer["status"] == "ok":
        return int(sampled.answer["instructions"]["count"])
    absent = sampled.answer["status"] == "skipped" or arm.side.name == BASE
    state = verdict.ABSENT if absent else verdict.UNMEASURED
    raise Uncounted(state, f"{arm.side.name} was {sampled.answer['status']}: {why(sampled, task)}")
