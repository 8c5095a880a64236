"""The gate's card, and the decision about time that follows from its thresholds.

`decide` is a pure function of the card and of samples in blocks. A few blocks (triage) decide whether to look longer;
only blocks measured afterwards (confirmation) can fail a change. Ratios are taken within blocks, since what disturbs a
machine lasts longer than a block. The control compares base with itself; if that differs, the machine is too noisy.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from harness.common import registry
from harness.common.comparison import Sample, clock_of, cpu_time, interval
from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import at_least
from harness.measure.callgrind import MOST_LAYOUTS

TIERS = ("identity", "work", "time")
DEFAULT_CARD = "usual"


# The card: conf/gate/usual.yaml explains each key


@dataclass
class CorpusRule:
    say: list[str] = field(default_factory=list)
    variants: list[str] | None = None


@dataclass
class ProcessLimits:
    wall: float = 60.0
    memory: str = "2GB"


@dataclass
class InstructionsRule:
    most: float = 0.005
    layouts: int = 5
    say: list[str] = field(default_factory=list)
    wall: float = 300.0


@dataclass
class WorkRule:
    counters: str = "results/counters.json"
    left_out: dict[str, str] = field(default_factory=dict)
    instructions: InstructionsRule = field(default_factory=InstructionsRule)


@dataclass
class Stage:
    blocks: int = 30
    most: float = 0.015


@dataclass
class Control:
    every: int = 5
    most: float = 0.015


@dataclass
class SampleSeconds:
    least: float = 0.05
    most: float = 0.5


@dataclass
class MemoryRule:
    most: float = 0.05
    bytes: int = 2_000_000


@dataclass
class TimeRule:
    say: list[str] = field(default_factory=list)
    grow: str = "data.source.bytes"
    sizes: list[int] = field(default_factory=list)
    sample: SampleSeconds = field(default_factory=SampleSeconds)
    threads: list[int] = field(default_factory=lambda: [1])
    unchanged: str = "skip"
    triage: Stage = field(default_factory=Stage)
    confirm: Stage = field(default_factory=lambda: Stage(90, 0.025))
    control: Control = field(default_factory=Control)
    pressure: float = 0.2
    fewest: int = 10
    must_see: float = 0.05
    memory: MemoryRule = field(default_factory=MemoryRule)
    seconds: float = 3600.0


@dataclass
class BaseRule:
    against: list[str] = field(default_factory=list)
    build: str = ""


@dataclass
class Card:
    name: str = ""
    about: str = ""
    like: str | None = None
    tiers: list[str] = field(default_factory=lambda: list(TIERS))
    variants: list[str] = field(default_factory=list)
    limits: ProcessLimits = field(default_factory=ProcessLimits)
    corpora: dict[str, CorpusRule] = field(default_factory=dict)
    known_wrong: dict[str, str] = field(default_factory=dict)
    work: WorkRule = field(default_factory=WorkRule)
    time: TimeRule = field(default_factory=TimeRule)
    base: BaseRule = field(default_factory=BaseRule)


SCHEMA: DictConfig = OmegaConf.structured(Card)
CARD_KEYS = tuple(Card.__dataclass_fields__)
COUNTS = (
    *("time.triage.blocks", "time.confirm.blocks", "time.control.every", "time.fewest"),
    "work.instructions.layouts",
)
SHARES = (
    *("work.instructions.most", "time.triage.most", "time.confirm.most", "time.control.most"),
    *("time.must_see", "time.memory.most"),
)


def read_card(name: str, overrides: Sequence[str] = ()) -> Card:
    """Return the card of a name or file, with `key=value` overrides. Raises Refusal if it is invalid."""
    return _merge(f"gate card {name}", _layers(name), overrides)


def stored_card(head: Mapping[str, Any], overrides: Sequence[str] = ()) -> Card:
    """Return the card that evidence was measured by, with `key=value` overrides. Raises Refusal if it is invalid."""
    try:
        stored = OmegaConf.create(_without_unknown_keys(head["card"], OmegaConf.to_container(SCHEMA)))
        OmegaConf.merge(SCHEMA, stored)
    except (OmegaConfBaseException, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"the stored card is not a gate card ({error})", UNMEASURED) from error
    return _merge("--set", [stored], overrides)


def _without_unknown_keys(stored: Mapping[str, Any], defaults: Any) -> dict[str, Any]:
    """Drop the keys that a card of another version had; mappings whose keys are free stay whole."""
    return {
        key: _without_unknown_keys(value, defaults[key]) if defaults[key] and isinstance(value, Mapping) else value
        for key, value in stored.items()
        if key in defaults
    }


def _merge(source: str, layers: Sequence[DictConfig], overrides: Sequence[str]) -> Card:
    try:
        merged = OmegaConf.merge(SCHEMA, *layers, OmegaConf.from_dotlist(list(overrides)))
        card = OmegaConf.to_object(merged)
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise Refusal(f"{source}: {_sentence(error)}") from error
    assert isinstance(card, Card)
    _check(card)
    return card


def _sentence(error: Exception) -> str:
    """What is wrong with a card, by the full name of the key."""
    key, form = getattr(error, "full_key", None), getattr(error, "object_type", None)
    if isinstance(error, ConfigKeyError) and isinstance(key, str) and is_dataclass(form):
        above = key.rpartition(".")[0]
        return registry.unknown("key", key, [f"{above}.{each.name}".lstrip(".") for each in fields(form)])
    message = str(error).strip().partition("\n")[0]
    return f"{key}: {message}" if key else message


def _layers(name: str, below: tuple[str, ...] = ()) -> list[DictConfig]:
    """A card after the cards it is like."""
    content = _read(name)
    like = content.get("like")
    if like in (*below, name):
        raise Refusal(f"gate card {name} is like itself; set `like` to another card, or remove it")
    return [*(_layers(like, (*below, name)) if like else []), OmegaConf.create(content)]


def _read(name: str) -> dict[str, Any]:
    cards = registry.cards("gate")
    if name in cards:
        return cards[name]
    if not Path(name).is_file():
        raise Refusal(f"{registry.unknown('gate card', name, cards)}; or pass the name of a file")
    try:
        content = OmegaConf.to_container(OmegaConf.load(io.StringIO(Path(name).read_text())))
    except Exception as error:  # of PyYAML's, of OmegaConf's or of decoding
        raise Refusal(f"{name} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise Refusal(f"{name} is not a mapping of names to values")
    return {str(key): value for key, value in content.items()}


def _check(card: Card) -> None:
    for tier in card.tiers:
        if tier not in TIERS:
            raise Refusal(registry.unknown("tier", tier, TIERS))
    for name in COUNTS:
        at_least(name, attrgetter(name)(card))
    for place, threads in enumerate(card.time.threads):
        at_least(f"time.threads[{place}]", threads)
    if card.work.instructions.layouts > MOST_LAYOUTS:
        raise Refusal(f"work.instructions.layouts={card.work.instructions.layouts}: it is at most {MOST_LAYOUTS}")
    for name in SHARES:
        if not 0 <= (share := attrgetter(name)(card)) < 1:
            raise Refusal(f"{name}={share:g} is not a share; set it to 0 or more and below 1, as 0.025 for 2.5 %")
    if card.time.unchanged not in ("skip", "measure"):
        raise Refusal(registry.unknown("time.unchanged", card.time.unchanged, ["skip", "measure"]))
    if not 0 < card.time.sample.least <= card.time.sample.most:
        raise Refusal("time.sample.least must be above 0 and at most time.sample.most")


# The decision about time


PASS, ESCALATE, REGRESSION, INCONCLUSIVE = "pass", "escalate", "regression", "inconclusive"
CONTROL_CONFIDENCE = 0.99
"""Of the control's interval; it is looked at only before a regression is reported, so 1 % of these may be lost."""


