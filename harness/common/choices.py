"""What a value may be: each check answers an impossible one with a sentence that names what is possible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from harness.common import registry
from harness.common.errors import Refusal


def at_least(name: str, value: int, least: int = 1) -> None:
    if value < least:
        raise Refusal(f"{name}={value} is not possible; it is a number of {least} or more")


def one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise Refusal(registry.unknown(name, value, allowed))


def check_type(name: str, value: Any, default: Any) -> None:
    """Refuse a value of another type than the default's; an int will do for a float."""
    wanted = type(default)
    if default is None or type(value) is wanted or (wanted is float and type(value) is int):
        return
    raise Refusal(f"{name}={value!r} is {type(value).__name__}; it takes {wanted.__name__}, by default {default!r}")


# One of several: in quotes of either kind, or as it is, without a comma and not beginning with a quote.
LISTED = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|((?!['"\s])[^,]*?|))\s*(,|\Z)""")


def split_list(value: str, name: str) -> list[str]:
    """The texts in `[a,b]`, `['a,b','c']` or plain `a`, the value called `name`. Raises Refusal if it cannot tell."""
    if not (value.startswith("[") and value.endswith("]")):
        return [value]
    inner = value[1:-1]
    if not inner.strip():
        return []
    texts: list[str] = []
    position, more = 0, ","
    while more:
        found = LISTED.match(inner, position)
        if found is None or (found[3] or "").count("[") != (found[3] or "").count("]"):
            raise Refusal(
                f"cannot tell the texts in {name}={value}; write [A,B], in quotes of either kind what holds a comma, a "
                "quote or a single bracket"
            )
        texts.append(next(text for text in found.groups() if text is not None))
        position, more = found.end(), found[4]
    return texts
