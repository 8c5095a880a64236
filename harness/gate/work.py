"""The second half of work: instructions of head against those of base, counted by callgrind in the same job."""

from __future__ import annotations

from collections.abc import Sequence

from harness.gate import verdict
from harness.gate.comparing import Comparison
from harness.gate.evidence import BASE, EvidenceFile
from harness.gate.showing import Show
from harness.gate.tasks import Arm, Laboratory, Task, why


def observe_instructions(
    laboratory: Laboratory, compared: Sequence[Comparison], evidence: EvidenceFile, show: Show
) -> None:
    """Count base and head of every comparison whose code differs."""
    said = laboratory.card.work.instructions
    for place, comparison in enumerate(compared):
        if comparison.same_code:
            note(evidence, comparison, verdict.ABSENT, "the same code in base and head")
            continue
        task = laboratory.task("instructions", said.say, wall=said.wall)
        counts: dict[str, int] = {}
        for arm in (comparison.base, comparison.head):
            show("instructions", f"{comparison.name}, {arm.side.name}", place, len(compared))
            found = counted(laboratory, arm, task)
            if isinstance(found, tuple):
                state, reason = found
                note(evidence, comparison, state, f"{arm.side.name} was {reason}")
                break
            counts["base" if arm is comparison.base else "head"] = found
        else:
            note(evidence, comparison, verdict.PASS, None, **counts)


def counted(laboratory: Laboratory, arm: Arm, task: Task) -> int | tuple[str, str]:
    """The instructions of one arm, or the state and the reason of there being none."""
    sampled = laboratory.instructions(arm, task)
    if sampled.answer["status"] == "ok":
        return int(sampled.answer["instructions"]["count"])
    absent = sampled.answer["status"] == "skipped" or arm.side.name == BASE
    state = verdict.ABSENT if absent else verdict.UNMEASURED
    return state, f"{sampled.answer['status']}: {why(sampled, task)}"


def note(
    evidence: EvidenceFile,
    comparison: Comparison,
    state: str,
    reason: str | None,
    base: int | None = None,
    head: int | None = None,
) -> None:
    evidence.add("instructions", variant=comparison.name, state=state, reason=reason, base=base, head=head)
