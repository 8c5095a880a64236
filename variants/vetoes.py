"""Vetoes: which pairs may not be merged, decided by the bytes of their two halves.

Where text is hardly cut into pieces, something else has to keep tokens from growing over
everything. A veto refuses a pair for good: it is never merged, takes up no place in the vocabulary,
and its halves may still merge with others. As it sees bytes alone, a pair is refused from the
moment it first occurs. Of several, one that refuses is enough.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from variants.contract import LARGEST_COUNT, Veto

NAMES = ("none", "superbpe", "whole_characters", "bytes:N", "characters:N", "protected:HEX.HEX")

MOST_WORDS = 4
"""Words that a token of SuperBPE may have."""

_UTF8_CONTINUATION = bytes(range(0x80, 0xC0))
_LONGEST = re.compile(r"(bytes|characters):([0-9]+)", re.ASCII)


def superbpe(left: bytes, right: bytes) -> bool:
    r"""Refuse a token that contains a colon and a space, or that has more than four words.

    Words are the parts between spaces (0x20) that are not empty; newlines and tabs part none. These
    are the constants of SuperBPE's second stage (arXiv 2503.13423, the fork's `trainer.rs`).

    >>> superbpe(b" of", b" the"), superbpe(b"as:", b" "), superbpe(b"a b c", b" d\ne"), superbpe(b"a b c d", b" e")
    (False, True, False, True)
    """
    token = left + right
    return b": " in token or sum(map(bool, token.split(b" "))) > MOST_WORDS


def whole_characters(left: bytes, right: bytes) -> bool:
    r"""Refuse a token that is neither whole characters nor the beginning of one.

    In valid UTF-8 a character is so built from its first byte on, and merges with others only when
    it is whole. UTF-8 is strict: what no code point begins with is never merged.

    >>> whole_characters(b"\xc3", b"\xa9"), whole_characters(b"\xf0", b"\x9f"), whole_characters(b"a", b"\xc3")
    (False, False, True)
    """
    try:
        (left + right).decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data" or error.start > 0
    return False


@dataclass(frozen=True)
class Limits:
    """A veto as rules, which compiled programs take one by one. It refuses what any of them
    refuses.

    A token may have `most_bytes`, and `most_characters`, each counted where it begins, so that the
    last bytes of one count as none. A `protected` token is not merged further once it is made.
    `own` is a veto of one's own.

    >>> limits = Limits(most_characters=2, protected=(b"1",))
    >>> [limits(*halves) for halves in ((b"a", "\u00e9".encode()), (b"ab", b"c"), (b"1", b"2"), (b"a1", b"2"))]
    [False, True, True, True]
    """

    superbpe: bool = False
    whole_characters: bool = False
    most_bytes: int = LARGEST_COUNT
    most_characters: int = LARGEST_COUNT
    protected: tuple[bytes, ...] = ()
    own: Veto | None = None

    def __call__(self, left: bytes, right: bytes) -> bool:
        token = left + right
        return (
            (self.superbpe and superbpe(left, right))
            or (self.whole_characters and whole_characters(left, right))
            or len(token) > self.most_bytes
            or len(token.translate(None, _UTF8_CONTINUATION)) > self.most_characters
            or left in self.protected
            or right in self.protected
            or (self.own is not None and self.own(left, right))
        )


def limits_of(veto: Veto | None) -> Limits:
    """What a veto refuses, rule by rule."""
    if isinstance(veto, Limits):
        return veto
    is_own = veto not in (None, superbpe, whole_characters)
    return Limits(veto is superbpe, veto is whole_characters, own=veto if is_own else None)


def any_of(vetoes: Iterable[Veto | None]) -> Veto | None:
    """The vetoes as one; None if there are none.

    >>> any_of([superbpe, named("bytes:16"), named("bytes:8")]) == Limits(superbpe=True, most_bytes=8)
    True
    """
    parts = [limits_of(veto) for veto in vetoes if veto is not None]
    if not parts:
        return None
    own = [part.own for part in parts if part.own is not None]
    return Limits(
        any(part.superbpe for part in parts),
        any(part.whole_characters for part in parts),
        min(part.most_bytes for part in parts),
        min(part.most_characters for part in parts),
        tuple(sorted({token for part in parts for token in part.protected})),
        (lambda left, right: any(veto(left, right) for veto in own))
        if len(own) > 1
        else next(iter(own), None),
    )


def protected(tokens: Iterable[bytes]) -> Limits:
    """The veto that keeps these tokens as they are. Raises ValueError for a token of zero bytes."""
    tokens = tuple(sorted(set(tokens)))
    if b"" in tokens:
        raise ValueError("a protected token has zero bytes; leave it out")
    return Limits(protected=tokens)


def named(name: str) -> Veto | None:
    """The veto of a name, one of NAMES, one's own as `package.module:function`, or several as
    `[NAME,NAME]`.

    Raises ValueError for a name that is none of these, and what importing a module raises.

    >>> named("none") is None, named("superbpe") is superbpe, named("bytes:16") == Limits(most_bytes=16)
    (True, True, True)
    """
    if name.startswith("[") and name.endswith("]"):
        return any_of(named(part.strip()) for part in name[1:-1].split(",") if part.strip())
    if name in ("none", "superbpe", "whole_characters"):
        return {"superbpe": superbpe, "whole_characters": whole_characters}.get(name)
    kind, colon, value = name.partition(":")
    if _LONGEST.fullmatch(name):
        if int(value) < 2:
            left = "no pair" if kind == "bytes" else "only bytes of one character"
            raise ValueError(f"veto={name} leaves {left} to merge; set {kind}:2 or more")
        return (
            Limits(most_bytes=int(value)) if kind == "bytes" else Limits(most_characters=int(value))
        )
    if kind == "protected" and re.fullmatch(r"([0-9a-f]{2})+(\.([0-9a-f]{2})+)*", value):
        return protected(map(bytes.fromhex, value.split(".")))
    if not (kind and colon and value) or kind in ("bytes", "characters", "protected"):
        import difflib  # late: only a mistake needs it

        close = difflib.get_close_matches(name, NAMES, 1)
        meant = f" did you mean {close[0]}?" if close else ""
        own = "package.module:function for one of your own"
        raise ValueError(f"unknown veto {name!r};{meant} there are: {', '.join(NAMES)}, and {own}")
    veto: Veto = getattr(importlib.import_module(kind), value)
    if not callable(veto):
        raise ValueError(f"veto={name} is not a function of two halves' bytes")
    return veto