@dataclass(frozen=True)
class Timed:
    """One sample with its peak of memory and the seconds of its phases."""

    sample: Sample
    peak_bytes: int | None = None
    seconds: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Block:
    """The samples of one block; `again` is base once more, in the blocks that have it."""

    base: Timed
    head: Timed
    again: Timed | None = None


@dataclass(frozen=True)
class Effect:
    """By which share head is slower than base: the median over `blocks` of `of` blocks, with its interval.

    `slower` is the share of blocks in which it was.
    """

    share: float
    low: float | None
    high: float | None
    slower: float
    blocks: int
    of: int
    clock: str

    @property
    def excludes_zero(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class Decision:
    """The result of a stage, the reason, and what it was taken from: `memory` is a share and bytes."""

    state: str
    why: str
    effect: Effect | None = None
    control: Effect | None = None
    memory: tuple[float, float] | None = None
    metric: str = "time"


def decide(rule: TimeRule, first: Sequence[Block], fresh: Sequence[Block] = ()) -> Decision:
    """Return the decision of the blocks of triage and of confirmation; `escalate` requests the latter.

    >>> decide(TimeRule(), []).why
    '0 of 30 blocks were measured'
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


def triage(rule: TimeRule, blocks: Sequence[Block]) -> Decision:
    """Pass, or a reason to look longer."""
    slower, memory = effect(rule, blocks), memory_increase(blocks)
    evidence = (slower, control_effect(rule, blocks), memory)
    if slower is None or slower.blocks < rule.fewest:
        return Decision(ESCALATE, "too few blocks were undisturbed", *evidence)
    if slower.share > rule.triage.most:
        return Decision(ESCALATE, "head looks slower", *evidence)
    if memory is not None and is_larger(rule, memory):
        return Decision(ESCALATE, "head looks larger", *evidence)
    if slower.high is None or slower.high > rule.must_see:
        return Decision(ESCALATE, "too few blocks to tell", *evidence)
    return Decision(PASS, "no slower", *evidence)


def confirm(rule: TimeRule, blocks: Sequence[Block]) -> Decision:
    """The decision of fresh blocks, the only one that can fail a change."""
    slower, memory = effect(rule, blocks), memory_increase(blocks)
    control = control_effect(rule, blocks, CONTROL_CONFIDENCE)
    evidence = (slower, control, memory)
    if memory is not None and is_larger(rule, memory):
        return Decision(REGRESSION, "the peak of memory is higher", *evidence, metric="memory")
    if slower is None or slower.blocks < rule.fewest:
        undisturbed = 0 if slower is None else slower.blocks
        return Decision(INCONCLUSIVE, f"only {undisturbed} of {len(blocks)} blocks were undisturbed", *evidence)
    if slower.share <= rule.confirm.most:
        if slower.high is None or slower.high > rule.must_see:
            return Decision(INCONCLUSIVE, f"a slow-down by {100 * rule.must_see:g} % cannot be excluded", *evidence)
        return Decision(PASS, "no slower", *evidence)
    if control is not None and abs(control.share) > rule.control.most and control.excludes_zero:
        limit = f"limit {100 * rule.control.most:g} %; this machine is too noisy now"
        why = f"two measurements of base differ by {100 * abs(control.share):.1f} % ({limit})"
        return Decision(INCONCLUSIVE, why, *evidence)
    if slower.low is None or slower.low <= 0:
        return Decision(INCONCLUSIVE, "the machine is too noisy: the interval includes no slow-down at all", *evidence)
    return Decision(REGRESSION, "head is slower", *evidence)


def effect(rule: TimeRule, blocks: Sequence[Block]) -> Effect | None:
    """Head against base; None if no block is usable."""
    return _effect(rule, [(block.base.sample, block.head.sample) for block in blocks])


def control_effect(rule: TimeRule, blocks: Sequence[Block], confidence: float = 0.95) -> Effect | None:
    """Base against base, in the blocks that have both."""
    return _effect(rule, [(block.base.sample, block.again.sample) for block in blocks if block.again], confidence)


def _effect(rule: TimeRule, pairs: Sequence[tuple[Sample, Sample]], confidence: float = 0.95) -> Effect | None:
    """CPU time if every sample is of one thread; else wall time of the pairs that nothing disturbed."""
    clock = clock_of([sample for pair in pairs for sample in pair])
    usable = pairs if clock is cpu_time else [pair for pair in pairs if not is_disturbed(rule, pair)]
    if not usable:
        return None
    ratios = [math.log(clock(head) / clock(base)) for base, head in usable]
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


def is_disturbed(rule: TimeRule, pair: tuple[Sample, Sample]) -> bool:
    """Whether something waited for a processor for too much of either sample."""
    return any(sample.pressure is not None and sample.pressure > rule.pressure for sample in pair)


def memory_increase(blocks: Sequence[Block]) -> tuple[float, float] | None:
    """By which share and how many bytes head's peak is higher, in the median block; None if it was not measured."""
    peaks = [(block.base.peak_bytes, block.head.peak_bytes) for block in blocks]
    measured = [(base, head) for base, head in peaks if base and head]
    if not measured:
        return None
    return median(head / base - 1 for base, head in measured), median(head - base for base, head in measured)


def is_larger(rule: TimeRule, memory: tuple[float, float]) -> bool:
    return memory[0] > rule.memory.most and memory[1] > rule.memory.bytes


def slower_phase(blocks: Sequence[Block]) -> tuple[str, float, float] | None:
    """The phase whose seconds grew most, with its median seconds in base and in head; None if no phase grew."""

    def middle(sides: Sequence[Timed], phase: str) -> float:
        return median(dict(side.seconds).get(phase, 0.0) for side in sides)

    bases, heads = [block.base for block in blocks], [block.head for block in blocks]
    names = dict.fromkeys(name for side in (*bases, *heads) for name, _ in side.seconds)
    phases = [(name, middle(bases, name), middle(heads, name)) for name in names]
    slowest = max(phases, key=lambda phase: phase[2] - phase[1], default=None)
    return slowest if slowest and slowest[2] > slowest[1] else None
