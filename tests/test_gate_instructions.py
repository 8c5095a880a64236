"""Base and head are counted in one layout of memory, and in others only as long as head seems to take more.

They are counted beside each other, and so are as many variants as there are processors.
"""

from __future__ import annotations

import threading
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

    @property
    def layouts(self) -> list[int]:
        """The layouts that both were counted in."""
        base, head = (sorted(layout for name, layout in self.asked if name == side) for side in ("base", "head"))
        assert base == head
        return base

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


def comparison(name: str) -> Comparison:
    base, head = (
        Arm(Side(side, "", None, Path(side)), VariantCard(name, f"{side}_module:train")) for side in ("base", "head")
    )
    return Comparison(name, base, head)


def observed(evidence: EvidenceFile, bench: Bench) -> tuple[int, str]:
    """The exit code and the message that follow from these counts."""
    observe_instructions(cast(Laboratory, bench), [comparison("mine")], evidence, lambda *_: None)
    verdict = judged(evidence.evidence)
    (finding,) = [finding for finding in verdict.findings if not finding.message.startswith("work was not measured")]
    return verdict.exit_code(), finding.message


def test_no_more_instructions_are_counted_once(evidence: EvidenceFile) -> None:
    bench = Bench(base=[1000], head=[1005])
    assert observed(evidence, bench)[0] == 0
    assert bench.layouts == [0]


def test_what_is_more_in_every_layout_is_a_regression(evidence: EvidenceFile) -> None:
    bench = Bench(base=[1000, 1010, 990], head=[1020, 1016, 1030])
    code, message = observed(evidence, bench)
    assert code == 20
    assert "1,010 -> 1,016 (+0.59 %)" in message
    assert bench.layouts == [0, 1, 2]


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
    assert bench.layouts == [0, 1]


@pytest.mark.parametrize(("side", "status"), [("base", "error"), ("head", "skipped"), ("head", "timeout")])
def test_a_count_that_fails_in_a_later_layout_is_said(
    evidence: EvidenceFile, monkeypatch: pytest.MonkeyPatch, side: str, status: str
) -> None:
    monkeypatch.setattr("harness.gate.work.why", lambda *_: "of itself")
    counts: dict[str, list[int | str]] = {"base": [1000, 1000], "head": [1020, 1020]}
    counts[side][1] = status
    assert observed(evidence, Bench(**counts)) == (22, f"mine, instructions: {side} was {status}: of itself")


def test_as_many_are_counted_at_a_time_as_there_are_processors_and_told_in_their_order(
    evidence: EvidenceFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.gate.tasks.usable_cores", lambda: 2)
    last_is_counted = threading.Event()
    running, most = 0, 0
    changing = threading.Lock()

    class Beside(Bench):
        def instructions(self, arm: Arm, task: Any, layout: int) -> Sampled:
            nonlocal running, most
            with changing:
                running += 1
                most = max(most, running)
            if (arm.variant.name, arm.side.name) == ("first", "head"):
                assert last_is_counted.wait(30)
            if arm.variant.name == "last":
                last_is_counted.set()
            with changing:
                running -= 1
            return super().instructions(arm, task, layout)

    compared = [comparison(name) for name in ("first", "second", "last")]
    bench = cast(Laboratory, Beside(base=[1000], head=[1000]))
    observe_instructions(bench, compared, evidence, lambda *_: None)
    assert most == 2
    assert [each["variant"] for each in evidence.evidence.of("instructions")] == ["first", "second", "last"]
