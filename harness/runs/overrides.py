"""The command line as configurations: its overrides, each checked before Hydra composes, which
answers an unknown name with those that exist; then Hydra's public `compose`, and its override
grammar.

Hydra only enumerates, and reads no file: it gets the cards that may be named, checked. What it
composed is plain data; everything else is done outside it.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, OverrideParseException
from msgspec import Struct
from msgspec.structs import fields
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.common import registry
from harness.common.cards import DataCard, Experiment, MeasureCard, PatternCard, Sweep, fitted
from harness.common.errors import Refusal
from harness.common.registry import CountingCard, OurVariantCard
from harness.common.units import did_you_mean, one_line
from harness.common.values import own_target, parse_number, split_list, unknown_text

HELP = "see python -m harness --help all"
GROUPS = tuple(registry.KINDS)
NESTED = ("variant.params", "counting.params", "data.source", "vocab_size_at_most")
"""What holds keys that depend on a card."""
# Values that are text, not Hydra's language: quoted before it parses.
LITERAL = (
    "extend",
    "seeds",
    "protected",
    "save",
    "certificate",
    "results",
    "data.path",
    "data.column",
    "pattern.regex",
)


class LimitsConfig(Struct):
    """The limits of one measured process: seconds of wall time, memory of its whole group."""

    wall: float | None = None
    memory: int | str | None = None


class FirstStageConfig(Struct):
    """The stage before, where a command has two: its pattern, and its size (None: half of the
    whole).
    """

    pattern: str | None = None
    vocab_size: int | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """What all cells of a command share: how they are measured, and what becomes of them."""

    measure: MeasureCard
    results: str
    save: str | None = None
    certificate: str | None = None
    seed: int = 0
    plan: bool = False
    profile: str = "none"  # or cprofile: each trainer runs once more under it
    tokens: bool = False  # whether to count the tokens that are left of the text
    rerun: bool = False
    overwrite: bool = False
    concurrent: bool = False


class Config(Settings, frozen=True):
    """Everything that `python -m harness` understands, as Hydra composed it from the defaults of
    conf/config.yaml, and the `keys` that the command line set.
    """

    keys: list[str]

    variant: OurVariantCard
    data: DataCard
    counting: CountingCard
    pattern: PatternCard
    limits: LimitsConfig
    first_stage: FirstStageConfig
    variants: list[str] | None
    vocab_size: int | None
    vocab_size_at_most: dict[str, int]
    special_tokens: list[str] | None
    tie_break: str
    min_count: int
    extend: str | None
    inherited: str
    seeds: str
    veto: str
    protected: str
    errors: str
    threads: Any
    interpreter: str | None
    repeat: int | None
    instances: int


PLAIN_KEYS = [field.name for field in fields(Config) if field.name != "keys"]
SECTIONS: dict[str, type[Struct]] = {
    **registry.KINDS,
    "limits": LimitsConfig,
    "first_stage": FirstStageConfig,
}
ASSIGNMENTS = [f"{key}=VALUE" for key in PLAIN_KEYS]
KEYS = PLAIN_KEYS.copy()
"""Every key that an override may have, but for those in NESTED; cards keep their names."""
for section, kind in SECTIONS.items():
    keys = [field.encode_name for field in fields(kind)]
    KEYS += [f"{section}.{key}" for key in keys if key != "name"]


def check_override(argument: str, sweep: bool) -> None:
    """Refuse an override whose key or card does not exist, with what may have been meant."""
    key, equals, value = argument.partition("=")
    if argument.startswith("-"):
        meant = did_you_mean(key.lstrip("-").replace("-", "_"), ASSIGNMENTS)
        raise Refusal(f"unknown option {argument};{meant} {HELP}")
    if argument.startswith(("~", "hydra.", "hydra/", "hydra=")):
        raise Refusal(f"{argument}: Hydra only composes here; set another value or leave it out")
    if not equals:
        raise Refusal(f"{argument!r} is not of the form NAME=VALUE; {guess(argument) or HELP}")

    if key in GROUPS:
        check_card(key, value, sweep)
    elif key not in KEYS and not key.startswith(tuple(f"{name}." for name in NESTED)):
        if f"data.{key}" in KEYS:
            raise Refusal(f"unknown override {key!r}; did you mean data.{key}?")
        raise Refusal(unknown_text("override", key, KEYS))
    elif argument in ("variants=", "variants=[]"):
        raise Refusal("variants is empty; set one or more, such as variants=naive,heap")
    elif argument == "special_tokens=null":
        advice = "set 'special_tokens=[]' for no special tokens"
        raise Refusal(f"{argument} is not a list; {advice}")
    elif key == "special_tokens" and "," in value and not value.startswith("["):
        one = f"special_tokens=['{value}']"
        raise Refusal(f'set "special_tokens=[{value}]" for several tokens, or "{one}" for one')


def check_card(group: str, value: str, sweep: bool) -> None:
    """Refuse the name of a card that does not exist; a pattern of names is Hydra's."""
    if value.startswith("[") or (group == "variant" and "," in value and not sweep):
        several = "variants=A,B" if group == "variant" else f"-m {group}=A,B"
        raise Refusal(f"{group} is one name; for several use {several}")
    is_file = Path(value).is_file()
    if re.search(r"[(\[{}'\"]", value) and not is_file:
        return

    existing = registry.names(group)
    for name in [value] if is_file else map(str.strip, value.split(",")):
        if name not in existing and group == "data" and looks_like_a_file(name):
            setting = shlex.quote(f"data.path={name}")
            raise Refusal(f"unknown data set {name!r}; for a file set {setting}")
        if name not in existing:
            raise Refusal(unknown_text(group, name, existing))


