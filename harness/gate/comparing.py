"""What is compared with what: pairs of arms, and whether they are the same code."""

from __future__ import annotations

from dataclasses import dataclass

from harness.gate.sides import Side
from harness.gate.tasks import Arm
from harness.registry import VariantCard


@dataclass(frozen=True)
class Comparison:
    """Head against base, of one variant or of two."""

    name: str
    base: Arm
    head: Arm

    @property
    def same_code(self) -> bool:
        """Whether there cannot be a difference: the same variant, from code with the same digest."""
        if self.base.variant != self.head.variant or self.base.side.interpreter != self.head.side.interpreter:
            return False
        digests = {arm.side.digest(arm.variant) for arm in (self.base, self.head)}
        return len(digests) == 1 and digests != {None}


def comparisons_of(
    chosen: list[VariantCard], base: Side, head: Side, against: VariantCard | None = None
) -> list[Comparison]:
    """Each chosen variant against itself on the other side, or against another variant."""
    return [
        Comparison(
            card.name if against is None else f"{card.name} against {against.name}",
            Arm(base, against or card),
            Arm(head, card),
        )
        for card in chosen
    ]
