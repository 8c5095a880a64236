"""Values that a user gives, and JSON that somebody else wrote."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

import msgspec

from harness.common.errors import Refusal

# One of several: in quotes of either kind, or without a comma and not starting with a quote.
LISTED = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|((?!['"\s])[^,]*?|))\s*(,|\Z)""")


def split_list(value: str, name: str) -> list[str]:
    """The texts in `[a,b]`, `['a,b','c']` or plain `a`; `name` is for the Refusal of an invalid
    list.
    """
    if not (value.startswith("[") and value.endswith("]")):
        return [value]
    inner = value[1:-1]
    if not inner.strip():
        return []

    texts: list[str] = []
    position, more = 0, ","
    while more:
        match = LISTED.match(inner, position)
        if match is None or (match[3] or "").count("[") != (match[3] or "").count("]"):
            advice = "write [A,B], and quote texts with a comma, a quote or a single bracket"
            raise Refusal(f"cannot split {name}={value}; {advice}")
        texts.append(next(text for text in match.groups() if text is not None))
        position, more = match.end(), match[4]
    return texts


def special_texts(special_tokens: Iterable[str]) -> tuple[str, ...]:
    """The special tokens of a list. Raises TypeError for anything without an order, such as a str
    or a set, or for a token that is not a str, and Refusal for a token that is empty, repeated, or
    not UTF-8.
    """
    is_list = isinstance(special_tokens, Iterable)
    if not is_list or isinstance(special_tokens, str | bytes | Mapping | Set):
        advice = "pass a list, such as ['<s>']"
        raise TypeError(f"special tokens are {special_tokens!r}, not a list; {advice}")
    texts = tuple(special_tokens)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"special token {text!r} is {type(text).__name__}, not str")
    if not all(texts) or len(set(texts)) < len(texts):
        raise Refusal(f"special tokens {[*texts]} contain an empty or repeated one; pass each once")
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        raise Refusal(f"special tokens {[*texts]} contain one that is not UTF-8; leave it out")
    return texts


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_json(content: bytes, kind: Any) -> Any:
    """Decode JSON as a type or struct. Raises ValueError, which names the field that does not fit."""
    try:
        return msgspec.json.decode(content.removeprefix(BYTE_ORDER_MARK), type=kind)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
