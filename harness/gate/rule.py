"""The decision about time: a plain function of samples in blocks, the same when it is measured and when it is replayed.

A few blocks decide whether there is anything to look at; only blocks that were measured afterwards, and more of them,
can say that there is. What disturbs a machine lasts longer than a block, so only ratios within blocks are looked at.
The control compares base with itself: where that shows a difference, nothing that head shows means anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from harness.common.comparison import Sample, clock_of, cpu_time, interval
from harness.gate.card import TimeSaid

PASS, ESCALATE, REGRESSION, INCONCLUSIVE = "pass", "escalate", "regression", "inconclusive"
CONTROL_CONFIDENCE = 0.99
"""Of the control, which is looked at only where a regression is about to be told; one in a hundred may be lost."""


@dataclass(frozen=True)
class Timed:
    """One sample with what is not time: its peak of memory and the seconds of its phases."""

    sample: Sample
    peak_bytes: int | None = None
    seconds: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Blocked:
    """The samples of one block; `again` is base once more, in the blocks that have it."""

    base: Timed
    head: Timed
    again: Timed | None = None


@dataclass(frozen=True)
class Effect:
    """How much slower head is than base: the median share over `blocks` of `of` blocks, with its interval.

    `slower` is the share of blocks in which it was. Without an interval there were too few blocks for one.
    """

    share: float
    low: float | None
    high: float | None
    slower: float
    blocks: int
    of: int
    clock: str


@dataclass(frozen=True)
class Decision:
    """What a stage comes to, why, and what it saw: `effect` of time, `control`, `memory` in share and bytes."""

    state: str
    why: str
    effect: Effect | None = None
    control: Effect | None = None
    memory: tuple[float, float] | None = None
    metric: str = "time"


def decide(rule: TimeSaid, triage: Sequence[Blocked], confirm: Sequence[Blocked] = ()) -> Decision:
    """What these blocks say; `escalate` asks for the blocks of confirmation.

    >>> decide(TimeSaid(), []).why
    '0 of 30 blocks were measured'
    """
    if len(triage) < rule.triage.blocks:
        return Decision(INCONCLUSIVE, f"{len(triage)} of {rule.triage.blocks} blocks were measured")
    first = looked_at(rule, triage)
    if not confirm or first.state != ESCALATE:
        return first
    if len(confirm) < rule.confirm.blocks:
        why = f"{len(confirm)} of {rule.confirm.blocks} blocks of confirmation were measured"
        return Decision(INCONCLUSIVE, why, first.effect, first.control, first.memory)
    return confirmed(rule, confirm)


def looked_at(rule: TimeSaid, blocks: Sequence[Blocked]) -> Decision:
    """The triage: pass, or a reason to look longer."""
    effect, memory = effect_of(rule, blocks), memory_of(blocks)
    seen = (effect, control_of(rule, blocks), memory)
    if effect is None or effect.blocks < rule.fewest:
        return Decision(ESCALATE, "too few blocks were undisturbed", *seen)
    if effect.share > rule.triage.most:
        return Decision(ESCALATE, "head looks slower", *seen)
    if memory is not None and is_larger(rule, memory):
        return Decision(ESCALATE, "head looks larger", *seen)
    if effect.high is None or effect.high > rule.must_see:
        return Decision(ESCALATE, "the blocks are too few to tell", *seen)
    return Decision(PASS, "no slower", *seen)


def confirmed(rule: TimeSaid, blocks: Sequence[Blocked]) -> Decision:
    """The confirmation: only here can a comparison fail."""
    effect, control, memory = effect_of(rule, blocks), control_of(rule, blocks, CONTROL_CONFIDENCE), memory_of(blocks)
    seen = (effect, control, memory)
    if memory is not None and is_larger(rule, memory):
        return Decision(REGRESSION, "the peak of memory is higher", *seen, metric="memory")
    if effect is None or effect.blocks < rule.fewest:
        left = 0 if effect is None else effect.blocks
        return Decision(INCONCLUSIVE, f"only {left} of {len(blocks)} blocks were undisturbed", *seen)
    if effect.share <= rule.confirm.most:
        if effect.high is None or effect.high > rule.must_see:
            return Decision(INCONCLUSIVE, f"a slow-down by {100 * rule.must_see:g} % cannot be excluded", *seen)
        return Decision(PASS, "no slower", *seen)
    if control is not None and abs(control.share) > rule.control.most and leaves_out_0(control):
        return Decision(INCONCLUSIVE, f"base differs from itself by {100 * control.share:+.1f} %", *seen)
    if effect.low is None or effect.low <= 0:
        return Decision(INCONCLUSIVE, "the machine is too noisy: no slow-down at all is as likely", *seen)
    return Decision(REGRESSION, "head is slower", *seen)


def leaves_out_0(effect: Effect) -> bool:
    return effect.low is not None and effect.high is not None and not effect.low <= 0 <= effect.high


def effect_of(rule: TimeSaid, blocks: Sequence[Blocked]) -> Effect | None:
    """Head against base; None if no block is usable."""
    return _effect(rule, [(block.base.sample, block.head.sample) for block in blocks])


def control_of(rule: TimeSaid, blocks: Sequence[Blocked], confidence: float = 0.95) -> Effect | None:
    """Base against base, in the blocks that have both."""
    return _effect(rule, [(block.base.sample, block.again.sample) for block in blocks if block.again], confidence)


def _effect(rule: TimeSaid, pairs: Sequence[tuple[Sample, Sample]], confidence: float = 0.95) -> Effect | None:
    """CPU time where every sample is of one thread; else wall time of the pairs that nothing disturbed."""
    clock = clock_of([sample for pair in pairs for sample in pair])
    usable = pairs if clock is cpu_time else [pair for pair in pairs if not disturbed(rule, pair)]
    if not usable:
        return None
    ratios = log_ratios(clock, usable)
    low, high = interval(ratios, confidence)
    return Effect(
        math.expm1(median(ratios)),
        None if low is None else math.expm1(low),
        None if high is None else math.expm1(high),
        sum(ratio > 0 for ratio in ratios) / len(ratios),
        len(usable),
        len(pairs),
        "CPU" if clock is cpu_time else "wall",
    )


def log_ratios(clock: Callable[[Sample], float], pairs: Sequence[tuple[Sample, Sample]]) -> list[float]:
    return [math.log(clock(head) / clock(base)) for base, head in pairs]


def disturbed(rule: TimeSaid, pair: tuple[Sample, Sample]) -> bool:
    """Whether something waited for a processor for too much of either sample."""
    return any(sample.pressure is not None and sample.pressure > rule.pressure for sample in pair)


def memory_of(blocks: Sequence[Blocked]) -> tuple[float, float] | None:
    """By which share and by how many bytes head's peak is higher, in the median block; None where it is not known."""
    peaks = [(block.base.peak_bytes, block.head.peak_bytes) for block in blocks]
    known = [(base, head) for base, head in peaks if base and head]
    if not known:
        return None
    return median(head / base - 1 for base, head in known), median(head - base for base, head in known)


def is_larger(rule: TimeSaid, memory: tuple[float, float]) -> bool:
    return memory[0] > rule.memory.most and memory[1] > rule.memory.bytes


def slower_phase(blocks: Sequence[Blocked]) -> tuple[str, float, float] | None:
    """The phase whose seconds grew most, with its median seconds in base and in head; None if no phase grew."""
    names = dict.fromkeys(name for block in blocks for name, _ in (*block.base.seconds, *block.head.seconds))
    grown = []
    for name in names:
        base, head = (
            median(dict(side.seconds).get(name, 0.0) for side in sides)
            for sides in ([block.base for block in blocks], [block.head for block in blocks])
        )
        grown.append((head - base, name, base, head))
    if not grown or max(grown)[0] <= 0:
        return None
    _, name, base, head = max(grown)
    return name, base, head
