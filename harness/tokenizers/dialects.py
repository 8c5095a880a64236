"""Patterns between dialects of regular expressions: Python's `regex`, in which ours are written, and Oniguruma's Ruby.

Hugging Face compiles a tokenizer's pattern with Oniguruma. What both call differently is rewritten; what neither
function knows goes through as it is, and comparing on text tells (`python -m harness.tokenizer check`).
"""

from __future__ import annotations

import re

PART = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]|\(\?[a-z]+(?:-[a-z]+)?[:)]|[$^]|.", re.DOTALL)

_TO_RUBY = {"$": r"\Z", "^": r"\A", r"\Z": r"\z"}
_FROM_RUBY = {"$": "(?m:$)", "^": "(?m:^)", r"\Z": "$", r"\z": r"\Z", r"\h": "[0-9a-fA-F]"}


def to_ruby(pattern: str) -> str:
    r"""The pattern as Oniguruma reads it: there the dot that matches a line's end is (?m:.), and $ ends any line.

    >>> print(to_ruby(r"(?s:.+)$|[$^]\$"))
    (?m:.+)\Z|[$^]\$
    """
    return _rewritten(pattern, _TO_RUBY, {"s": "m"})


def from_ruby(pattern: str) -> str:
    r"""The other way round.

    >>> print(from_ruby(r"(?m:.+)\z|(?i:'s|$)"))
    (?s:.+)\Z|(?i:'s|(?m:$))
    """
    return _rewritten(pattern, _FROM_RUBY, {"m": "s"})


def _rewritten(pattern: str, signs: dict[str, str], flags: dict[str, str]) -> str:
    def part(found: re.Match[str]) -> str:
        said = found[0]
        if said.startswith("(?"):
            return "".join(flags.get(letter, letter) for letter in said)
        return signs.get(said, said)

    return PART.sub(part, pattern)
