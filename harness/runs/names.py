"""The names of the command line, checked before Hydra composes: an unknown one is answered with those
that exist.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from harness.common import configuration, registry
from harness.common.errors import Refusal
from harness.common.targets import own_target
from harness.common.units import did_you_mean

HELP = "see python -m harness --help all"
GROUPS = tuple(registry.KINDS)
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
LISTS = (*LITERAL, "special_tokens", "variants")


def settings() -> list[str]:
    return [f"{key}=VALUE" for key in configuration.keys_beside("variant")]


def existing(group: str) -> list[str]:
    """The names that there are in a group of configuration."""
    return list(registry.variants()) if group == "variant" else registry.names(group)


def unknown_name(group: str, name: str) -> str:
    if group == "data" and (looks_like_a_file(name) or Path(name).is_file()):
        setting = shlex.quote(f"data.path={name}")
        return f"unknown data set {name!r}; for a file set {setting}"
    return registry.unknown(group, name, existing(group))


def looks_like_a_file(name: str) -> bool:
    """Whether a name that no card has is a file's: names of cards have neither a slash nor a
    suffix.

    >>> [looks_like_a_file(name) for name in ("book.txt", "texts/book", "stdlib", "mine:train")]
    [True, True, False, False]
    """
    return "/" in name or bool(Path(name).suffix)


def check_names(argument: str, sweep: bool) -> None:
    """Refuse an override whose key or card does not exist, with what may have been meant."""
    check_form(argument)
    key, _, value = argument.partition("=")
    if key in GROUPS:
        check_card(key, value, sweep)
    else:
        check_key(key)
        check_value(key, value, sweep)


def check_form(argument: str) -> None:
    """Refuse what is not NAME=VALUE."""
    if argument.startswith("-"):
        name = argument.lstrip("-").replace("-", "_").partition("=")[0]
        raise Refusal(f"unknown option {argument};{did_you_mean(name, settings())} {HELP}")
    if argument.startswith("~"):
        raise Refusal(f"{argument}: ~NAME is not supported; set another value")
    if re.match(r"hydra[./=]", argument):
        name = argument.partition("=")[0]
        raise Refusal(f"{name}: Hydra only composes here; leave its own settings out")
    if "=" not in argument:
        raise Refusal(f"{argument!r} is not of the form NAME=VALUE; {guess(argument) or HELP}")


def check_card(group: str, value: str, sweep: bool) -> None:
    """Refuse the name of a card that does not exist; a pattern of names is Hydra's."""
    is_several = value.startswith("[") or (group == "variant" and "," in value and not sweep)
    if is_several and group != "experiment":
        several = "variants=A,B" if group == "variant" else f"-m {group}=A,B"
        raise Refusal(f"{group} is one name; for several use {several}")
    if group == "data" and value not in existing(group) and Path(value).is_file():
        raise Refusal(unknown_name(group, value))

    if not re.search(r"[(\[{}'\"]", value):
        for name in map(str.strip, value.split(",")):
            if name not in existing(group):
                raise Refusal(unknown_name(group, name))


def check_key(key: str) -> None:
    """Refuse a key that does not exist. What a card holds below its own keys is Hydra's."""
    section, dot, _ = key.partition(".")
    names = configuration.keys_beside(key)
    if key in names or (not names and section in GROUPS):
        return

    if f"data.{key}" in configuration.keys_beside("data."):
        raise Refusal(f"unknown override {key!r}; did you mean data.{key}?")
    if not dot or not any(name.startswith(f"{section}.") for name in names):
        names = [*names, *configuration.dotted_keys()]
    raise Refusal(registry.unknown("override", key, names))


def check_value(key: str, value: str, sweep: bool) -> None:
    """Refuse no variant, no list of special tokens, and a number with commas."""
    argument = f"{key}={value}"
    if argument in ("variants=", "variants=[]"):
        raise Refusal("variants is empty; set one or more, such as variants=naive,heap")
    if argument == "special_tokens=null":
        advice = "set 'special_tokens=[]' for no special tokens"
        raise Refusal(f"{argument} is not a list; {advice}")
    if key == "special_tokens" and "," in value and not value.startswith("["):
        one = f"special_tokens=['{value}']"
        raise Refusal(f'set "special_tokens=[{value}]" for several tokens, or "{one}" for one')

    is_grouped = re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+", value) is not None
    if is_grouped and key not in LISTS and (not sweep or ",0" in value):
        raise Refusal(f"{argument} is several numbers; did you mean {argument.replace(',', '_')}?")


def guess(argument: str) -> str:
    """Return the override that somebody means who leaves out NAME=; empty if that cannot be
    guessed.
    """
    if group := next((group for group in GROUPS if argument in existing(group)), None):
        return f"did you mean {group}={argument}?"
    if target := own_target(argument):
        return f"did you mean variants={target}?"
    if looks_like_a_file(argument) or Path(argument).exists():
        return f"did you mean {shlex.quote(f'data.path={argument}')}?"
    return did_you_mean(argument, [*settings(), "--help"]).strip()
