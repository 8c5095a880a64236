"""What a value may be: each check answers an impossible one with a sentence that names what is possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import registry
from harness.errors import Refusal


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
