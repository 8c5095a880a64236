"""The command line as configurations: Hydra's public `compose`, and its override
grammar.

Hydra only enumerates, and reads no file: it gets the cards that may be named, checked. What it
composed is plain data; everything else is done outside it.
"""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from hydra.types import RunMode
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.common import registry
from harness.common.cards import CountingCard, DataCard, MeasureCard, PatternCard, fitted
from harness.common.errors import Refusal
from harness.common.registry import VariantCard, parse_number
from harness.common.units import one_line
from harness.common.values import split_list
from harness.runs.overrides import (
    GROUPS,
    HELP,
    LITERAL,
    FirstStageConfig,
    HarnessConfig,
    LimitsConfig,
    check_override,
    quoted,
)

SWEEP = ("-m", "--multirun")
CONFIG, VERSION = "config", "1.3"
WORD = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Config:
    """One configuration as Hydra composed it, its cards, and the keys that the command line set."""

    values: HarnessConfig
    keys: list[str]
    variant: VariantCard
    data: DataCard
    counting: CountingCard
    pattern: PatternCard
    measure: MeasureCard


def config_of(composed: Mapping[str, Any], keys: list[str]) -> Config:
    """The configuration with its groups as cards. Raises Refusal for a card that is invalid."""
    cards: dict[str, Any] = {}
    for group in GROUPS[:-1]:
        cards[group] = fitted(composed[group], registry.KINDS[group], f"{group}.", HELP)

    values = HarnessConfig(**composed)
    values.limits = LimitsConfig(**composed["limits"])
    values.first_stage = FirstStageConfig(**composed["first_stage"])
    return Config(values, keys, **cards)


def dated(arguments: Sequence[str]) -> list[str]:
    """The arguments with the date in UTC for seed=today, as records keep it."""
    seed = f"seed={datetime.now(UTC):%Y%m%d}"
    return [seed if argument == "seed=today" else argument for argument in arguments]


def compose(arguments: Sequence[str]) -> list[Config]:
    """Return every configuration that the arguments enumerate.

    Raises Refusal, with one sentence, for arguments that cannot be understood.
    """
    sweep = not {*SWEEP}.isdisjoint(arguments)
    # an experiment may itself be a sweep
    is_experiment = any(argument.startswith("experiment=") for argument in arguments)
    values = []
    for argument in arguments:
        if argument not in SWEEP:
            value = as_variants(with_own_pattern(argument.lstrip("+")), sweep)
            check_override(value, sweep or is_experiment)
            values.append(value)
    keys = {value.partition("=")[0] for value in values}
    if "data.path" in keys and "data" not in keys:
        values.insert(0, "data=file")
    overrides = [prepared_value(value, sweep) for value in values]
    for override in overrides:
        # a value of the environment must not reach a record
        if re.search(r"(?<!\\)(\\\\)*\$\{", override):
            how = "let the shell do it, as in seed=$SEED"
            raise Refusal(f"{override}: ${{ is not replaced here; {how}")
    register(overrides)

    composed: list[Any] = []
    try:
        with (
            # Hydra 1.4 warns of what 1.3 needs
            warnings.catch_warnings(action="ignore", category=UserWarning),
            hydra.initialize(config_path=None, version_base=VERSION),
        ):
            for point in enumerated(overrides, sweep=sweep):
                composed.append(OmegaConf.to_container(hydra.compose(CONFIG, point), resolve=True))
    except OverrideParseException as error:
        advice = "put quotes round the value, inside those of the shell"
        raise Refusal(f"{error.override!r} cannot be read; {advice}; {HELP}") from error
    except (HydraException, OmegaConfBaseException, ValueError, TypeError, RecursionError) as error:
        what = one_line(str(error))
        if error.__cause__ is not None:  # which says more; lines below the first help nobody here
            causes = map(str, (error, error.__cause__))
            what = ": ".join(cause.strip().partition("\n")[0].strip(" .:") for cause in causes)
        raise Refusal(f"{what}; {HELP}") from error
    if not composed:
        raise Refusal(f"nothing to measure: no name matches; {HELP}")
    return [config_of(config, sorted(keys)) for config in composed]


