"""Instructions are counted in one layout of memory, and in others only while head takes more in each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.common.registry import VariantCard
from harness.gate.base import Side
from harness.gate.evidence import Evidence, Question
from harness.gate.judge import judge
from harness.gate.observe import Comparison, observe_instructions
from harness.gate.rule import Card, read_card
from harness.gate.sampler import Arm, Result, Sampler


class FakeSampler(Sampler):
    """Returns each side's counts, layout after layout; a text is a status without a count."""

    counts: Mapping[str, Sequence[int | str]]
    layouts: set[int]

    def task(self, *_: Any, **__: Any) -> Any:
        return None

    def run(self, arm: Arm, *_: Any, layout: int = 0, **__: Any) -> Result:
        self.layouts.add(layout)
        count = self.counts[arm.side.name][layout]
        status = count if isinstance(count, str) else "ok"
        return Result({"status": status, "instructions": {"count": count}}, None, "because")


def comparison(name: str) -> Comparison:
    base, head = (Arm(Side(side, "", [side]), VariantCard(name, f"{side}_module:train")) for side in ("base", "head"))
    return Comparison(name, base, head)


@pytest.mark.parametrize(
    ("base", "head", "code", "layouts", "message"),
    [
        ([1000], [1005], 0, 1, "1,000 -> 1,005"),
        ([1000, 1010, 990], [1020, 1016, 1030], 20, 3, "1,010 -> 1,016 (+0.59 %)"),
        ([1000, 1000], [1020, 1000], 0, 2, "in 2 layouts of memory"),
        ([1000, 1020], [1020, 1030], 0, 2, "in 2 layouts of memory"),
        ([1000, "error"], [1020, 1020], 22, 2, "second, instructions: base was error: because"),
        ([1000, 1000], [1020, "timeout"], 22, 2, "second, instructions: head was timeout: because"),
    ],
)
def test_instructions(base: list[int | str], head: list[int | str], code: int, layouts: int, message: str) -> None:
    card = read_card("usual", ["work.instructions.layouts=3"])
    evidence = Evidence(Question(msgspec.to_builtins(Card(tiers=("work",)))))
    sampler = FakeSampler(card, Path(), evidence, lambda *_: None)
    sampler.counts, sampler.layouts = {"base": base, "head": head}, set()
    observe_instructions(sampler, [comparison("first"), comparison("second")])
    verdict = judge(sampler.evidence)
    assert verdict.exit_code() == code
    assert {finding.variant for finding in verdict.findings} >= {"first", "second"}
    assert any(message in finding.message for finding in verdict.findings)
    assert sampler.layouts == set(range(layouts))
