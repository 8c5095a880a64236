"""What is compared with what: pairs of arms, and whether they are the same code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.common import registry
from harness.common.registry import VariantCard
from harness.gate.sides import Side, package_of
from harness.gate.tasks import Arm


@dataclass(frozen=True)
class Comparison:
    """Head against base, of one variant or of two."""

    name: str
    base: Arm
    head: Arm

    @property
    def same_code(self) -> bool:
        """Whether there cannot be a difference: the same variant, from code with the same digest."""
        ways = [(arm.variant.target, dict(arm.variant.params), arm.side.interpreter) for arm in (self.base, self.head)]
        if ways[0] != ways[1]:
            return False
        digests = {arm.side.digest(arm.variant) for arm in (self.base, self.head)}
        return len(digests) == 1 and digests != {None}


def comparisons_of(
    chosen: list[VariantCard],
    base: Side,
    head: Side,
    against: VariantCard | None = None,
    said: Mapping[str, Any] = MappingProxyType({}),
) -> list[Comparison]:
    """Each chosen variant against itself on the other side, as that describes it, or against another variant.

    `said` are parameters that were given by hand, for either side.
    """
    return [
        Comparison(
            card.name if against is None else f"{card.name} against {against.name}",
            Arm(base, against or as_described(base, card, said)),
            Arm(head, card),
        )
        for card in chosen
    ]


def as_described(side: Side, card: VariantCard, params: Mapping[str, Any]) -> VariantCard:
    """A variant with the parameters that the side's own configuration gives it, where it has one."""
    package = side.place / package_of(card.target)
    for conf in conf_beside(package.resolve()):
        if (found := registry.variant_at(conf, card.name)) is not None:
            return replace(found, params={**found.params, **params})
    return card


def conf_beside(package: Path) -> list[Path]:
    """Where the configuration lies that belongs to a package: in a checkout, or as it is installed."""
    return [package.parent / "conf", package.parent / "harness" / "conf"]
