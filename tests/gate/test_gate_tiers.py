"""Instructions are counted in one layout of memory, and in others only while head takes more in each of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.common.registry import VariantCard
from harness.gate.base import Side
from harness.gate.evidence import EvidenceFile
from harness.gate.judge import judge
from harness.gate.observe import expected_line, expected_seconds
from harness.gate.rule import read_card
from harness.gate.sampler import Arm, Sampled, Sampler
from harness.gate.tiers import Comparison, observe_instructions

HEAD = {"card": {"name": "usual", "tiers": ["work"], "work": {"instructions": {"most": 0.005}}}}


class FakeSampler:
    """Returns each side's counts, layout after layout; a text is a status without a count."""

    card = read_card("usual", ["work.instructions.layouts=3"])

    def __init__(self, **counts: Sequence[int | str]) -> None:
        self.counts = counts
        self.counted: list[tuple[str, int]] = []

    def task(self, *_: Any, **__: Any) -> Any:
        return SimpleNamespace(cell=SimpleNamespace(reading=None))

    def count_instructions(self, arm: Arm, _: Any, layout: int) -> Sampled:
        self.counted.append((arm.side.name, layout))
        count = self.counts[arm.side.name][layout]
        if isinstance(count, str):
            return Sampled({"status": count, "reason": None}, None)
        return Sampled({"status": "ok", "instructions": {"count": count}}, None)


def comparison(name: str) -> Comparison:
    base, head = (
        Arm(Side(side, "", None, Path(side)), VariantCard(name, f"{side}_module:train")) for side in ("base", "head")
    )
    return Comparison(name, base, head)


@pytest.mark.parametrize(
    ("base", "head", "code", "layouts", "message"),
    [
        ([1000], [1005], 0, 1, "1,000 -> 1,005"),
        ([1000, 1010, 990], [1020, 1016, 1030], 20, 3, "1,010 -> 1,016 (+0.59 %)"),
        ([1000, 1000], [1020, 1000], 0, 2, "in 2 layouts of memory"),
        ([1000, 1020], [1020, 1030], 0, 2, "in 2 layouts of memory"),
        ([1000, 1001], [1020, 990], 0, 2, "in 2 layouts of memory"),
        ([1000, "error"], [1020, 1020], 22, 2, "mine, instructions: base was error: because"),
        ([1000, 1000], [1020, "skipped"], 22, 2, "mine, instructions: head was skipped: because"),
        ([1000, 1000], [1020, "timeout"], 22, 2, "mine, instructions: head was timeout: because"),
    ],
)
def test_instructions(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    base: list[int | str],
    head: list[int | str],
    code: int,
    layouts: int,
    message: str,
) -> None:
    monkeypatch.setattr("harness.gate.tiers.reason_of", lambda *_: "because")
    evidence, sampler = EvidenceFile(tmp_path / "samples.jsonl", HEAD), FakeSampler(base=base, head=head)
    observe_instructions(cast(Sampler, sampler), [comparison("mine")], evidence, lambda *_: None)
    verdict = judge(evidence.evidence)
    assert verdict.exit_code() == code
    assert any(message in finding.message for finding in verdict.findings)
    assert sorted(sampler.counted) == [(side, layout) for side in ("base", "head") for layout in range(layouts)]


def test_each_processor_counts_and_results_are_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.gate.sampler.usable_cores", lambda: 2)
    evidence = EvidenceFile(tmp_path / "samples.jsonl", HEAD)
    first_is_waiting, last_is_counted, changing = threading.Event(), threading.Event(), threading.Lock()
    running = most = 0

    class Concurrent(FakeSampler):
        def count_instructions(self, arm: Arm, task: Any, layout: int) -> Sampled:
            nonlocal running, most
            with changing:
                running += 1
                most = max(most, running)
            if (arm.variant.name, arm.side.name) == ("first", "head"):
                first_is_waiting.set()
                assert last_is_counted.wait(60)
            if (arm.variant.name, arm.side.name) == ("last", "base"):
                assert first_is_waiting.wait(60)
                last_is_counted.set()
            with changing:
                running -= 1
            return super().count_instructions(arm, task, layout)

    comparisons = [comparison(name) for name in ("first", "second", "last")]
    sampler = cast(Sampler, Concurrent(base=[1000], head=[1000]))
    observe_instructions(sampler, comparisons, evidence, lambda *_: None)
    assert most == 2
    assert [each["variant"] for each in evidence.evidence.of("instructions")] == ["first", "second", "last"]


def test_quick_card_takes_at_most_two_minutes_for_one_trainer() -> None:
    quick, usual = read_card("quick"), read_card("usual")
    low, high = expected_seconds(quick, 1, all_variants=False)
    assert low < high <= 120
    assert expected_seconds(usual, 1, all_variants=False)[1] > 2 * high
    assert expected_line(quick, 1, all_variants=False).startswith("gate: 1 variant, tiers identity, work, time: about ")
    assert expected_seconds(usual, 90, all_variants=True)[0] < 300  # what has not changed is not timed
