r"""Two dialects of regular expressions, and what of one means the same in the other.

Our patterns are written for Python's `regex`; tokenizers 0.x compiles them with Oniguruma's Ruby.
What both read alike goes through unchanged. What they read differently becomes explicit classes, by
a table, and any other escape of a letter is refused by name. Characters that are newer than the
tables of Oniguruma stay different.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import regex

WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}"
JOINERS, NUMBERS = "\u200c\u200d", "²³¹¼½¾"


class Dialect(NamedTuple):
    """How one dialect is written in the other."""

    flags: Mapping[str, str]
    anchors: Mapping[str, str]
    bare: Mapping[str, str]
    """What is in a class that is written outside of a set, where it differs from `members`."""
    members: Mapping[str, str]
    """What is in a class that is written in a set."""
    nested: bool
    """Whether a set may have another in it."""
    operators: tuple[str, ...] = ()
    """What joins two sets in one dialect only."""


FROM_RUBY = Dialect(
    flags={"i": "i", "m": "s"},
    anchors={"$": "(?m:$)", "^": "(?m:^)", r"\Z": "$", r"\z": r"\Z", r"\A": r"\A"},
    bare={r"\w": WORD + NUMBERS},
    members={
        r"\w": WORD,
        r"\h": "0-9a-fA-F",
        "[:word:]": WORD,
        "[:alnum:]": r"\p{Alphabetic}\p{Nd}",
        "[:digit:]": r"\p{Nd}",
        "[:punct:]": r"\p{P}\p{S}",
    },
    nested=True,
)
TO_RUBY = Dialect(
    flags={"i": "i", "s": "m"},
    anchors={"$": r"\Z", "^": r"\A", r"\Z": r"\z", r"\A": r"\A", "(?m:$)": "$", "(?m:^)": "^"},
    bare={},
    members={
        r"\w": WORD + JOINERS,
        "[:word:]": WORD + JOINERS,
        "[:alnum:]": r"\p{Alphabetic}0-9",
        "[:digit:]": "0-9",
        "[:punct:]": r"[\p{P}\p{S}&&[^\p{Alphabetic}]]",
    },
    nested=False,
    operators=("&&",),
)
OPERATORS = ("--", "||", "~~")
"""What joins two sets in version 1 of `regex`, and is literal in Oniguruma."""
ALIKE = frozenset("dDsSnrtvfa")
"""The letters of escapes that both read alike, in a set or not."""
LETTERS_OR_MARKS = r"\\[pP]\{\^?[LM][a-z]?\}|\\[hH]"
"""What they read differently without regard to case; \\p{L} alone is the same."""
ANY_CASE = regex.compile(r"[\x00-@\[-`{-\x7f]|[a-hj-zA-HJ-Z]|[0-9]-[0-9]|\\[^a-zA-Z]|\\[dsnrtfv]")
"""The members of a set that both read alike without regard to case."""
LIGATURES = frozenset({"ss", "st", "ff", "fi", "fl"})
"""Letters that Oniguruma finds in one character, such as ß, without regard to case."""

ESCAPE = r"\\[pP]\{\^?[^{}]*\}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
POSIX = r"\[:\^?\w+:\]"
ONE = r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^a-zA-Z]|\\[nrtfva]|[^\\\]])"
MEMBER = regex.compile(rf"{POSIX}|{ONE}-{ONE}|{ESCAPE}|.", regex.S)
GROUP = (
    r"\(\?(?P<on>[a-zA-Z0-9]*)(?:-(?P<off>[a-z]+))?(?P<end>[:)])"
    r"|\((?:\?(?:<?[=!]|[>#]|P?<\w+>))?(?P<odd>\?)?"
)
PROPERTY = regex.compile(r"\\[pP]\{\^?(?!(?i:word|xdigit|is\w+|in\w+)\})\w+\}")
NESTED_SET = rf"(?P<set>\[\^?\]?(?:{ESCAPE}|{POSIX}|(?&set)|[^\]\\])*\])"
FLAT_SET = rf"(?P<set>\[\^?\]?(?:{ESCAPE}|{POSIX}|[^\]\\])*\])"

NESTED = regex.compile(r"(?<!\\)\[\^?\]?(?:\\.|[^\]\[\\])*?(?:&&|\[)")
"""A set with another in it, or what two have in common."""


def to_ruby(pattern: str) -> str:
    r"""The pattern as Oniguruma reads it. Raises ValueError for what it cannot say.

    >>> print(to_ruby(r"(?s:.+)$|[$^]\$|\w"))
    (?m:.+)\Z|[$^]\$|[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}‌‍]
    """
    version = regex.match(r"\(\?V([01])\)", pattern)
    if version is None:
        return _Translation(TO_RUBY).of(pattern)
    is_nested = version[1] == "1"
    operators = OPERATORS if is_nested else TO_RUBY.operators
    dialect = TO_RUBY._replace(nested=is_nested, operators=operators)
    return _Translation(dialect).of(pattern[version.end() :])


def from_ruby(pattern: str) -> str:
    r"""A pattern of Oniguruma as `regex` reads it. Raises ValueError for what it cannot say.

    >>> print(from_ruby(r"(?m:.+)\z|(?i:'s|$)|[\h]"))
    (?s:.+)\Z|(?i:'s|(?m:$))|[0-9a-fA-F]
    """
    expression = _Translation(FROM_RUBY).of(pattern)
    if NESTED.search(expression) is None:
        return expression
    # Sets of sets, which Oniguruma always reads, are of version 1 in `regex`, as are more operators.
    return "(?V1)" + _Translation(FROM_RUBY._replace(operators=OPERATORS)).of(pattern)


class _Translation:
    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.folds = [False]  # for each open group, whether case is disregarded in it
        self.last_letter = ""

    def of(self, pattern: str) -> str:
        anchors = "|".join(map(regex.escape, sorted(self.dialect.anchors, key=len, reverse=True)))
        one_set = NESTED_SET if self.dialect.nested else FLAT_SET
        parts = regex.compile(rf"(?P<anchor>{anchors})|{one_set}|{GROUP}|{ESCAPE}|.", regex.S)
        return "".join(map(self._part, parts.finditer(pattern)))

    def _part(self, match: regex.Match[str]) -> str:
        text, last_letter, self.last_letter = match[0], self.last_letter, ""
        if match["anchor"]:
            return self.dialect.anchors[text]
        if match["set"]:
            return self._set(text)
        if text.startswith("("):
            return self._group(match)
        if text == ")":
            if len(self.folds) > 1:
                self.folds.pop()
            return text
        if text.startswith("\\"):
            return self._escape(text)
        return self._literal(text, last_letter)

    def _group(self, match: regex.Match[str]) -> str:
        fold = self.folds[-1]
        if match["odd"]:
            raise self._wrong(f"the group {match.string[match.start() :][:4]}")
        if match["end"] is None:
            self.folds.append(fold)
            return match[0].replace("(?P<", "(?<")

        off = match["off"] or ""
        for flag in match["on"] + off:
            if flag not in self.dialect.flags:
                raise self._wrong(f"the flag {flag}")
        fold = "i" in match["on"] or (fold and "i" not in off)
        if match["end"] == ":":
            self.folds.append(fold)
        elif match.start():
            raise self._wrong(f"{match[0]} behind the beginning")
        else:
            self.folds[-1] = fold
        return "".join(self.dialect.flags.get(letter, letter) for letter in match[0])

    def _escape(self, text: str) -> str:
        """A class or another escape, outside of a set."""
        negated = text[1].isupper()
        name = text.lower() if negated else text
        if self.folds[-1] and regex.match(LETTERS_OR_MARKS, text) and text != r"\p{L}":
            raise self._wrong(f"{text} without regard to case")
        members = self.dialect.bare.get(name) or self.dialect.members.get(name)
        if members is not None:
            written = f"[{'^' * negated}{members}]"
            return f"(?-i:{written})" if self.folds[-1] else written
        return self._same(text)

    def _same(self, text: str) -> str:
        """An escape that both read alike."""
        letter = text[1]
        is_property = PROPERTY.fullmatch(text) is not None
        is_number = letter in "xu" and len(text) > 2
        if not letter.isalpha() or letter in ALIKE or is_property or is_number:
            return text
        raise self._wrong(text)

    def _literal(self, text: str, last_letter: str) -> str:
        if self.folds[-1]:
            letters = last_letter + text
            is_odd = text.lower() != text.upper() and (not text.isascii() or text in "iI")
            if is_odd or letters.lower() in LIGATURES:
                raise self._wrong(f"{letters} without regard to case")
            self.last_letter = text
        return text

    def _set(self, text: str) -> str:
        """A set with its members; one in it is read as members, too."""
        opening = "[^" if text.startswith("[^") else "["
        members = MEMBER.findall(text[len(opening) : -1])
        for operator in self.dialect.operators:
            if operator in text:
                raise self._wrong(f"{operator} in a set")

        if self.folds[-1] and not all(map(ANY_CASE.fullmatch, members)):
            raise self._wrong(f"{text} without regard to case")
        return opening + "".join(map(self._member, members)) + "]"

    def _member(self, member: str) -> str:
        """A member of a set, such as a-z, a class or a letter."""
        positive = member.replace("[:^", "[:")
        if member.startswith("\\") and member[1].isupper():
            positive = member.lower()
        if (members := self.dialect.members.get(positive)) is not None:
            return members if positive == member else f"[^{members}]"
        if member.startswith("\\"):
            return self._same(member)
        if member.startswith("[:"):
            return member
        if member == "-":  # behind a class it would begin a range
            return r"\-"
        return member if self.dialect.nested else regex.sub(r"(?<!\\)\[", r"\[", member)

    def _wrong(self, what: str) -> ValueError:
        other = "ours" if self.dialect.flags is FROM_RUBY.flags else "tokenizers"
        return ValueError(f"its pattern has {what}, which {other} reads differently")
