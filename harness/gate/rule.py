"""The decision about time, which follows from the thresholds of a card.

`decide` is a pure function of the card and of samples in blocks. A few blocks (triage) decide
whether to look longer; only blocks measured afterwards (confirmation) can fail a change. Ratios are
taken within blocks, since what disturbs a machine lasts longer than a block. The control compares
base with itself; if that differs, the machine is too noisy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from harness.common.comparison import CONFIDENCE, Comparison, Sample, compare
from harness.common.units import share_text
from harness.gate.card import Stage, TimeRule
from harness.gate.evidence import SideRecords
from harness.records.schema import State

BLOCKS_LEFT = 10
"""Without as many blocks that are undisturbed, or all of a shorter stage, nothing is decided."""
CONTROL_EVERY = 5
"""In which blocks base runs a second time, as the control: two of them may differ by as much as head
in triage.
"""
LARGER_SHARE, LARGER_BYTES = 0.05, 2_000_000
"""A peak of memory is higher if it is higher by more than both."""
CERTAINTY = 0.99
"""Of the interval that excludes 1 before a regression is reported, and of the control's. At 95 %, one
A/A run in forty would be reported on a machine whose times differ by ten per cent.
"""


@dataclass(frozen=True)
class Decision:
    """The result of a stage, the reason, and what it was taken from: `memory` is a share and
    bytes, `certainty` that of the interval of `effect`. The state is one of a finding, or `escalate`.
    """

    state: State | Literal["escalate"]
    why: str
    effect: Comparison | None = None
    control: Comparison | None = None
    memory: tuple[float, float] | None = None
    certainty: float = CONFIDENCE

    @property
    def is_larger(self) -> bool:
        return (
            self.memory is not None
            and self.memory[0] > LARGER_SHARE
            and self.memory[1] > LARGER_BYTES
        )


def next_block(rule: TimeRule, blocks: Sequence[SideRecords]) -> int | None:
    """The number of the block that is to be measured next; None if the rule has decided."""
    number, wanted = len(blocks), rule.triage.blocks
    if number >= wanted and decide(rule, blocks[:wanted]).state == "escalate":
        wanted += rule.confirm.blocks
    return number if number < wanted else None


def decide(rule: TimeRule, blocks: Sequence[SideRecords]) -> Decision:
    """Return the decision of the blocks of triage, then of confirmation; `escalate` requests the
    latter.
    """
    first, fresh = blocks[: rule.triage.blocks], blocks[rule.triage.blocks :]
    if len(first) < rule.triage.blocks:
        return Decision(
            "inconclusive", f"{len(first)} of {rule.triage.blocks} blocks were measured"
        )
    decision = triage(rule, first)
    if decision.state != "escalate" or not fresh:
        return decision
    if len(fresh) < rule.confirm.blocks:
        why = f"{len(fresh)} of {rule.confirm.blocks} blocks of confirmation were measured"
        return replace(decision, state="inconclusive", why=why)
    return confirm(rule, fresh)


def triage(rule: TimeRule, blocks: Sequence[SideRecords]) -> Decision:
    """Pass, or a reason to look longer."""
    found = figures(blocks)
    assert found.effect is not None
    why = "too few blocks to tell"
    if has_too_few(found.effect, rule.triage):
        why = "too few blocks were undisturbed"
    elif found.effect.ratio > 1 + rule.triage.max_slowdown:
        why = "head looks slower"
    elif found.is_larger:
        why = "head looks larger"
    elif is_excluded(rule, found.effect):
        return passed(found)
    return replace(found, why=why)


def confirm(rule: TimeRule, blocks: Sequence[SideRecords]) -> Decision:
    """The decision of fresh blocks, the only one that can fail a change."""
    found = figures(blocks)
    slower, control = found.effect, found.control
    assert slower is not None
    noise = rule.triage.max_slowdown
    certain = compare(samples_of(blocks, "head"), samples_of(blocks, "base"), CERTAINTY)

    if found.is_larger:
        return replace(found, state="regression", why="the peak of memory is higher")

    if has_too_few(slower, rule.confirm):
        why = f"only {slower.blocks} of {len(blocks)} blocks were undisturbed"
    elif slower.ratio <= 1 + rule.confirm.max_slowdown and is_excluded(rule, slower):
        return passed(found)
    elif slower.ratio <= 1 + rule.confirm.max_slowdown:
        why = f"a slow-down by {share_text(rule.max_missed_slowdown)} cannot be excluded"
    elif control is not None and control.different and abs(control.ratio - 1) > noise:
        limit = f"limit {share_text(noise)}; this machine is too noisy now"
        why = f"two measurements of base differ by {share_text(abs(control.ratio - 1))} ({limit})"
    else:
        if certain is not None and certain.low is not None:
            found = replace(found, effect=certain, certainty=CERTAINTY)
        effect = found.effect
        if effect is not None and effect.low is not None and effect.low > 1:
            why = f"head is slower by {share_text(effect.ratio - 1)}"
            return replace(found, state="regression", why=why)
        why = "the machine is too noisy: the interval includes no slow-down at all"

    return replace(found, state="inconclusive", why=why)


def figures(blocks: Sequence[SideRecords]) -> Decision:
    """Return what a stage measured, before it is decided: head against base, base against itself in
    the blocks that have it twice, and the increase of memory.
    """
    base, head, again = (samples_of(blocks, side) for side in ("base", "head", "again"))
    control = compare(again, base, CERTAINTY)
    return Decision("escalate", "", compare(head, base), control, memory_increase(blocks))


def samples_of(blocks: Sequence[SideRecords], side: str) -> list[Sample]:
    samples = [block[side].sample for block in blocks if side in block]
    return [sample for sample in samples if sample is not None]


def has_too_few(effect: Comparison, stage: Stage) -> bool:
    """Whether too many blocks of a stage were disturbed."""
    return effect.blocks < min(BLOCKS_LEFT, stage.blocks)


def is_excluded(rule: TimeRule, effect: Comparison) -> bool:
    """Whether a slow-down that must be seen can be excluded."""
    return effect.high is not None and effect.high <= 1 + rule.max_missed_slowdown


def passed(found: Decision) -> Decision:
    """Return how head passes: it is faster if the interval excludes that it is not."""
    effect, why = found.effect, "no slower"
    if effect is not None and effect.high is not None and effect.high < 1:
        why = f"faster by {share_text(1 - effect.ratio)}"
    return replace(found, state="pass", why=why)


def memory_increase(blocks: Sequence[SideRecords]) -> tuple[float, float] | None:
    """By which share and how many bytes head's peak is higher, in the median block; None if it was
    not measured.
    """
    shares = []
    increases = []
    for block in blocks:
        base, head = (block[side].measurement.peak_rss_bytes for side in ("base", "head"))
        if base and head:
            shares.append(head / base - 1)
            increases.append(head - base)
    return (median(shares), median(increases)) if shares else None
