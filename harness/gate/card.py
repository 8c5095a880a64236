"""The gate's parameters: conf/gate/NAME.yaml or a file of the user's own, checked by type and by name."""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import at_least
from harness.measure.instructions import MOST_LAYOUTS

TIERS = ("identity", "work", "time")
USUAL = "usual"


@dataclass
class CorpusSaid:
    """A corpus as overrides of `python -m harness`, without any to leave it out; `variants` are those it is for."""

    say: list[str] = field(default_factory=list)
    variants: list[str] | None = None


@dataclass
class LimitsSaid:
    """What one measured process may take."""

    wall: float = 60.0
    memory: str = "2GB"


@dataclass
class InstructionsSaid:
    """Counting instructions of base and head: on what, for how long, and how many more there may be.

    Where there are more, both are counted in so many `layouts` of memory before that is held against the change.
    """

    most: float = 0.005
    layouts: int = 5
    say: list[str] = field(default_factory=list)
    wall: float = 300.0


@dataclass
class WorkSaid:
    """The snapshot, and the tallies that are not in it, each with its reason."""

    counters: str = "results/counters.json"
    left_out: dict[str, str] = field(default_factory=dict)
    instructions: InstructionsSaid = field(default_factory=InstructionsSaid)


@dataclass
class StageSaid:
    """So many blocks, and the share by which head may be slower."""

    blocks: int = 30
    most: float = 0.015


@dataclass
class ControlSaid:
    """Base against base in every so manieth block."""

    every: int = 5
    most: float = 0.015


@dataclass
class SampleSaid:
    """How long a sample is to take, in seconds of CPU time."""

    least: float = 0.05
    most: float = 0.5


@dataclass
class MemorySaid:
    """A higher peak counts only over both: a share, and bytes."""

    most: float = 0.05
    bytes: int = 2_000_000


@dataclass
class TimeSaid:
    """How times are compared: on what, in how many blocks, and where the thresholds lie."""

    say: list[str] = field(default_factory=list)
    grow: str = "data.source.bytes"
    sizes: list[int] = field(default_factory=list)
    sample: SampleSaid = field(default_factory=SampleSaid)
    threads: list[int] = field(default_factory=lambda: [1])
    unchanged: str = "skip"
    triage: StageSaid = field(default_factory=StageSaid)
    confirm: StageSaid = field(default_factory=lambda: StageSaid(90, 0.025))
    control: ControlSaid = field(default_factory=ControlSaid)
    pressure: float = 0.2
    fewest: int = 10
    must_see: float = 0.05
    memory: MemorySaid = field(default_factory=MemorySaid)
    seconds: float = 3600.0


@dataclass
class BaseOfCard:
    """Where base comes from: the first of these names that git knows, and how its compiled modules are built."""

    against: list[str] = field(default_factory=list)
    build: str = ""


@dataclass
class Card:
    """Everything a card may say."""

    name: str = ""
    about: str = ""
    like: str | None = None
    tiers: list[str] = field(default_factory=lambda: list(TIERS))
    variants: list[str] = field(default_factory=list)
    limits: LimitsSaid = field(default_factory=LimitsSaid)
    corpora: dict[str, CorpusSaid] = field(default_factory=dict)
    known_wrong: dict[str, str] = field(default_factory=dict)
    work: WorkSaid = field(default_factory=WorkSaid)
    time: TimeSaid = field(default_factory=TimeSaid)
    base: BaseOfCard = field(default_factory=BaseOfCard)


KEYS = tuple(Card.__dataclass_fields__)


def card_of(name: str, overrides: Sequence[str] = ()) -> Card:
    """The card of a name or a file, with `key=value` overrides. Raises Refusal for what it cannot mean."""
    return _merged(f"gate card {name}", _layers(name), overrides)


