"""Values that a user gives: lists, numbers, sizes; JSON that somebody else wrote; where two lists
differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from operator import index
from typing import Any

import msgspec

from harness.common.errors import Refusal
from harness.common.targets import unknown_text

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


# Checks of a user's values


def whole_number(name: str, value: int) -> int:
    """A number of NumPy's as well. Raises TypeError for what is not one."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {type(value).__name__}, not int")
    return index(value)


def at_least(name: str, value: int, least: int = 1) -> None:
    if whole_number(name, value) < least:
        what = f"{name}={value} is not possible; it is a number of {least} or more"
        raise Refusal(what, settings={name: value})


def one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise Refusal(unknown_text(name, str(value), allowed))


SIZE = re.compile(
    r"\s*(\d[\d_]{0,30}(?:\.\d+)?(?:e\d{1,2})?)\s*(?:([kmgt])(i(?=b))?)?b?\s*", re.IGNORECASE
)


def parse_number(text: str) -> int | None:
    """A whole number as people write it, or None.

    >>> [parse_number(text) for text in ("10k", "1e4", "32_000", "64MB", "1.5 GiB", "half")]
    [10000, 10000, 32000, 64000000, 1610612736, None]
    """
    match = SIZE.fullmatch(text)
    if match is None:
        return None
    number = Decimal(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(
        (match[2] or " ").upper()
    )
    return int(number) if number == int(number) else None


def parse_value(text: str, name: str) -> Any:
    """A number, a truth value, null, a list or a text, as YAML writes them."""
    try:
        return msgspec.yaml.decode(text.encode())
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as error:
        raise Refusal(f"{name}={text[:80]} is not a value; quote it") from error


def parse_bytes(text: str | int, name: str, smallest: int = 1) -> int:
    """A size in bytes, at least `smallest`. Raises Refusal, which calls it `name`."""
    size = parse_number(str(text))
    if size is None:
        raise Refusal(
            f"{name}={text} is not a size; write a number with or without a unit, as 64MB, 2GB or 1GiB"
        )
    if size < smallest:
        raise Refusal(f"{name}={text} is nothing; write a size of at least one byte")
    return size


def parse_vocab_size(text: str) -> int:
    """A number such as 32k, 1e4 or 50_257."""
    size = parse_number(text)
    if size is None:
        raise Refusal(f"--vocab-size {text!r} is not a number; write it like 32k or 32000")
    return size


def first_difference(ours: Sequence[object], theirs: Sequence[object]) -> int:
    """How many items are equal before the first difference."""
    for place, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        if mine != other:
            return place
    return min(len(ours), len(theirs))
