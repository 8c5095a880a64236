"""The second half of work: instructions of head against those of base, counted by callgrind in the same job.

A count may depend on where things lie in memory, which differs between two folders though the code is the same. More of
them are held against a change only if they are more in every layout: the least of head against the most of base.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.common.progress import Show
from harness.gate import verdict
from harness.gate.comparing import Comparison
from harness.gate.evidence import BASE, EvidenceFile
from harness.gate.judging import SAME_CODE, surplus
from harness.gate.tasks import Arm, Laboratory, Task, why


class Uncounted(Exception):
    """There is no count; `state` says whether that is held against the change, the message why there is none."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state = state


def observe_instructions(
    laboratory: Laboratory, compared: Sequence[Comparison], evidence: EvidenceFile, show: Show
) -> None:
    """Count base and head of every comparison whose code differs."""
    said = laboratory.card.work.instructions
    for place, comparison in enumerate(compared):
        if comparison.same_code:
            note(evidence, comparison, verdict.ABSENT, SAME_CODE)
            continue
        task = laboratory.task("instructions", said.say, wall=said.wall)
        bases: list[int] = []
        heads: list[int] = []
        try:
            while not bases or (len(bases) < said.layouts and surplus(bases, heads) > said.most):
                for arm, counts in ((comparison.base, bases), (comparison.head, heads)):
                    show("instructions", f"{comparison.name}, {arm.side.name}", place, len(compared))
                    counts.append(counted(laboratory, arm, task, len(counts)))
        except Uncounted as why_not:
            note(evidence, comparison, why_not.state, str(why_not))
        else:
            note(evidence, comparison, verdict.PASS, None, bases, heads)


def counted(laboratory: Laboratory, arm: Arm, task: Task, layout: int) -> int:
    """The instructions of one arm in one layout of memory. Raises Uncounted."""
    sampled = laboratory.instructions(arm, task, layout)
    if sampled.answer["status"] == "ok":
        return int(sampled.answer["instructions"]["count"])
    absent = sampled.answer["status"] == "skipped" or arm.side.name == BASE
    state = verdict.ABSENT if absent else verdict.UNMEASURED
    raise Uncounted(state, f"{arm.side.name} was {sampled.answer['status']}: {why(sampled, task)}")


def note(
    evidence: EvidenceFile,
    comparison: Comparison,
    state: str,
    reason: str | None,
    base: Sequence[int] = (),
    head: Sequence[int] = (),
) -> None:
    """`base` and `head` have one count for each layout."""
    evidence.add("instructions", variant=comparison.name, state=state, reason=reason, base=list(base), head=list(head))
