"""Base and head are counted in one layout of memory, and in others only as long as head seems to take more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.common.registry import VariantCard
from harness.gate.card import card_of
from harness.gate.comparing import Comparison
from harness.gate.evidence import EvidenceFile
from harness.gate.judging import judged
from harness.gate.sides import Side
from harness.gate.tasks import Arm, Laboratory, Sampled
from harness.gate.work import observe_instructions

CARD = card_of("usual", ["work.instructions.layouts=3"])
HEAD = {"card": {"name": "usual", "tiers": ["work"], "work": {"instructions": {"most": 0.005}}}}


class Bench:
    """In place of a laboratory: each side's counts, layout after layout; a text is a failure."""

    card = CARD

    def __init__(self, **counts: Sequence[int | str]) -> None:
        self.counts = counts
        self.asked: list[tuple[str, int]] = []

    def task(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(cell=SimpleNamespace(reading=None))

    def instructions(self, arm: Arm, _: Any, layout: int) -> Sampled:
        self.asked.append((arm.side.name, layout))
        count = self.counts[arm.side.name][layout]
        if isinstance(count, str):
            return Sampled({"status": count, "reason": None}, None)
        return Sampled({"status": "ok", "instructions": {"count": count}}, None)


@pytest.fixture
def evidence(tmp_path: Path) -> EvidenceFile:
    return EvidenceFile(tmp_path / "samples.jsonl", HEAD)


def observed(evidence: EvidenceFile, bench: Bench) -> tuple[int, str]:
    """The exit code and the message that follow from these counts."""
    base, head = (
        Arm(Side(name, "", None, Path(name)), VariantCard(name, f"{name}_module:train")) for name in ("base", "head")
    )
    compared = [Comparison("mine", base, head)]
    observe_instructions(cast(Laboratory, bench), compared, evidence, lambda *_: None)
    verdict = judged(evidence.evidence)
    (finding,) = [finding for finding in verdict.findings if not finding.message.startswith("work was not measured")]
    return verdict.exit_code(), finding.message


def test_no_more_instructions_are_counted_once(evidence: EvidenceFile) -> None:
    bench = Bench(base=[1000], head=[1005])
    assert observed(evidence, bench)[0] == 0
    assert bench.asked == [("base", 0), ("head", 0)]


def test_what_is_more_in_every_layout_is_a_regression(evidence: EvidenceFile) -> None:
    bench = Bench(base=[1000, 1010, 990], head=[1020, 1016, 1030])
    code, message = observed(evidence, bench)
    assert code == 20
    assert "1,010 -> 1,016 (+0.59 %)" in message
    assert [layout for _, layout in bench.asked] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("base", "head"), [([1000, 1000], [1020, 1000]), ([1000, 1020], [1020, 1030]), ([1000, 1001], [1020, 990])]
)
def test_what_is_more_in_one_layout_alone_is_nobodys_doing(
    evidence: EvidenceFile, base: list[int], head: list[int]
) -> None:
    bench = Bench(base=base, head=head)
    code, message = observed(evidence, bench)
    assert code == 0
    assert "in 2 layouts of memory" in message
    assert [layout for _, layout in bench.asked] == [0, 0, 1, 1]


@pytest.mark.parametrize(("side", "status"), [("base", "error"), ("head", "skipped"), ("head", "timeout")])
def test_a_count_that_fails_in_a_later_layout_is_said(
    evidence: EvidenceFile, monkeypatch: pytest.MonkeyPatch, side: str, status: str
) -> None:
    monkeypatch.setattr("harness.gate.work.why", lambda *_: "of itself")
    counts: dict[str, list[int | str]] = {"base": [1000, 1000], "head": [1020, 1020]}
    counts[side][1] = status
    assert observed(evidence, Bench(**counts)) == (22, f"mine, instructions: {side} was {status}: of itself")
