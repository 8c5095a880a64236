"""What merges are right: those on which trainers of different families agree, as for every record of the harness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.common import registry
from harness.gate.sides import Side
from harness.gate.tasks import Arm, Laboratory, Task
from harness.runs.store import Reference
from harness.runs.verdict import Claim, find_reference, verdict
from harness.worker.merges_bytes import merges_sha256


@dataclass(frozen=True)
class Settled:
    """A reference, or the reason why there is none."""

    reference: Reference | None
    why: str | None = None

    def proof(self, claim: Claim) -> dict[str, Any]:
        """What is known of a claim, as an observation has it."""
        known = verdict(claim, self.reference)
        return {"proof": {"state": known.state, "by": list(known.by)}, "first_divergence": known.first_divergence}

    @property
    def digest(self) -> str | None:
        return merges_sha256(self.reference.merges) if self.reference is not None else None


def settle(laboratory: Laboratory, ours: Side, task: Task, claims: Sequence[Claim]) -> Settled:
    """Find the reference for a task among the claims, with the help of judges of other families where those are needed.

    Judges are variants of our own, run from the working tree or from what is installed here.
    """
    reference, disagreed = find_reference(
        claims,
        registry.judges(),
        lambda judge, size: laboratory.claim(Arm(ours, judge), task, size),
    )
    if reference is not None:
        return Settled(reference)
    if disagreed:
        return Settled(None, "trainers of different families disagree, and no two agree")
    return Settled(None, "no trainer of another family could be run")
