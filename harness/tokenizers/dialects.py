r"""Two dialects of regular expressions: what of one means the same in the other.

Our patterns are written for Python's `regex`; tokenizers 0.x compiles them with Oniguruma's Ruby.
Parts that both read alike stay, a table spells some others as explicit classes, and the rest is
refused by name. Characters that are newer than the tables of Oniguruma stay different.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import regex

from harness.common.errors import Refusal

WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
JOINERS, NUMBERS, HEXADECIMAL = "\u200c\u200d", "²³¹¼½¾", "0-9a-fA-F"


class Dialect(NamedTuple):
    """Who reads the rest differently, and how parts outside of sets and members of sets are spelled
    in the other dialect.
    """

    reader: str
    parts: Mapping[str, str]
    members: Mapping[str, str]


def with_negations(classes: Mapping[str, str]) -> dict[str, str]:
    r"""The members of classes such as \w, and of \W; a hyphen behind a class would begin a range."""
    members = {"-": r"\-"}
    for name, positive in classes.items():
        negated = name.replace("[:", "[:^") if name.startswith("[") else name.upper()
        members |= {name: positive, negated: f"[^{positive}]"}
    return members


FROM_RUBY = Dialect(
    "ours",
    parts={
        "$": "(?m:$)",
        "^": "(?m:^)",
        r"\Z": "$",
        r"\z": r"\Z",
        r"\A": r"\A",
        "(?m:": "(?s:",
        r"\w": f"[{WORD}{NUMBERS}]",
        r"\W": f"[^{WORD}{NUMBERS}]",
        r"\h": f"[{HEXADECIMAL}]",
        r"\H": f"[^{HEXADECIMAL}]",
    },
    members=with_negations(
        {
            r"\w": WORD,
            r"\h": HEXADECIMAL,
            "[:word:]": WORD,
            "[:alnum:]": r"\p{Alphabetic}\p{Nd}",
            "[:digit:]": r"\p{Nd}",
            "[:punct:]": r"\p{P}\p{S}",
        }
    ),
)
TO_RUBY = Dialect(
    "tokenizers",
    parts={
        "$": r"\Z",
        "^": r"\A",
        r"\Z": r"\z",
        r"\A": r"\A",
        "(?s:": "(?m:",
        "(?m:$)": "$",
        "(?m:^)": "^",
        r"\w": f"[{WORD}{JOINERS}]",
        r"\W": f"[^{WORD}{JOINERS}]",
    },
    members=with_negations(
        {
            r"\w": WORD + JOINERS,
            "[:word:]": WORD + JOINERS,
            "[:alnum:]": r"\p{Alphabetic}0-9",
            "[:digit:]": "0-9",
            "[:punct:]": r"[\p{P}\p{S}&&[^\p{Alphabetic}]]",
        }
    ),
)
OPERATORS = ("--", "||", "~~")
"""What joins two sets in version 1 of `regex`, and is literal in Oniguruma."""

ESCAPE = r"\\[pP]\{[^{}]*\}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
POSIX = r"\[:\^?\w+:\]"
SET = rf"(?<set>\[\^?\]?(?:{ESCAPE}|{POSIX}|(?&set)|[^\]\\])*\])"
ONE = r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^a-zA-Z]|\\[nrtfva]|[^\\\]\[])"
MEMBER = regex.compile(rf"{POSIX}|{ONE}-{ONE}|{ESCAPE}|.", regex.S)
# Both find the same letters for these without regard to case, if no two are a ligature such as ß.
ANY_CASE = r"\(\?i:(?:(?!(?i:s[st]|f[fl]))[a-hj-zA-HJ-Z0-9' |]|\[[a-hj-zA-HJ-Z]+\])*\)"
GROUP = r"\((?:\?(?:<?[=!]|[^():=!]*?[:>)])?)?"
COUNTED_TWICE = r"\{[\d,]+\}\+|\{\d+\}\?"
PART = regex.compile(rf"{SET}|{ANY_CASE}|\(\?m:[$^]\)|{GROUP}|{COUNTED_TWICE}|{ESCAPE}|.", regex.S)
SAME_ESCAPE = (
    r"\\[dDsSnrtvfa]|\\[^a-zA-Z0-9]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    r"|\\[pP]\{\^?(?!(?i:word|xdigit|is\w+|in\w+)\})\w+\}"
)
SAME = regex.compile(rf"{ANY_CASE}|\((?:\?(?:<?[=!]|[:>]))?|{SAME_ESCAPE}|[^\\(\[]", regex.S)
SAME_MEMBER = regex.compile(rf"{POSIX}|{ONE}-{ONE}|{SAME_ESCAPE}|[^\\]", regex.S)
NESTED = regex.compile(r"(?<!\\)\[\^?\]?(?:\\.|[^\]\[\\])*?(?:&&|\[)")
"""A set with another in it, or what two have in common."""


def compiled_pattern(pattern: str | None) -> regex.Pattern[str] | None:
    """A pattern as `regex` has it. Raises Refusal if it is not a regular expression."""
    if pattern is None:
        return None
    try:
        return regex.compile(pattern)
    except (regex.error, ValueError, RecursionError, OverflowError, MemoryError) as error:
        raise Refusal(f"pattern {pattern[:80]!r} is not a regular expression: {error}") from error


def to_ruby(pattern: str) -> str:
    r"""The pattern as Oniguruma reads it. Raises ValueError for what it cannot say.

    >>> print(to_ruby(r"(?s:.+)$|[$^]\$|\w"))
    (?m:.+)\Z|[$^]\$|[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}‌‍]
    """
    expression = pattern.removeprefix("(?V1)")
    return _translated(expression, TO_RUBY, is_nested=expression != pattern)


def from_ruby(pattern: str) -> str:
    r"""A pattern of Oniguruma as `regex` reads it. Raises ValueError for what it cannot say.

    >>> print(from_ruby(r"(?m:.+)\z|(?i:'s|t)$|[\h]"))
    (?s:.+)\Z|(?i:'s|t)(?m:$)|[0-9a-fA-F]
    """
    expression = _translated(pattern, FROM_RUBY, is_nested=True)
    # Sets of sets, which Oniguruma always reads, are of version 1 in `regex`.
    return f"(?V1){expression}" if NESTED.search(expression) else expression


def _translated(pattern: str, dialect: Dialect, is_nested: bool) -> str:
    written = []
    for match in PART.finditer(pattern):
        part = match[0]
        if match["set"]:
            written.append(_set(part, dialect, is_nested))
        elif part in dialect.parts or SAME.fullmatch(part):
            written.append(dialect.parts.get(part, part))
        else:
            raise _differs(part, dialect)
    return "".join(written)


def _set(text: str, dialect: Dialect, is_nested: bool) -> str:
    for operator in OPERATORS if is_nested else (*OPERATORS, "&&"):
        if operator in text:
            raise _differs(f"{operator} in a set", dialect)

    members = []
    for member in MEMBER.findall(text[1:-1]):
        is_known = member in dialect.members or SAME_MEMBER.fullmatch(member)
        if not is_known or (member == "[" and not is_nested):
            raise _differs(f"{member} in a set", dialect)
        members.append(dialect.members.get(member, member))
    return f"[{''.join(members)}]"


def _differs(what: str, dialect: Dialect) -> ValueError:
    return ValueError(f"its pattern has {what}, which {dialect.reader} reads differently")