def register(overrides: Sequence[str]) -> None:
    """Hand Hydra the schema, the defaults, and those cards that these or the overrides may name: to
    store all takes long.
    """
    store = ConfigStore.instance()
    for group in GROUPS:
        store.repo.pop(group, None)
    defaults = registry.read_card(registry.conf_folder() / f"{CONFIG}.yaml")
    store.store(name="schema", node=HarnessConfig)
    store.store(name=CONFIG, node=defaults)

    is_glob = "(" in " ".join(overrides)
    named = {*WORD.findall(" ".join([*overrides, str(defaults)]))}
    for group in reversed(GROUPS):  # experiments first, as they name others
        for name in registry.names(group):
            if is_glob or name in named:
                card = registry.card(group, name)
                package = "_global_" if group == "experiment" else None
                store.store(group=group, name=name, node=card, package=package)
                named |= {*WORD.findall(str(card))} if group == "experiment" else set()


def enumerated(overrides: list[str], *, sweep: bool) -> list[list[str]]:
    """The overrides of each point: without a sweep one, else all combinations, the last override
    changing fastest.
    """
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    parsed = parser.parse_overrides(overrides)
    experiment = []
    for override in parsed:
        line = str(override.input_line)
        if line.startswith("experiment=") and not override.is_sweep_override():
            experiment.append(line)
    if experiment:  # it may itself be a sweep
        settings = hydra.compose(CONFIG, experiment, return_hydra_config=True).hydra
        sweep = sweep or settings.mode == RunMode.MULTIRUN
        params = settings.sweeper.params or {}
        lines = [f"{key}={value}" for key, value in params.items()]
        parsed = [*parser.parse_overrides(lines), *parsed]
    if not sweep:
        return [overrides]

    choices: dict[str, list[str]] = {}
    for override in parsed:
        key = override.get_key_element()
        if override.is_sweep_override():
            choices[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        else:
            choices[key] = [f"{key}={override.get_value_element_as_str()}"]
    return list(map(list, itertools.product(*choices.values())))


def with_own_pattern(value: str) -> str:
    """The override; pattern=FILE.json is the expression that the pre-tokenizer of a tokenizer.json
    means.
    """
    if not value.startswith("pattern=") or not value.endswith(".json"):
        return value
    from harness.tokenizers.pre_tokenizer import pattern_in_file  # late: few commands read one

    expression = pattern_in_file(value.removeprefix("pattern="))
    return "pattern=bytes" if expression is None else f"pattern.regex={expression}"


def as_variants(override: str, sweep: bool) -> str:
    """The override; `variant` with trainers of one's own, or with several in a sweep, is
    `variants`.
    """
    key, _, value = override.partition("=")
    is_several = ":" in value or (sweep and "," in value)
    return f"variants={value}" if key == "variant" and is_several and "(" not in value else override


def prepared_value(argument: str, sweep: bool = False) -> str:
    """An override as Hydra's grammar needs it: literal text quoted, a list in brackets, a size in
    digits.
    """
    key, _, value = argument.partition("=")
    if key == "data.path" and sweep and not (value.startswith("[") or os.path.lexists(value)):
        paths = split_list(f"[{value}]", key)
        return f"{key}={','.join(map(quoted, paths))}"
    if (key in LITERAL and value != "null") or (key == "veto" and value.startswith("[")):
        return f"{key}={quoted(value)}"
    if key == "special_tokens":
        return f"{key}=[{','.join(map(quoted, split_list(value, key)))}]"
    if key == "variants" and value != "null" and not re.search(r"[(\[{]", value):
        return f"{key}=[{value}]"
    if key in ("vocab_size", "first_stage.vocab_size"):
        return f"{key}={','.join(str(parse_number(size) or size) for size in value.split(','))}"
    if key.partition(".")[0] == "vocab_size_at_most":
        return f"++{key}={value}"  # its keys are data sets, of which the configuration names none
    if key.startswith(("variant.params.", "counting.params.")):
        # Whether the variant takes it is answered later, by what it takes. Hydra reads a command's
        # {} as a mapping.
        command = "{" in value and value[0] not in "'\"[{"
        return f"++{key}={quoted(value) if command else value}"
    return f"{key}={value}"
