"""Keyword arguments of Python as overrides of the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.common import configuration
from harness.runs.compose import quoted
from harness.runs.names import GROUPS, LITERAL

SECTIONS = ("variant.params", "counting.params", "data.source", "first_stage", "limits", *GROUPS)
"""What a keyword's name may start with, with an underscore for each dot."""
PLAIN = re.compile(r"[\w./:+%@-]+")  # text that Hydra's language does not take for anything else


def overrides_of(keywords: Mapping[str, Any]) -> list[str]:
    """The overrides of keyword arguments in Python: `data_path="book.txt"` is `data.path=book.txt`.

    >>> overrides_of({"variants": ["heap", "flat"], "data_path": "a book.txt", "limits_wall": 60, "save": None})
    ['variants=[heap,flat]', 'data.path=a book.txt', 'limits.wall=60', 'save=null']
    """
    keyed = {override_key(name): value for name, value in keywords.items()}
    return [f"{key}={override_value(key, value)}" for key, value in keyed.items()]


def override_key(name: str) -> str:
    section = next(
        (section for section in SECTIONS if name.startswith(f"{section.replace('.', '_')}_")), None
    )
    if section is None or name in configuration.keys_beside(""):
        return name
    return f"{section}.{name[len(section) + 1 :]}"


def override_value(key: str, value: Any, *, in_list: bool = False) -> str:
    """The value as the command line has it; lists that are taken literally know quotes of either
    kind alone.
    """
    if isinstance(value, list | tuple):
        return f"[{','.join(override_value(key, item, in_list=True) for item in value)}]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    text, literal = str(value), key in (*LITERAL, "special_tokens")
    if PLAIN.fullmatch(text) or (literal and not in_list):
        return text
    mark = "'" if "'" not in text else '"'
    return f"{mark}{text}{mark}" if literal else quoted(text)
