"""The gate's card, and the decision about time that follows from its thresholds.

`decide` is a pure function of the card and of samples in blocks. A few blocks (triage) decide
whether to look longer; only blocks measured afterwards (confirmation) can fail a change. Ratios are
taken within blocks, since what disturbs a machine lasts longer than a block. The control compares
base with itself; if that differs, the machine is too noisy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct
from omegaconf import OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException
from yaml import YAMLError

from harness.common import registry
from harness.common.comparison import Comparison, Sample, compare
from harness.common.errors import UNMEASURED, Refusal, wrong_value
from harness.common.units import did_you_mean, one_line
from harness.gate.evidence import AGAIN, BASE, HEAD, INCONCLUSIVE, PASS, REGRESSION, Block
from harness.measure.callgrind import MOST_LAYOUTS

Tier = Literal["identity", "work", "time"]
TIERS: tuple[Tier, ...] = get_args(Tier)
DEFAULT_CARD = "usual"
Share = Annotated[float, Meta(ge=0, lt=1)]
Number = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


# The card: conf/gate/usual.yaml explains each key


class CorpusRule(Struct, frozen=True, forbid_unknown_fields=True):
    say: tuple[str, ...] = ()
    variants: tuple[str, ...] | None = None


class ProcessLimits(Struct, frozen=True):
    wall: Seconds = 60.0
    memory: str = "2GB"


class InstructionsRule(Struct, frozen=True):
    most: Share = 0.005
    layouts: Annotated[int, Meta(ge=1, le=MOST_LAYOUTS)] = 5
    say: tuple[str, ...] = ()
    wall: Seconds = 300.0


class WorkRule(Struct, frozen=True):
    counters: str = "results/counters.json"
    instructions: InstructionsRule = InstructionsRule()


class Stage(Struct, frozen=True):
    blocks: Number = 30
    most: Share = 0.015


class TimeRule(Struct, frozen=True):
    say: tuple[str, ...] = ()
    grow: str = "data.source.bytes"
    sizes: Annotated[tuple[int, ...], Meta(min_length=1)] = (30_000,)
    sample_seconds: Seconds = 0.05
    triage: Stage = Stage()
    confirm: Stage = Stage(90, 0.025)
    must_see: Share = 0.05
    seconds: Seconds = 3600.0


class BaseRule(Struct, frozen=True):
    against: tuple[str, ...] = ()
    build: str = ""


class Card(Struct, frozen=True):
    name: str = ""
    about: str = ""
    tiers: tuple[Tier, ...] = TIERS
    variants: tuple[str, ...] = ()
    limits: ProcessLimits = ProcessLimits()
    corpora: dict[str, CorpusRule] = {}
    known_wrong: dict[str, str] = {}
    work: WorkRule = WorkRule()
    time: TimeRule = TimeRule()
    accepted: str = "results/accepted.txt"
    base: BaseRule = BaseRule()


def read_card(name: str, overrides: Sequence[str] = ()) -> Card:
    """Return the card of a name or file, over the usual one, with `key=value` overrides. Raises
    Refusal.
    """
    files = registry.card_files("gate")
    file = files.get(name, Path(name))
    if not file.is_file():
        raise Refusal(f"{registry.unknown('gate card', name, files)}; or pass the name of a file")
    layers = [registry.read_card(path) for path in (files[DEFAULT_CARD], file)]
    return card_of(f"gate card {name}", layers, overrides)


def stored_card(card: Mapping[str, Any], overrides: Sequence[str] = ()) -> Card:
    """Return the card that evidence was measured by, with overrides; keys that another version had
    are ignored.
    """
    try:
        stored = msgspec.convert(card, Card)
    except msgspec.ValidationError as error:
        raise Refusal(f"the stored card is not a gate card ({error})", UNMEASURED) from error
    return card_of("--set", [msgspec.to_builtins(stored)], overrides)


def card_of(source: str, layers: Sequence[Mapping[str, Any]], overrides: Sequence[str]) -> Card:
    """The card of mappings laid over each other: mappings are merged, other values replaced."""
    schema = OmegaConf.create(msgspec.to_builtins(Card()))
    OmegaConf.set_struct(schema, True)
    for free in (schema.corpora, schema.known_wrong):
        OmegaConf.set_struct(free, False)

    try:
        content = OmegaConf.merge(schema, *layers, OmegaConf.from_dotlist(list(overrides)))
        return msgspec.convert(OmegaConf.to_container(content), Card, strict=False)
    except ConfigKeyError as error:
        problem = (
            f"unknown key {error.full_key!r};{did_you_mean(str(error.full_key), schema)}".rstrip(
                ";"
            )
        )
    except msgspec.ValidationError as error:
        what, key = wrong_value(error)
        problem = f"{what} for `{key}`" if key else what
    except (OmegaConfBaseException, YAMLError) as error:
        problem = one_line(str(error))
    raise Refusal(f"{source}: {problem}; conf/gate/usual.yaml explains every key")


# The decision about time


ESCALATE = "escalate"
BLOCKS_LEFT = 10
"""Without as many blocks that are undisturbed, or all of a shorter stage, nothing is decided."""
CONTROL_EVERY = 5
"""In which blocks base runs a second time, as the control: two of them may differ by as much as head
in triage.
"""
LARGER_SHARE, LARGER_BYTES = 0.05, 2_000_000
"""A peak of memory is higher if it is higher by more than both."""
CONTROL_CONFIDENCE = 0.99
"""Of the control's interval; it is looked at only before a regression is reported, so 1 % of these
may be lost.
"""


@dataclass(frozen=True)
class Decision:
    """The result of a stage, the reason, and what it was taken from: `memory` is a share and
    bytes.
    """

    state: str
    why: str
    effect: Comparison | None = None
    control: Comparison | None = None
    memory: tuple[float, float] | None = None


def split(rule: TimeRule, blocks: Sequence[Block]) -> tuple[Sequence[Block], Sequence[Block]]:
    """The blocks of triage, and those of confirmation."""
    return blocks[: rule.triage.blocks], blocks[rule.triage.blocks :]


def next_block(rule: TimeRule, blocks: Sequence[Block]) -> int | None:
    """The number of the block that is to be measured next; None if the rule has decided."""
    number, wanted = len(blocks), rule.triage.blocks
    if number >= wanted and decide(rule, split(rule, blocks)[0]).state == ESCALATE:
        wanted += rule.confirm.blocks
    return number if number < wanted else None


def decide(rule: TimeRule, first: Sequence[Block], fresh: Sequence[Block] = ()) -> Decision:
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


def triage(rule: TimeRule, blocks: Sequence[Block]) -> Decision:
    """Pass, or a reason to look longer."""
    slower, control, memory = figures(blocks)
    state, why = ESCALATE, "too few blocks to tell"
    if slower.blocks < min(BLOCKS_LEFT, rule.triage.blocks):
        why = "too few blocks were undisturbed"
    elif slower.ratio > 1 + rule.triage.most:
        why = "head looks slower"
    elif is_larger(memory):
        why = "head looks larger"
    elif excludes(rule, slower):
        state, why = PASS, "no slower"
    return Decision(state, why, slower, control, memory)


def confirm(rule: TimeRule, blocks: Sequence[Block]) -> Decision:
    """The decision of fresh blocks, the only one that can fail a change."""
    slower, control, memory = figures(blocks)
    state, why = INCONCLUSIVE, "the machine is too noisy: the interval includes no slow-down at all"

    if is_larger(memory):
        return Decision(REGRESSION, "the peak of memory is higher", slower, control, memory)

    if slower.blocks < min(BLOCKS_LEFT, rule.confirm.blocks):
        why = f"only {slower.blocks} of {len(blocks)} blocks were undisturbed"
    elif slower.ratio <= 1 + rule.confirm.most and excludes(rule, slower):
        state, why = PASS, "no slower"
    elif slower.ratio <= 1 + rule.confirm.most:
        why = f"a slow-down by {100 * rule.must_see:g} % cannot be excluded"
    elif control is not None and control.different and abs(control.ratio - 1) > rule.triage.most:
        limit = f"limit {100 * rule.triage.most:g} %; this machine is too noisy now"
        why = f"two measurements of base differ by {100 * abs(control.ratio - 1):.1f} % ({limit})"
    elif slower.low is not None and slower.low > 1:
        state, why = REGRESSION, "head is slower"

    return Decision(state, why, slower, control, memory)


def figures(
    blocks: Sequence[Block],
) -> tuple[Comparison, Comparison | None, tuple[float, float] | None]:
    """Head against base, base against itself in the blocks that have it twice, and the increase of
    memory.
    """
    base, head, again = (samples_of(blocks, side) for side in (BASE, HEAD, AGAIN))
    slower = compare(head, base)
    assert slower is not None
    return slower, compare(again, base, CONTROL_CONFIDENCE), memory_increase(blocks)


def samples_of(blocks: Sequence[Block], side: str) -> list[Sample]:
    records = [block[side] for block in blocks if side in block]
    return [record.sample for record in records if record.sample is not None]


def excludes(rule: TimeRule, slower: Comparison) -> bool:
    """Whether a slow-down that must be seen can be excluded."""
    return slower.high is not None and slower.high <= 1 + rule.must_see


def memory_increase(blocks: Sequence[Block]) -> tuple[float, float] | None:
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
