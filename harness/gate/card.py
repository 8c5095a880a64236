"""The gate's card: what is measured, and from where on a difference is a fault. conf/gate/usual.yaml
explains each key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct
from omegaconf import OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException
from yaml import YAMLError

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal, wrong_value
from harness.common.targets import unknown_text
from harness.common.units import did_you_mean, one_line

Tier = Literal["identity", "work", "time"]
TIERS: tuple[Tier, ...] = get_args(Tier)
DEFAULT_CARD = "usual"
Share = Annotated[float, Meta(ge=0, lt=1)]
Seconds = Annotated[float, Meta(gt=0)]


class CorpusRule(Struct, frozen=True, forbid_unknown_fields=True):
    overrides: tuple[str, ...] = ()
    variants: tuple[str, ...] | None = None


class ProcessLimits(Struct, frozen=True):
    wall: Seconds = 60.0
    memory: str = "2GB"


class InstructionsRule(Struct, frozen=True):
    overrides: tuple[str, ...] = ()
    max_increase: Share = 0.005


class Stage(Struct, frozen=True):
    blocks: Annotated[int, Meta(ge=1)] = 30
    max_slowdown: Share = 0.015


class TimeRule(Struct, frozen=True):
    overrides: tuple[str, ...] = ()
    triage: Stage = Stage()
    confirm: Stage = Stage(90, 0.025)
    max_missed_slowdown: Share = 0.05
    max_seconds: Seconds = 3600.0


class GateCard(Struct, frozen=True):
    tiers: tuple[Tier, ...] = TIERS
    variants: tuple[str, ...] = ()
    corpora: dict[str, CorpusRule] = {}
    known_wrong: dict[str, str] = {}
    limits: ProcessLimits = ProcessLimits()
    instructions: InstructionsRule = InstructionsRule()
    time: TimeRule = TimeRule()
    build: str = ""


def read_gate_card(name: str, overrides: Sequence[str] = ()) -> GateCard:
    """Return the card of a name or file, over the usual one, with `key=value` overrides. Raises
    Refusal.
    """
    layers = [registry.read_card(path) for path in card_paths(name)]
    return merged_card(f"gate card {name}", layers, overrides)


def card_paths(name: str) -> list[Path]:
    """Return the files of a card, the usual one first. Raises Refusal for an unknown name."""
    files = registry.card_files("gate")
    file = files.get(name, Path(name))
    if not file.is_file():
        raise Refusal(f"{unknown_text('gate card', name, files)}; or pass the name of a file")
    return list(dict.fromkeys([files[DEFAULT_CARD], file]))


def stored_card(card: Mapping[str, Any], overrides: Sequence[str] = ()) -> GateCard:
    """Return the card that evidence was measured by, with overrides.

    Keys that this version lacks are ignored.
    """
    try:
        known = msgspec.convert(dict(card), GateCard)
    except msgspec.ValidationError as error:
        raise Refusal(f"the stored card is not a gate card ({error})", UNMEASURED) from error
    return merged_card("--set", [msgspec.to_builtins(known)], overrides)


def merged_card(
    source: str, layers: Sequence[Mapping[str, Any]], overrides: Sequence[str]
) -> GateCard:
    """The card of mappings laid over each other: mappings are merged, other values replaced."""
    schema = OmegaConf.create(msgspec.to_builtins(GateCard()))
    OmegaConf.set_struct(schema, True)
    for free in (schema.corpora, schema.known_wrong):
        OmegaConf.set_struct(free, False)

    meant = ""
    try:
        settings = OmegaConf.merge(*layers, OmegaConf.from_dotlist(list(overrides)))
        content = OmegaConf.merge(schema, settings)
        return msgspec.convert(OmegaConf.to_container(content), GateCard, strict=False)
    except ConfigKeyError as error:
        problem = f"unknown key {error.full_key!r}"
        meant = did_you_mean(str(error.full_key), schema)
    except msgspec.ValidationError as error:
        what, key = wrong_value(error)
        unknown = what.partition("unknown field `")[2].rstrip("`")
        meant = did_you_mean(unknown, CorpusRule.__struct_fields__)
        problem = f"{what} for `{key}`" if key else what
    except (OmegaConfBaseException, YAMLError) as error:
        problem = one_line(str(error))
    raise Refusal(f"{source}: {problem};{meant} conf/gate/usual.yaml explains every key")