def looks_like_a_file(name: str) -> bool:
    """Whether a name that no card has is a file's: names of cards have neither a slash nor a
    suffix.

    >>> [looks_like_a_file(name) for name in ("book.txt", "texts/book", "stdlib", "mine:train")]
    [True, True, False, False]
    """
    return "/" in name or bool(Path(name).suffix) or Path(name).exists()


def guess(argument: str) -> str:
    """Return the override that somebody means who leaves out NAME=; empty if that cannot be
    guessed.
    """
    for group in GROUPS:
        if argument in registry.names(group):
            return f"did you mean {group}={argument}?"
    if target := own_target(argument):
        return f"did you mean variants={target}?"
    if looks_like_a_file(argument):
        return f"did you mean {shlex.quote(f'data.path={argument}')}?"
    return did_you_mean(argument, [*ASSIGNMENTS, "--help"]).strip()


# Keyword arguments of Python

UNQUOTED = re.compile(r"[\w./:+%@-]+")  # text that Hydra's language does not take for anything else


def overrides_of(keywords: Mapping[str, Any]) -> list[str]:
    """The overrides of keyword arguments in Python: `data_path="book.txt"` is `data.path=book.txt`.

    >>> overrides_of({"variants": ["heap", "flat"], "data_path": "a book.txt", "limits_wall": 60, "save": None})
    ['variants=[heap,flat]', 'data.path=a book.txt', 'limits.wall=60', 'save=null']
    """
    keyed = {override_key(name): value for name, value in keywords.items()}
    return [f"{key}={override_value(key, value)}" for key, value in keyed.items()]


def override_key(name: str) -> str:
    """The key of a keyword, which has an underscore for each dot."""
    for section in (*NESTED, *SECTIONS):
        before = f"{section.replace('.', '_')}_"
        if name not in PLAIN_KEYS and name.startswith(before):
            return f"{section}.{name.removeprefix(before)}"
    return name


def override_value(key: str, value: Any, *, in_list: bool = False) -> str:
    """The value as the command line has it; lists that are taken literally know quotes of either
    kind alone.
    """
    if isinstance(value, list | tuple):
        return f"[{','.join(override_value(key, item, in_list=True) for item in value)}]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text, literal = str(value), key in (*LITERAL, "special_tokens")
    if UNQUOTED.fullmatch(text) or (literal and not in_list):
        return text
    mark = "'" if "'" not in text else '"'
    return f"{mark}{text}{mark}" if literal else quoted(text)


def quoted(text: str) -> str:
    """`text` as a quoted value that Hydra and OmegaConf take for exactly this text.

    Both read backslashes as escapes only before a quote or an interpolation, so only those are
    doubled.

    >>> print(quoted("it's ${HOME}"))
    'it\\'s \\${HOME}'
    """
    text = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)
    text = re.sub(r"(\\*)'", r"\1\1\\'", text)
    text = re.sub(r"(\\*)\Z", r"\1\1", text, count=1)
    return f"'{text}'"


# Composing

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

    choices = {}
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
        return f"++{key}={value}"  # its keys are names of data sets, and the configuration has none
    if key.startswith(("variant.params.", "counting.params.")):
        # Whether the variant takes it is answered later, by what it takes. Hydra reads a command's
        # {} as a mapping.
        command = "{" in value and value[0] not in "'\"[{"
        return f"++{key}={quoted(value) if command else value}"
    return argument
