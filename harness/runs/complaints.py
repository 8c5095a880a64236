"""One sentence for what Hydra and OmegaConf complain of, and for a name that nothing has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

from hydra.errors import OverrideParseException

from harness.common import configuration, registry

HELP = "see python -m harness --help all"
GROUPS = tuple(registry.KINDS)


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


def sentence(error: BaseException) -> str:
    """Return Hydra's or OmegaConf's complaint in one line."""
    if isinstance(error, OverrideParseException):
        return unreadable_value(error.override)

    text = complaint(error)
    for pattern, answer in ANSWERS:
        if match := re.search(pattern, text):
            return answer(match)

    key = re.search(r"full_key: (\S+)", str(error))
    if key is not None and key[1] not in text:
        text = f"{key[1]}: {text}"
    return f"{text.rstrip('.')}; {HELP}"


def complaint(error: BaseException) -> str:
    """The first two lines of an error and its cause that say something."""
    parts = []
    for line in f"{error}\n{error.__cause__ or ''}".splitlines():
        text = line.strip().rstrip(":")
        if text and not text.startswith(("full_key:", "object_type", "reference_type")):
            parts.append(text)
    return ": ".join(parts[:2]) or type(error).__name__


def unreadable_value(override: str) -> str:
    """The answer to a value that Hydra's grammar does not allow."""
    key, _, value = override.partition("=")
    text = f"{override!r} cannot be read; put quotes round the value"
    if "'" not in value:
        text += f", as in \"{key}='{value}'\""
    return f"{text}; for an expression set pattern.regex=EXPRESSION" if key == "pattern" else text


def unknown_override(match: re.Match[str]) -> str:
    name = match[1]
    if f"data.{name}" in configuration.keys_beside("data."):
        return f"unknown override {name!r}; did you mean data.{name}?"
    names = configuration.keys_beside(name)
    if "." in name and names and not names[0].startswith(name.partition(".")[0]):
        names = configuration.dotted_keys()
    return (
        registry.unknown("override", name, names) if names else f"unknown override {name!r}; {HELP}"
    )


def wrong_type(match: re.Match[str]) -> str:
    key, wanted = match.groups()
    kind = "whole number" if wanted == "Integer" else "number"
    if key.startswith("limits.wall="):
        kind += " of seconds, such as 600"
    if key.startswith("seed="):
        kind += ", or today alone"
    return f"{key} must be a {kind}; {HELP}"


ANSWERS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        rf"Could not find '({'|'.join(GROUPS)})/([^']+)'",
        lambda match: unknown_name(*match.groups()),
    ),
    (r"Could not override '([^']+)'", unknown_override),
    (
        r"Ambiguous value for argument 'variant=([^']*)'",
        lambda match: f"variant is one name; for several set variants={match[1]}",
    ),
    (
        r"^Error merging override (.+?): Value .* could not be converted to (Integer|Float)",
        wrong_type,
    ),
    (
        r"Ambiguous value for argument '([^=]+)=",
        lambda match: (
            f"{match[1]} is given several values; use -m for a sweep over them, or [A,B] where "
            f"a list is meant; {HELP}"
        ),
    ),
)
"""What is searched for in a complaint, and the sentence to write instead."""


def looks_like_a_file(name: str) -> bool:
    """Whether a name that no card has is a file's: names of cards have neither a slash nor a
    suffix.

    >>> [looks_like_a_file(name) for name in ("book.txt", "texts/book", "stdlib", "mine:train")]
    [True, True, False, False]
    """
    return "/" in name or bool(Path(name).suffix)
