"""The overrides of the command line: which exist, and a check of each before Hydra composes, which
answers an unknown name with those that exist.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from harness.common import registry
from harness.common.cards import DataCard, MeasureCard, PatternCard
from harness.common.errors import Refusal
from harness.common.registry import CountingCard, OurVariantCard
from harness.common.units import did_you_mean
from harness.common.values import own_target, unknown_text

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
