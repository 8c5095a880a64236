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

from harness.common.comparison import CONFIDENCE, Comparison, Sample, compare
from harness.gate.card import TimeRule
from harness.gate.evidence import AGAIN, BASE, HEAD, INCONCLUSIVE, PASS, REGRESSION, SideRecords

ESCALATE = "escalate"
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
    bytes, `certainty` that of the interval of `effect`.
    """

    state: str
    why: str
    effect: Comparison | None = None
    control: Comparison | None = None
    memory: tuple[float, float] | None = None
    certainty: float = CONFIDENCE


def split(
    rule: TimeRule, blocks: Sequence[SideRecords]
) -> tuple[Sequence[SideRecords], Sequence[SideRecords]]:
    """The blocks of triage, and those of confirmation."""
    return blocks[: rule.triage.blocks], blocks[rule.triage.blocks :]


def next_block(rule: TimeRule, blocks: Sequence[SideRecords]) -> int | None:
    """The number of the block that is to be measured next; None if the rule has decided."""
    number, wanted = len(blocks), rule.triage.blocks
    if number >= wanted and decide(rule, split(rule, blocks)[0]).state == ESCALATE:
        wanted += rule.confirm.blocks
    return number if number < wanted else None


def decide(
    rule: TimeRule, first: Sequence[SideRecords], fresh: Sequence[SideRecords] = ()
) -> Decision:
    """Return the decision of the blocks of triage and of confirmation; `escalate` requests the
    latter.
    """
    if len(first) < rule.triage.blocks:
        return Decision(INCONCLUSIVE, f"{len(first)} of {rule.triage.blocks} blocks were measured")
    decision = triage(rule, first)
    if decision.state != ESCALATE or not fresh:
        return decision
    if len(fresh) < rule.confirm.blocks:
        why = f"{len(fresh)} of {rule.confirm.blocks} blocks of confirmation were measured"
        return replace(decision, state=INCONCLUSIVE, why=why)
    return confirm(rule, fresh)


def triage(rule: TimeRule, blocks: Sequence[SideRecords]) -> Decision:
    """Pass, or a reason to look longer."""
    slower, control, memory = figures(blocks)
    state, why = ESCALATE, "too few blocks to tell"
    if slower.blocks < min(BLOCKS_LEFT, rule.triage.blocks):
        why = "too few blocks were undisturbed"
    elif slower.ratio > 1 + rule.triage.max_slowdown:
        why = "head looks slower"
    elif is_larger(memory):
        why = "head looks larger"
    elif excludes(rule, slower):
        state, why = PASS, not_slower(slower)
    return Decision(state, why, slower, control, memory)


def confirm(rule: TimeRule, blocks: Sequence[SideRecords]) -> Decision:
    """The decision of fresh blocks, the only one that can fail a change."""
    slower, control, memory = figures(blocks)
    certain = certain_effect(blocks)
    state, why = INCONCLUSIVE, ""
    effect, certainty = slower, CONFIDENCE

    if is_larger(memory):
        return Decision(REGRESSION, "the peak of memory is higher", slower, control, memory)

    if slower.blocks < min(BLOCKS_LEFT, rule.confirm.blocks):
        why = f"only {slower.blocks} of {len(blocks)} blocks were undisturbed"
    elif slower.ratio <= 1 + rule.confirm.max_slowdown and excludes(rule, slower):
        state, why = PASS, not_slower(slower)
    elif slower.ratio <= 1 + rule.confirm.max_slowdown:
        why = f"a slow-down by {100 * rule.max_missed_slowdown:g} % cannot be excluded"
    elif (
        control is not None
        and control.different
        and abs(control.ratio - 1) > rule.triage.max_slowdown
    ):
        limit = f"limit {100 * rule.triage.max_slowdown:g} %; this machine is too noisy now"
        why = f"two measurements of base differ by {100 * abs(control.ratio - 1):.1f} % ({limit})"
    else:
        if certain is not None:
            effect, certainty = certain, CERTAINTY
        if effect.low is not None and effect.low > 1:
            state, why = REGRESSION, "head is slower"
        else:
            why = "the machine is too noisy: the interval includes no slow-down at all"

    return Decision(state, why, effect, control, memory, certainty)


def certain_effect(blocks: Sequence[SideRecords]) -> Comparison | None:
    """Return head against base with the interval that decides; None with too few blocks for it."""
    certain = compare(samples_of(blocks, HEAD), samples_of(blocks, BASE), CERTAINTY)
    return None if certain is None or certain.low is None else certain


def not_slower(effect: Comparison) -> str:
    """Return how head passes: it is faster if the interval excludes that it is not."""
    return "faster" if effect.high is not None and effect.high < 1 else "no slower"


def figures(
    blocks: Sequence[SideRecords],
) -> tuple[Comparison, Comparison | None, tuple[float, float] | None]:
    """Head against base, base against itself in the blocks that have it twice, and the increase of
    memory.
    """
    base, head, again = (samples_of(blocks, side) for side in (BASE, HEAD, AGAIN))
    slower = compare(head, base)
    assert slower is not None
    return slower, compare(again, base, CERTAINTY), memory_increase(blocks)


def samples_of(blocks: Sequence[SideRecords], side: str) -> list[Sample]:
    records = [block[side] for block in blocks if side in block]
    return [record.sample for record in records if record.sample is not None]


def excludes(rule: TimeRule, slower: Comparison) -> bool:
    """Whether a slow-down that must be seen can be excluded."""
    return slower.high is not None and slower.high <= 1 + rule.max_missed_slowdown


def memory_increase(blocks: Sequence[SideRecords]) -> tuple[float, float] | None:
    """By which share and how many bytes head's peak is higher, in the median block; None if it was
    not measured.
    """
    shares = []
    increases = []
    for block in blocks:
        base, head = (block[side].measurement.peak_rss_bytes for side in (BASE, HEAD))
        if base and head:
            shares.append(head / base - 1)
            increases.append(head - base)
    return (median(shares), median(increases)) if shares else None


def is_larger(memory: tuple[float, float] | None) -> bool:
    return memory is not None and memory[0] > LARGER_SHARE and memory[1] > LARGER_BYTES
