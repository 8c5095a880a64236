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
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.common import registry
from harness.common.cards import Experiment, Sweep, fitted
from harness.common.errors import Refusal
from harness.common.units import one_line
from harness.common.values import parse_number, split_list
from harness.runs.overrides import (
    GROUPS,
    HELP,
    LITERAL,
    Config,
    check_override,
    quoted,
)

SWEEP = ("-m", "--multirun")
CONFIG, VERSION = "config", "1.3"


def dated(arguments: Sequence[str]) -> list[str]:
    """The arguments with the date in UTC for seed=today, as records keep it."""
    seed = f"seed={datetime.now(UTC):%Y%m%d}"
    return [seed if argument == "seed=today" else argument for argument in arguments]


def compose(arguments: Sequence[str]) -> list[Config]:
    """Return every configuration that the arguments enumerate.

    Raises Refusal, with one sentence, for arguments that cannot be understood.
    """
    sweep = not {*SWEEP}.isdisjoint(arguments)
    values = [expand(each.lstrip("+"), sweep) for each in arguments if each not in SWEEP]
    keys = {argument.partition("=")[0] for argument in values}
    for argument in values:
        # an experiment may itself be a sweep
        check_override(argument, sweep or "experiment" in keys)
    if "data.path" in keys and "data" not in keys:
        values.insert(0, "data=file")
    overrides = [prepared_value(argument, sweep) for argument in values]
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
            for point in enumerated(overrides, sweep):
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
    return [fitted({**each, "keys": sorted(keys)}, Config, "", HELP) for each in composed]


def register(overrides: Sequence[str]) -> None:
    """Hand Hydra the defaults, and those cards that these or the overrides may name: to
    store all takes long.
    """
    store = ConfigStore.instance()
    for group in GROUPS:
        store.repo.pop(group, None)
    defaults = registry.read_card(registry.conf_folder() / f"{CONFIG}.yaml")
    store.store(name=CONFIG, node=defaults)

    text = " ".join([*overrides, str(defaults)])
    for group in reversed(GROUPS):  # experiments first, as they name others
        for name in registry.names(group):
            if name in text or "(" in text:  # which a pattern of names has
                card = registry.card(group, name)
                package = "_global_" if group == "experiment" else None
                store.store(group=group, name=name, node=card, package=package)
                text += str(card) if group == "experiment" else ""


def enumerated(overrides: list[str], sweep: bool) -> list[list[str]]:
    """The overrides of each point: without a sweep one, else all combinations, the last override
    changing fastest.
    """
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    parsed = parser.parse_overrides(overrides)
    for override in tuple(parsed):
        name = "" if override.is_sweep_override() else str(override.value())
        if override.key_or_group == "experiment" and name in registry.names("experiment"):
            swept = fitted(registry.card("experiment", name), Experiment, "", HELP).hydra
            if isinstance(swept, Sweep):  # an experiment may itself be a sweep
                sweep = True
                lines = [f"{key}={value}" for key, value in swept.sweeper.params.items()]
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


def expand(argument: str, sweep: bool) -> str:
    """The override; pattern=FILE.json is the expression that the pre-tokenizer of a tokenizer.json
    means, and `variant` with trainers of one's own, or with several in a sweep, is `variants`.
    """
    key, _, value = argument.partition("=")
    if key == "pattern" and value.endswith(".json"):
        from harness.tokenizers.pre_tokenizer import pattern_in_file  # late: few commands read one

        expression = pattern_in_file(value)
        return "pattern=bytes" if expression is None else f"pattern.regex={expression}"
    is_several = ":" in value or (sweep and "," in value)
    return f"variants={value}" if key == "variant" and is_several and "(" not in value else argument


def prepared_value(argument: str, sweep: bool) -> str:
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
    return argument
