"""Keyword arguments of Python as the overrides that they stand for: `data_path="book.txt"` is `data.path=book.txt`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from harness.common import registry
from harness.common.configuration import keys_beside
from harness.common.errors import Refusal
from harness.runs.command_line import GROUPS, LITERAL, quoted

# Values that Hydra's language takes for themselves.
_PLAIN = re.compile(r"[\w./:+%@-]+")
_OPEN = ("variant.params.", "counting.params.", "data.source.")
"""Below these any name may stand: what takes it answers."""


def overrides_of(keywords: Mapping[str, Any]) -> list[str]:
    """One override for each argument. Raises Refusal for a name that does not exist, with those that do.

    >>> overrides_of({"variants": ["heap", "flat"], "data_path": "a book.txt", "limits_wall": 60, "save": None})
    ['variants=[heap,flat]', 'data.path=a book.txt', 'limits.wall=60', 'save=null']
    """
    return [f"{key}={_value(key, value)}" for key, value in ((_key(name), value) for name, value in keywords.items())]


def _key(name: str) -> str:
    """The override that a keyword stands for: an underscore is a dot after the name of a group."""
    names = [*keys_beside(""), *GROUPS]
    if name in names or name.startswith(_OPEN):
        return name
    group, divided, rest = name.partition("." if "." in name else "_")
    if divided and group in names:
        part, _, own = rest.partition("_")
        if group == "variant" and rest in ("target", "_target_"):
            return "variant._target_"
        if own and f"{group}.{part}." in _OPEN:
            return f"{group}.{part}.{own}"
        if f"{group}.{rest}" in keys_beside(f"{group}."):
            return f"{group}.{rest}"
        raise Refusal(registry.unknown("setting", name, [key.replace(".", "_") for key in keys_beside(f"{group}.")]))
    raise Refusal(registry.unknown("setting", name, dict.fromkeys(names)))


def _value(key: str, value: Any) -> str:
    if callable(value):
        raise Refusal(f"{key} has a function, which another process cannot import; name it module:function")
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(_one_of_several(key, each) for each in value)}]"
    text = str(value)
    if isinstance(value, int | float) or key in LITERAL or key == "special_tokens" or _PLAIN.fullmatch(text):
        return text
    if isinstance(value, str | PurePath):
        return quoted(text)
    raise Refusal(f"{key} is {value!r}; give text, a number, True, False, None or a list of these")


def _one_of_several(key: str, value: Any) -> str:
    """An element of a list: lists of texts that are taken literally know quotes of either kind, and nothing else."""
    if callable(value):
        return _value(key, value)
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    if key not in LITERAL and key != "special_tokens":
        return quoted(text)
    mark = "'" if "'" not in text else '"'
    if mark in text:
        raise Refusal(f"{key}: {text!r} holds quotes of both kinds, which a list cannot say")
    return f"{mark}{text}{mark}"
