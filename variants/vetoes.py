"""Vetoes: which pairs may not be merged, decided by the bytes of their two halves.

Where text is hardly cut into pieces, something else has to keep tokens from growing over everything. A veto refuses a
pair for good: it is never merged, takes up no place in the vocabulary, and its halves may still merge with others. As
it sees bytes alone, a pair is refused from the moment it first occurs. Several combine: what any refuses is
refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from variants.contract import LARGEST_COUNT, Veto

NAMES = ("none", "superbpe", "whole_characters", "bytes:N", "characters:N", "protected:HEX.HEX")

MOST_WORDS = 4
"""Words that a token of SuperBPE may have."""

_UTF8_CONTINUATION = bytes(range(0x80, 0xC0))
_LONGEST = re.compile(r"(bytes|characters):([0-9]+)", re.ASCII)


def superbpe(left: bytes, right: bytes) -> bool:
    r"""Refuse a token that contains a colon and a blank, or that has more than four words.

    Words are the parts between blanks (0x20) that are not empty; newlines and tabs part none. These are the constants
    of SuperBPE's second stage (arXiv 2503.13423, the fork's `trainer.rs`).

    >>> superbpe(b" of", b" the"), superbpe(b"as:", b" "), superbpe(b"a b c", b" d\ne"), superbpe(b"a b c d", b" e")
    (False, True, False, True)
    """
    token = left + right
    return b": " in token or sum(map(bool, token.split(b" "))) > MOST_WORDS


def whole_characters(left: bytes, right: bytes) -> bool:
    r"""Refuse a token that is neither whole characters nor the beginning of one.

    In valid UTF-8 a character is so built from its first byte on, and merges with others only when it is whole. UTF-8
    is strict: what no code point begins with is never merged.

    >>> whole_characters(b"\xc3", b"\xa9"), whole_characters(b"\xf0", b"\x9f"), whole_characters(b"a", b"\xc3")
    (False, False, True)
    """
    try:
        (left + right).decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data" or error.start > 0
    return False


@dataclass(frozen=True)
class Longest:
    """Refuse a token of more than `most` bytes, or of more than `most` characters.

    A character is counted where it begins, so a token of a character's last bytes alone has none.

    >>> [Longest(2, "bytes")(b"a", "é".encode()), Longest(2, "characters")(b"a", "é".encode())]
    [True, False]
    """

    most: int
    unit: str

    def __call__(self, left: bytes, right: bytes) -> bool:
        token = left + right
        return len(token if self.unit == "bytes" else token.translate(None, _UTF8_CONTINUATION)) > self.most


@dataclass(frozen=True)
class Protected:
    """Refuse a pair of which one half is a protected token: once made, such a token is not merged further.

    >>> [Protected(frozenset([b"1"]))(*halves) for halves in ((b"1", b"2"), (b"a", b"1"), (b"a1", b"2"))]
    [True, True, False]
    """

    tokens: frozenset[bytes]

    def __call__(self, left: bytes, right: bytes) -> bool:
        return left in self.tokens or right in self.tokens

    @property
    def name(self) -> str:
        return "protected:" + ".".join(token.hex() for token in sorted(self.tokens))


def protected(tokens: Iterable[bytes]) -> Protected:
    """The veto that keeps these tokens as they are. Raises ValueError for a token of zero bytes."""
    tokens = frozenset(tokens)
    if b"" in tokens:
        raise ValueError("a protected token has zero bytes; leave it out")
    return Protected(tokens)


@dataclass(frozen=True)
class AnyOf:
    """Refuse what any of these vetoes refuses."""

    vetoes: tuple[Veto, ...]

    def __call__(self, left: bytes, right: bytes) -> bool:
        return any(veto(left, right) for veto in self.vetoes)


def any_of(vetoes: Iterable[Veto | None]) -> Veto | None:
    """The vetoes as one; None if there are none."""
    parts = tuple(part for veto in vetoes for part in parts_of(veto))
    return AnyOf(parts) if len(parts) > 1 else parts[0] if parts else None


def parts_of(veto: Veto | None) -> tuple[Veto, ...]:
    if isinstance(veto, AnyOf):
        return veto.vetoes
    return () if veto is None else (veto,)


class Limits(NamedTuple):
    """A veto as compiled programs take it; `own` holds the parts that they have to ask."""

    superbpe: bool
    whole_characters: bool
    most_bytes: int
    most_characters: int
    protected: tuple[bytes, ...]
    own: Veto | None


def limits_of(veto: Veto | None) -> Limits:
    """What a veto refuses, rule by rule.

    >>> limits_of(named("[whole_characters,bytes:16]"))[:3]
    (False, True, 16)
    """
    parts = parts_of(veto)
    most = {"bytes": LARGEST_COUNT, "characters": LARGEST_COUNT}
    tokens: set[bytes] = set()
    own = []
    for part in parts:
        if isinstance(part, Longest):
            most[part.unit] = min(most[part.unit], part.most)
        elif isinstance(part, Protected):
            tokens |= part.tokens
        elif part not in (superbpe, whole_characters):
            own.append(part)
    rules = superbpe in parts, whole_characters in parts, most["bytes"], most["characters"]
    return Limits(*rules, tuple(sorted(tokens)), any_of(own))


def named(name: str) -> Veto | None:
    """The veto of a name, one of NAMES, one's own as `package.module:function`, or several as `[NAME,NAME]`.

    Raises ValueError for a name that is none of these, and what importing a module raises.

    >>> named("none") is None, named("superbpe") is superbpe, named("bytes:16")
    (True, True, Longest(most=16, unit='bytes'))
    """
    if name.startswith("[") and name.endswith("]"):
        return any_of(named(part.strip()) for part in name[1:-1].split(",") if part.strip())
    if name in ("none", "superbpe", "whole_characters"):
        return {"superbpe": superbpe, "whole_characters": whole_characters}.get(name)
    kind, colon, value = name.partition(":")
    if (longest := _LONGEST.fullmatch(name)) is not None:
        if int(value) < 2:
            raise ValueError(f"veto={name} leaves no pair to merge; the longest token has 2 or more")
        return Longest(int(longest[2]), kind)
    if kind == "protected" and re.fullmatch(r"([0-9a-f]{2})+(\.([0-9a-f]{2})+)*", value):
        return protected(map(bytes.fromhex, value.split(".")))
    if not (kind and colon and value) or kind in ("bytes", "characters", "protected"):
        raise ValueError(unknown(name))
    veto: Veto = getattr(importlib.import_module(kind), value)
    if not callable(veto):
        raise ValueError(f"veto={name} is not a function of two halves' bytes")
    return veto


def unknown(name: str) -> str:
    import difflib  # late: only a mistake needs it

    close = difflib.get_close_matches(name, NAMES, 1)
    meant = f" did you mean {close[0]}?" if close else ""
    names = ", ".join(NAMES)
    return f"unknown veto {name!r};{meant} there are: {names}, and package.module:function for one of your own"