def card_in(head: Mapping[str, Any], overrides: Sequence[str] = ()) -> Card:
    """The parameters that are stored with what was measured by them, with `key=value` overrides.

    Raises Refusal if they are not whole, or for what the overrides cannot mean.
    """
    try:
        stored = OmegaConf.create(dict(head["card"]))
        OmegaConf.merge(_schema(), stored)
    except Exception as error:  # of OmegaConf's, or a card that is none
        raise Refusal(f"the stored parameters are no gate card ({error})", UNMEASURED) from error
    return _merged("--set", [stored], overrides)


@functools.cache
def _schema() -> DictConfig:
    """What a card can say; merging makes a copy of it."""
    schema: DictConfig = OmegaConf.structured(Card)
    return schema


def _merged(where: str, layers: Sequence[DictConfig], overrides: Sequence[str]) -> Card:
    try:
        merged = OmegaConf.merge(_schema(), *layers, OmegaConf.from_dotlist(list(overrides)))
        card = OmegaConf.to_object(merged)
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise Refusal(f"{where}: {_sentence(error)}") from error
    assert isinstance(card, Card)
    _check(card)
    return card


def _sentence(error: Exception) -> str:
    """What is wrong with a card, by the full name of the key."""
    key, form = getattr(error, "full_key", None), getattr(error, "object_type", None)
    if isinstance(error, ConfigKeyError) and isinstance(key, str) and is_dataclass(form):
        above = key.rpartition(".")[0]
        return registry.unknown("key", key, [f"{above}.{each.name}".lstrip(".") for each in fields(form)])
    said = str(error).strip().partition("\n")[0]
    return f"{key}: {said}" if key else said


def _layers(name: str, seen: tuple[str, ...] = ()) -> list[DictConfig]:
    """What a card says, those that it is like before it."""
    said = _read(name)
    like = said.get("like")
    if like in (*seen, name):
        raise Refusal(f"gate card {name}: it is like itself")
    return [*(_layers(like, (*seen, name)) if like else []), OmegaConf.create(said)]


def _read(name: str) -> dict[str, Any]:
    listed = registry.cards("gate")
    if name in listed:
        return listed[name]
    if not Path(name).is_file():
        raise Refusal(f"{registry.unknown('gate card', name, listed)}; or the name of a file")
    try:
        content = Path(name).read_text()
        said = OmegaConf.to_container(OmegaConf.load(io.StringIO(content)))
    except Exception as error:  # of PyYAML's, of OmegaConf's or of decoding
        raise Refusal(f"{name} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(said, dict):
        raise Refusal(f"{name} is no mapping of names to values")
    return {str(key): value for key, value in said.items()}


def _check(card: Card) -> None:
    for tier in card.tiers:
        if tier not in TIERS:
            raise Refusal(registry.unknown("tier", tier, TIERS))
    time = card.time
    for name, number in (
        ("time.triage.blocks", time.triage.blocks),
        ("time.confirm.blocks", time.confirm.blocks),
        ("time.control.every", time.control.every),
        ("time.fewest", time.fewest),
        ("work.instructions.layouts", card.work.instructions.layouts),
        *((f"time.threads[{place}]", width) for place, width in enumerate(time.threads)),
    ):
        at_least(name, number)
    if card.work.instructions.layouts > MOST_LAYOUTS:
        raise Refusal(f"work.instructions.layouts={card.work.instructions.layouts}: there are {MOST_LAYOUTS} layouts")
    for name, share in (
        ("work.instructions.most", card.work.instructions.most),
        ("time.triage.most", time.triage.most),
        ("time.confirm.most", time.confirm.most),
        ("time.control.most", time.control.most),
        ("time.must_see", time.must_see),
        ("time.memory.most", time.memory.most),
    ):
        if not 0 <= share < 1:
            raise Refusal(f"{name}={share:g} is no share; it is 0 or more and below 1, so 0.025 for 2.5 %")
    if time.unchanged not in ("skip", "measure"):
        raise Refusal(registry.unknown("time.unchanged", time.unchanged, ["skip", "measure"]))
    if not 0 < time.sample.least <= time.sample.most:
        raise Refusal("time.sample.least is above 0 and not above time.sample.most")
