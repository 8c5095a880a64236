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
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import Any, TypeVar

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from msgspec import structs
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.common import registry
from harness.common.cards import Experiment, Sweep, fitted
from harness.common.errors import Refusal
from harness.common.registry import EXTERNAL, PROGRAM, CounterCard, VariantCard
from harness.common.units import did_you_mean, one_line
from harness.common.values import (
    at_least,
    check_target,
    parse_bytes,
    parse_number,
    split_list,
    unknown_text,
)
from harness.measure.machine import takes
from harness.runs.overrides import (
    GROUPS,
    HELP,
    LITERAL,
    HarnessConfig,
    check_override,
    quoted,
)

SWEEP = ("-m", "--multirun")
CONFIG, VERSION = "config", "1.3"
WORD = re.compile(r"[\w.-]+")


class Config(HarnessConfig, frozen=True, kw_only=True):
    """One configuration as Hydra composed it, and the keys that the command line set."""

    keys: list[str]


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
    lines = []
    for override in parsed:
        is_one = override.key_or_group == "experiment" and not override.is_sweep_override()
        if is_one and (name := str(override.value())) in registry.names("experiment"):
            swept = fitted(registry.card("experiment", name), Experiment, "", HELP).hydra
            if isinstance(swept, Sweep):  # an experiment may itself be a sweep
                sweep = True
                lines += [f"{key}={value}" for key, value in swept.sweeper.params.items()]
    if not sweep:
        return [overrides]

    choices: dict[str, list[str]] = {}
    for override in [*parser.parse_overrides(lines), *parsed]:
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


# The variants and the counters that a configuration selects, each with its parameters


# A smaller table would be spilled into more files than a process may have open.
SMALLEST_TABLE_BYTES = 16_000_000
Card = TypeVar("Card", bound=CounterCard)


def variants_of(config: Config) -> list[VariantCard]:
    """The variants that a configuration selects, each with those of the given parameters that it
    takes.
    """
    composed, names = config.variant, config.variants
    card = registry.variants()[composed.name]
    set_here = {key.split(".")[2] for key in config.keys if key.startswith("variant.params.")}
    params = given_parameters(config, card, set_here)
    shown = {*params} if "variant.params" in config.keys else set_here
    if composed.target != card.target and names is None:
        target = composed.target
        check_target(target)
        card = VariantCard(target, target, about="named by its target", tags=(EXTERNAL,))

    selected = [card] if names is None else registry.select(names)
    variants = [with_given(other, params, shown, config.interpreter) for other in selected]
    taken = {name for variant in variants for name in variant.params}
    if params.keys() - taken:
        taker = f"variant {card.name}" if names is None else "any of these variants"
        check_parameters(taker, params, sorted(taken))
    return variants


def given_parameters(config: Config, card: VariantCard, set_here: Set[str]) -> dict[str, Any]:
    """The parameters that the command line sets, or an experiment to another value than the
    card.
    """
    params = {}
    for name, value in config.variant.params.items():
        if name in set_here or card.params.get(name, not value) != value:
            params[name] = value
    return params


def with_given(
    card: VariantCard, params: Mapping[str, Any], shown: Set[str], interpreter: str | None
) -> VariantCard:
    """The variant with those of the given parameters that it takes; of a trainer of yours its
    function decides. Raises Refusal for one that is a part of a program, unless the command line
    has `shown` it.
    """
    taken = {}
    for name, value in params.items():
        is_yours = EXTERNAL in card.tags
        if name in card.params or (is_yours and takes(name, card.target, interpreter)):
            taken[name] = value
    if PROGRAM in card.tags and (hidden := sorted(taken.keys() - shown)):
        what = f"the experiment gives {card.name} a program to run"
        raise Refusal(f"{what}; set variant.params.{hidden[0]} on the command line")

    is_changed = any(card.params.get(name) != value for name, value in taken.items())
    if is_changed:  # only with its own parameters the card says why its merges differ
        card = structs.replace(card, by_design="")
    return with_params(card, "variant.params", taken)


def check_parameters(taker: str, params: Iterable[str], existing: Iterable[str]) -> None:
    """Refuse parameters that the counter or variant does not take."""
    if unknown := [name for name in params if name not in existing]:
        existing = list(existing)
        meant = did_you_mean(unknown[0], existing)
        names = ", ".join(existing) or "none"
        raise Refusal(f"{unknown[0]!r} is not a parameter of {taker};{meant} parameters: {names}")


def with_params(card: Card, key: str, params: Mapping[str, Any]) -> Card:
    """The card with the given parameters; refuses other types than the defaults', but an int will
    do for a float.
    """
    for name, value in params.items():
        default = card.params.get(name)
        wanted = type(default)
        if (
            default is not None
            and type(value) is not wanted
            and (wanted, type(value)) != (float, int)
        ):
            what = f"{key}.{name}={value!r} is {type(value).__name__}"
            raise Refusal(f"{what}; it takes {wanted.__name__}, by default {default!r}")
    return structs.replace(card, params={**card.params, **params}) if params else card


def counter_for(config: Config, variant: VariantCard) -> CounterCard:
    """The counter chosen with counting=NAME or by counting._target_; else the one that the variant
    names, or the default one.
    """
    chosen, counters = config.counting, registry.counters()
    params = dict(chosen.params)
    memory = chosen.memory or params.get("memory")
    if memory is not None:
        params["memory"] = parse_bytes(memory, "counting.memory")
        at_least("counting.memory", params["memory"], SMALLEST_TABLE_BYTES)

    name = variant.counting or registry.default_counter().name
    if chosen.target is not None:
        name = chosen.name
        if name not in counters or counters[name].target != chosen.target:
            check_target(chosen.target)
            return CounterCard(chosen.target, chosen.target, params=params)
    if name not in counters:
        raise Refusal(unknown_text("counting", name, counters))

    check_parameters(f"counting={name}", params, counters[name].params)
    return with_params(counters[name], "counting.params", params)
