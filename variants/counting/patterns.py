"""Reading a regular expression as a member of the published family of patterns, which the compiled
scanner runs.

The patterns of GPT-2, cl100k, o200k, Llama 3, Qwen, StarCoder 2 and most other byte-level
tokenizers are one alternation: contractions, words, numbers, other signs, spaces up to a newline,
spaces. `slots_of` reads the spellings of each part into the slots below. Two spellings have the
same slots only if `regex` splits every text the same by both: a quantifier may be possessive only
where that changes nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from string import ascii_letters
from typing import Final, NamedTuple

import regex

from variants.contract import GPT2_LINES_PATTERN, GPT2_PATTERN

FAMILY, LINE, DOCUMENT, BYTES, SUPERBPE = range(5)
NO_CONTRACTION, EXACT, FOLDED, ASCII_FOLDED = range(4)
NO_TRAIL, NEWLINES, NEWLINES_AND_SLASHES = range(3)


class Slots(NamedTuple):
    """How the compiled scanner splits: one byte each, in the order of `Pattern` in
    scanner_patterns.hpp.
    """

    split: int = FAMILY
    contraction: int = NO_CONTRACTION
    """`'s` and its like: none, in lower case, in either case (then U+017F is an s, too), or in
    either case of ASCII.
    """
    behind: bool = False
    """A contraction belongs to the word directly before it, once; else it is the first
    alternative.
    """
    prefix: bool = False
    """A word may begin with `[^\\r\\n\\p{L}\\p{N}]`; else with a space."""
    cased: bool = False
    """A word is UPPER*LOWER+ or UPPER+LOWER*, where marks and letters without case are both; else
    letters.
    """
    marks: bool = False
    """Marks are letters where a word is letters, and never an other sign."""
    digits: int = 0
    """At most so many numbers in a word; 0: any."""
    blank_numbers: bool = False
    """Numbers may begin with a space."""
    numbers_apart: bool = False
    """Numbers are split off first, so that spaces before one end as they do at the end of the
    text.
    """
    trail: int = NO_TRAIL
    """What other signs may end with: nothing, `[\\r\\n]*` or `[\\r\\n/]*`."""
    newlines: bool = False
    """`\\s*[\\r\\n]+`: spaces up to the last newline among them are one word."""
    whole_tail: bool = False
    """`\\s+$` comes before that: all spaces at the end of a text are one word."""
    lines: bool = False
    """No word goes on over the end of a line, as if every line were a text."""


GPT2: Final = Slots(contraction=EXACT, blank_numbers=True)
O200K: Final = Slots(
    contraction=FOLDED,
    behind=True,
    prefix=True,
    cased=True,
    digits=3,
    trail=NEWLINES_AND_SLASHES,
    newlines=True,
)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORD = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
BETWEEN = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r/]*\n?| +(?!\S)"
EXACT_SPELLINGS: Final = {
    None: Slots(BYTES),
    r"(?s:.+)": Slots(DOCUMENT),
    r"[^\n]*\n|[^\n]+": Slots(LINE),
    GPT2_PATTERN: GPT2,
    GPT2_LINES_PATTERN: GPT2._replace(lines=True),
    BETWEEN + r"|[^\n]+?(?=\p{N}| ?[^\s\p{L}\p{N}]{2}| (?!\S)|(?![^\n]))\n?|\n": Slots(SUPERBPE),
    BETWEEN + r"|(?:(?!\p{N}| ?[^\s\p{L}\p{N}]{2}| (?!\S))[^\n])+\n?|\n": Slots(SUPERBPE),
    WORD + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r/]*\n?|[^\S\n]*[\r\n]|\s+(?!\S)|\s+": O200K._replace(
        contraction=NO_CONTRACTION, behind=False, lines=True
    ),
}
"""Known by their text: patterns that are not of the family, two members on lines, and the default,
read at once.
"""


@lru_cache(maxsize=64)
def slots_of(pattern: str | None) -> Slots | None:
    """How the scanner runs a pattern; None if it cannot."""
    if pattern is None or pattern in EXACT_SPELLINGS:
        return EXACT_SPELLINGS[pattern]
    expression = canonical(pattern)
    parts = _MEMBER.fullmatch(expression) or _MEMBER.fullmatch(
        re.sub(r"^\((?:\?:)?(.*)\)$", r"\1", expression)
    )
    if (
        parts is None
        or len(parts.captures("numbers")) != 1
        or (parts["contraction"] and parts["behind"])
    ):
        return None
    contraction = contraction_of(parts["contraction"] or parts["behind"])
    if contraction is None:
        return None
    cased, marks = parts["cased"] is not None, r"\p{M}" in parts["others"]
    slots = Slots(
        contraction=contraction,
        behind=parts["behind"] is not None,
        prefix=not parts["prefix"].startswith(" "),
        cased=cased,
        marks=marks,
        digits=0 if parts["any"] else int(parts["most"] or 1),
        blank_numbers=parts["blank"] is not None,
        numbers_apart=parts["before"] != r"\S",
        trail=NO_TRAIL
        if not parts["trail"]
        else NEWLINES_AND_SLASHES
        if "/" in parts["trail"]
        else NEWLINES,
        newlines=parts["newlines"] is not None,
        # without newlines it changes nothing
        whole_tail=None not in (parts["tail"], parts["newlines"]),
    )
    if not cased and marks != (r"\p{M}" in parts["letters"]):
        return None
    return None if slots.numbers_apart and (slots.blank_numbers or slots.whole_tail) else slots


@lru_cache(maxsize=64)
def compiled(pattern: str | None) -> bytes | None:
    """The slots of a pattern as the scanner takes them, or None if it has no compiled form."""
    slots = slots_of(pattern)
    return None if slots is None else bytes(slots)


def splits_documents(pattern: str | None) -> bool:
    """Whether a compiled pattern splits documents: else a special token is the only place for a
    cut.
    """
    slots = slots_of(pattern)
    return slots is not None and slots.split not in (DOCUMENT, BYTES)


CONTRACTIONS: Final = ("'s", "'d", "'m", "'t", "'ll", "'ve", "'re")
_IN_ASCII = {
    "'" + "".join(cases)
    for text in CONTRACTIONS
    for cases in product(*((c, c.upper()) for c in text[1:]))
}
_KINDS = {
    frozenset(CONTRACTIONS): EXACT,
    frozenset(_IN_ASCII): ASCII_FOLDED,
    frozenset(_IN_ASCII | {"'\u017f"}): FOLDED,
}
_SIGNS = ascii_letters + "\u017f'|()[]?:"
"""What expressions of contractions are written with."""


@lru_cache(maxsize=64)
def contraction_of(expression: str | None) -> int | None:
    """Which contractions an expression of letters, sets, groups and alternatives matches; None if
    it is others.

    >>> [contraction_of(text) for text in (None, "(?i:'(?:[stmd]|re|ve|ll))", "'s|'t")]
    [0, 2, None]
    """
    if expression is None:
        return NO_CONTRACTION
    if re.search(r"\(\?(?!i?:)", expression):
        return None
    try:
        whole, longer = regex.compile(expression), regex.compile(rf"(?:{expression})(?<=.{{4}})")
    except regex.error:
        return None

    signs = {
        case for sign in {*expression, "s"} for case in (sign, sign.lower(), sign.upper(), "\u017f")
    }
    if any(whole.fullmatch(text, partial=bool(text)) for text in ("", *signs - {"'"})):
        return None

    texts = ["'", *(f"'{first}{second}" for first in signs for second in ("", *signs))]
    if any(longer.fullmatch(text, partial=True) for text in texts if len(text) == 3):
        return None
    return _KINDS.get(frozenset(text for text in texts if whole.fullmatch(text)))


_SET = re.compile(r"\[(\^?)((?:\\p\{\w+\}|\\[srn]|[ /])+)\]")


def canonical(pattern: str) -> str:
    r"""The pattern with one spelling for equal sets and quantifiers.

    >>> canonical(r"[^\s\p{N}\pL\r]+[\p{L}]+")
    '[^\\p{L}\\p{N}\\s]+\\p{L}+'
    """

    def ordered(match: re.Match[str]) -> str:
        members = set(re.findall(r"\\p\{\w+\}|\\?.", match[2]))
        if r"\s" in members:
            members -= {r"\r", r"\n", " "}
        inner = "".join(sorted(members))
        return inner if len(members) == 1 and not match[1] else f"[{match[1]}{inner}]"

    for spelling, short in (
        (r"\\p([LMN])", r"\\p{\1}"),
        (r"\{1\}\+?(?!\?)", ""),
        (r"\{1,\}", "+"),
        (r"\{0,1\}", "?"),
        (r"\{0,\}", "*"),
    ):
        pattern = re.sub(spelling, short, pattern)
    return _SET.sub(ordered, pattern)


_NUMBERS = (
    r"(?P<numbers>(?P<blank>\ \?\+?)?\\p\{N\}(?:(?P<any>\+\+?)|\{1(?:,(?P<most>[1-9]))?\}\+?)?)"
)
_CONTRACTION = rf"[{regex.escape(_SIGNS)}]+?"
_BEHIND = rf"(?:(?P<behind>\((?:\?i?:)?{_CONTRACTION}\))\?\+?)?"
_WORD = (
    rf"(?P<prefix>\ \?\+?|\L<prefix>\?\+?)(?P<letters>\\p\{{L\}})\+\+?{_BEHIND}"
    rf"|(?P<prefix>\ \?\+?|\L<prefix>\?)(?:(?P<letters>\L<marked>)\+\+?{_BEHIND}"
    rf"|(?P<cased>\L<upper>\*\L<lower>\+)(?P<rest>{_BEHIND})\|(?P=prefix)\L<upper>\+\L<lower>\*(?P=rest))"
)
_MEMBER = regex.compile(
    rf"(?:{_NUMBERS}\|)?(?:(?P<contraction>{_CONTRACTION})\|)?(?:{_NUMBERS}\|)?(?:{_WORD})(?:\|{_NUMBERS})?"
    r"\|\ \?\+?(?P<others>\L<others>)\+\+?(?:(?P<trail>\L<trails>)\*\+?)?"
    r"\|(?P<tail>\\s\+\+?\$\|)?(?P<newlines>\\s\*\L<newline>\+?\|)?"
    r"\\s\+\(\?!(?P<before>\\S|\L<no_number>)\)\|\\s\+?\+?",
    prefix=[canonical(r"[^\r\n\p{L}\p{N}]")],
    marked=[canonical(r"[\p{L}\p{M}]")],
    upper=[canonical(UPPER)],
    lower=[canonical(LOWER)],
    others=[canonical(r"[^\s\p{L}\p{N}]"), canonical(r"[^\s\p{L}\p{M}\p{N}]")],
    trails=[canonical(r"[\r\n]"), canonical(r"[\r\n/]")],
    newline=[canonical(r"[\r\n]")],
    no_number=[canonical(r"[^\s\p{N}]")],
)
"""A member by its parts, possessive or not where that means the same."""
