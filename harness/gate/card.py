"""The gate's card: what is measured, and from where on a difference is a fault. conf/gate/usual.yaml
explains each key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

from msgspec import Meta
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from harness.common import registry
from harness.common.cards import Strict, fitted
from harness.common.errors import Refusal
from harness.common.units import one_line
from harness.common.values import unknown_text
from harness.records.schema import Tier

TIERS: tuple[Tier, ...] = get_args(Tier)
DEFAULT_CARD = "usual"
ADVICE = "conf/gate/usual.yaml explains every key"
Share = Annotated[float, Meta(ge=0, lt=1)]
Seconds = Annotated[float, Meta(gt=0)]
CorpusName = Annotated[str, Meta(pattern=r"^\S+$")]
"""Without a blank, because a line of accepted counts has it."""


class CorpusRule(Strict, frozen=True):
    overrides: tuple[str, ...]
    variants: tuple[str, ...] = ()
    """Those that it is for; all if there are none."""


class ProcessLimits(Strict, frozen=True):
    wall: Seconds
    memory: str | int


class InstructionsRule(Strict, frozen=True):
    overrides: tuple[str, ...]
    max_increase: Share


class Stage(Strict, frozen=True):
    blocks: Annotated[int, Meta(ge=1)]
    max_slowdown: Share


class TimeRule(Strict, frozen=True):
    overrides: tuple[str, ...]
    triage: Stage
    confirm: Stage
    max_missed_slowdown: Share
    max_seconds: Seconds


class GateCard(Strict, frozen=True):
    tiers: tuple[Tier, ...]
    variants: tuple[str, ...]
    corpora: dict[CorpusName, CorpusRule]
    known_wrong: dict[str, str]
    limits: ProcessLimits
    instructions: InstructionsRule
    time: TimeRule
    build: str

    @property
    def compared_tiers(self) -> list[Tier]:
        """The tiers that need a base."""
        return [tier for tier in self.tiers if tier != "identity"]


def read_gate_card(name: str, overrides: Sequence[str] = ()) -> GateCard:
    """Return the card of a name or file, over the usual one, with `key=value` overrides. Raises
    Refusal.
    """
    return merged_card(f"gate card {name}", map(registry.read_card, card_paths(name)), overrides)


def card_paths(name: str) -> list[Path]:
    """Return the files of a card, the usual one first. Raises Refusal for an unknown name."""
    files = registry.card_files("gate")
    file = files.get(name, Path(name))
    if not file.is_file():
        raise Refusal(f"{unknown_text('gate card', name, files)}; or pass the name of a file")
    return list(dict.fromkeys([files[DEFAULT_CARD], file]))


def merged_card(
    source: str, layers: Iterable[Mapping[str, Any]], overrides: Sequence[str] = ()
) -> GateCard:
    """Return the card of mappings laid over each other: mappings are merged, other values replaced.
    Raises Refusal for what is not one.
    """
    try:
        settings = OmegaConf.merge(*layers, OmegaConf.from_dotlist(list(overrides)))
        content = OmegaConf.to_container(settings)
    except (OmegaConfBaseException, YAMLError) as error:
        raise Refusal(f"{source}: {one_line(str(error))}; {ADVICE}") from error
    return fitted(content, GateCard, f"{source}: ", ADVICE)
