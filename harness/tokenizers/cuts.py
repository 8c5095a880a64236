"""Where a long text can be cut so that its pre-tokens stay what they are: known for patterns of known parts only.

A cut before a blank that follows no white space is safe where each alternative of the pattern either takes white space
at its very beginning, or nothing but white space, or line ends at its end: none then holds the blank in its middle,
and the only look ahead, `\\s+(?!\\S)`, sees the character before the blank. A cut after a line end is safe where no
match goes on over one. Of any other pattern nothing is known, and a document is taken whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.common import registry
from harness.tokenizers.dialects import PART

LastCut = Callable[[str, int, int], int]
"""The last place to cut a text at, above a first place and not above a last; the first place if there is none."""

_OF_LINES = ("line", "gpt2_lines", "superbpe", "superbpe_words")
"""The patterns, by the names of their cards, of which no match goes on over a line end."""

# Contractions; a sign and letters; digits; signs; white space. As OpenAI and those who follow it write them.
_BLANK_FIRST = re.compile(
    r"""
    '\(\?(?:i)?:[a-z\[\]|]+\) | \(\?i:(?:'[a-z]+\|?)+\) | '[a-z]+
    | (?:\[\^\\r\\n\\p\{L\}\\p\{N\}\] | [ ])?\??\+?\\p\{L\}\+{1,2}
    | [ ]?\??\\p\{N\}(?:\+{1,2}|\{1,\d\}\+?)?
    | (?:\[\^\\r\\n\\p\{L\}\\p\{N\}\]\?)?(?:\[(?:\\p\{[LM][a-z]?\})+\][*+])+(?:\(\?i:(?:'[a-z]+\|?)+\)\?)?
    | [ ]?\??\[\^\\s\\p\{L\}\\p\{N\}\]\+{1,2}(?:\[\\r\\n/?\][*]\+?)?
    | \\s[*]\[\\r\\n\]\+{0,2} | \\s\+\(\?!\\S\) | \\s\+\+\$ | \\s\+?
    """,
    re.VERBOSE,
)


def last_cut_of(pattern: str | None) -> LastCut | None:
    """How to cut texts that this pattern splits; None where no cut is known to be safe."""
    if pattern is None:
        return None
    if pattern in [registry.cards("pattern")[name]["regex"] for name in _OF_LINES]:
        return _after_line_end
    if all(_BLANK_FIRST.fullmatch(alternative) for alternative in alternatives(pattern)):
        return _before_blank
    return None


def alternatives(pattern: str) -> list[str]:
    """The alternatives of a pattern, those within brackets left together.

    >>> alternatives("'(?:s|t)|[|]|x")
    ["'(?:s|t)", '[|]', 'x']
    """
    found, depth = [""], 0
    for part in PART.findall(pattern):
        depth += (part.startswith("(") and not part.endswith(")")) - (part == ")")
        if part == "|" and not depth:
            found.append("")
        else:
            found[-1] += part
    return found


def _before_blank(text: str, first: int, last: int) -> int:
    while (place := text.rfind(" ", first, last)) > first:
        if not text[place - 1].isspace():
            return place
        last = place
    return first


def _after_line_end(text: str, first: int, last: int) -> int:
    return max(first, text.rfind("\n", first, last) + 1)
