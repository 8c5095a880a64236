"""The variants and the counters that a configuration selects, each with its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, TypeVar

from msgspec import structs

from harness.common import registry
from harness.common.cards import CountingCard
from harness.common.errors import Refusal
from harness.common.registry import (
    EXTERNAL,
    PROGRAM,
    CounterCard,
    VariantCard,
    at_least,
    parse_bytes,
)
from harness.common.targets import check_target
from harness.common.units import did_you_mean
from harness.runs.compose import Config

# A smaller table would be spilled into more files than a process may have open.
SMALLEST_TABLE_BYTES = 16_000_000
Card = TypeVar("Card", bound=CounterCard)


def variants_of(config: Config) -> list[VariantCard]:
    """The variants that a configuration selects, each with those of the given parameters that it
    takes.
    """
    composed, names = config.variant, config.values.variants
    card = registry.variants().get(composed.name)
    if card is None:
        raise Refusal(registry.unknown("variant", composed.name, registry.variants()))
    params = given_parameters(config, card)
    if composed.target != card.target and names is None:
        target = composed.target
        check_target(target)
        card = VariantCard(target, target, about="named by its target", tags=(EXTERNAL,))

    selected = [card] if names is None else registry.select(names)
    variants = [with_given(config, other, params) for other in selected]
    taken = {name for variant in variants for name in variant.params}
    if params.keys() - taken:
        taker = f"variant {card.name}" if names is None else "any of these variants"
        check_parameters(taker, params, sorted(taken))
    return variants


def keys_set_here(config: Config) -> set[str]:
    """The parameters of the variant that the command line sets."""
    return {key.split(".")[2] for key in config.keys if key.startswith("variant.params.")}


def given_parameters(config: Config, card: VariantCard) -> dict[str, Any]:
    """The parameters that the command line sets, or an experiment to another value than the
    card.
    """
    set_here = keys_set_here(config)
    params = {}
    for name, value in config.variant.params.items():
        if name in set_here or card.params.get(name, not value) != value:
            params[name] = value
    return params


def with_given(config: Config, card: VariantCard, params: Mapping[str, Any]) -> VariantCard:
    """The variant with those of the given parameters that it takes."""
    taken = {}
    for name, value in params.items():
        if name in card.params or takes_parameter(config, card, name):
            taken[name] = value
    if PROGRAM in card.tags and "variant.params" not in config.keys:
        check_program(card, taken.keys() - keys_set_here(config))

    is_changed = any(card.params.get(name) != value for name, value in taken.items())
    if is_changed:  # only with its own parameters the card says why its merges differ
        card = structs.replace(card, by_design="")
    return with_params(card, "variant.params", taken)


def takes_parameter(config: Config, card: VariantCard, name: str) -> bool:
    """Whether a trainer of the user's own takes a parameter that its card does not have."""
    if EXTERNAL not in card.tags:
        return False
    from harness.measure.process import takes  # late, as few runs have such trainers

    return takes(name, card.target, config.values.interpreter)


def check_program(variant: VariantCard, hidden: Set[str]) -> None:
    """Refuse parameters, each a part of a program, that the command line does not show."""
    for name in sorted(hidden):
        what = f"the experiment gives {variant.name} a program to run"
        raise Refusal(f"{what}; set variant.params.{name} on the command line")


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


def chosen_counter(composed: CountingCard) -> CounterCard:
    """The counter chosen with counting=NAME or by counting._target_."""
    card = registry.counters().get(composed.name)
    params = counter_parameters(composed)
    if card is None or card.target != composed.target:
        target = str(composed.target)
        check_target(target)
        return CounterCard(target, target, params=params)
    check_parameters(f"counting={card.name}", params, card.params)
    return with_params(card, "counting.params", params)


def counter_of(config: Config, variant: VariantCard) -> CounterCard:
    """The counter that the variant names, or the default one, with the given parameters."""
    name, counters = variant.counting or registry.default_counter().name, registry.counters()
    if name not in counters:
        raise Refusal(registry.unknown("counting", name, counters))
    params = counter_parameters(config.counting)
    check_parameters(f"counting={name}", params, counters[name].params)
    return with_params(counters[name], "counting.params", params)


def counter_parameters(composed: CountingCard) -> dict[str, Any]:
    params = dict(composed.params)
    memory = composed.memory or params.get("memory")
    if memory is not None:
        params["memory"] = parse_bytes(memory, "counting.memory")
        at_least("counting.memory", params["memory"], SMALLEST_TABLE_BYTES)
    return params
