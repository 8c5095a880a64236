"""Vetoes: which pairs may not be merged, told from the bytes of their two halves.

Where text is hardly cut into pieces, something else has to keep tokens from growing over everything. A veto refuses a
pair for good: it is never merged, takes up no place in the vocabulary, and its halves may still merge with others. As
it sees bytes alone, a pair is refused from the moment it first stands anywhere.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass

from variants.contract import Veto

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


def named(name: str) -> Veto | None:
    """The veto of a name: `none`, `superbpe`, `bytes:N`, `characters:N`, or one's own as `package.module:function`.

    Raises ValueError for a name that is none of these, and what importing a module raises.

    >>> named("none") is None, named("superbpe") is superbpe, named("bytes:16")
    (True, True, Longest(most=16, unit='bytes'))
    """
    if name in ("none", "superbpe"):
        return superbpe if name == "superbpe" else None
    if (longest := _LONGEST.fullmatch(name)) is not None:
        if int(longest[2]) < 2:
            raise ValueError(f"veto={name} leaves no pair to merge; the longest token has 2 or more")
        return Longest(int(longest[2]), longest[1])
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise ValueError(
            f"unknown veto {name!r}; there are: none, superbpe, bytes:N, characters:N, and "
            "package.module:function for one of your own"
        )
    veto: Veto = getattr(importlib.import_module(module), function)
    if not callable(veto):
        raise ValueError(f"veto={name} is not a function of two halves' bytes")
    return veto
