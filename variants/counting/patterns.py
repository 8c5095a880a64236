"""Reading a regular expression as a member of the published family of patterns, which the compiled scanner runs.

The patterns of GPT-2, cl100k, o200k, Llama 3, Qwen, StarCoder 2 and most other byte-level tokenizers are one
alternation: contractions, words, numbers, other signs, spaces up to a newline, spaces. `slots_of` reads any spelling of
one into the slots below, or raises NotOfFamily with the part that it does not understand. Two spellings have the same
slots only if `regex` splits every text the same by both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from variants.contract import GPT2_LINES_PATTERN

FAMILY, LINE, DOCUMENT, BYTES, SUPERBPE = range(5)
NO_CONTRACTION, EXACT, FOLDED, ASCII_FOLDED = range(4)
NO_TRAIL, NEWLINES, NEWLINES_AND_SLASHES = range(3)

MOST_NUMBERS = 9
"""The longest words of numbers that the scanner counts off; longer ones are unlimited or not of the family."""


class NotOfFamily(ValueError):
    """The expression is not of the family, or its spelling cannot be read; the message names the part."""


class Slots(NamedTuple):
    """How the compiled scanner splits: one byte each, in the order of `Pattern` in scanner_patterns.hpp."""

    split: int = FAMILY
    contraction: int = NO_CONTRACTION
    """`'s` and its like: none, in lower case, in either case (then U+017F is an s, too), or in either case of ASCII."""
    behind: bool = False
    """A contraction belongs to the word directly before it, once; else it is the first alternative."""
    prefix: bool = False
    """A word may begin with `[^\\r\\n\\p{L}\\p{N}]`; else with a blank."""
    cased: bool = False
    """A word is UPPER*LOWER+ or UPPER+LOWER*, where marks and letters without case are both; else letters."""
    marks: bool = False
    """Marks are letters where a word is letters, and never an other sign."""
    digits: int = 0
    """At most so many numbers in a word; 0: any."""
    blank_numbers: bool = False
    """Numbers may begin with a blank."""
    numbers_apart: bool = False
    """Numbers are split off first, so that spaces before one end as they do at the end of the text."""
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
    contraction=FOLDED, behind=True, prefix=True, cased=True, digits=3, trail=NEWLINES_AND_SLASHES, newlines=True
)
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORD = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
BETWEEN = r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r/]*\n?| +(?!\S)"
EXACT_SPELLINGS: Final = {
    None: Slots(BYTES),
    r"(?s:.+)": Slots(DOCUMENT),
    r"[^\n]*\n|[^\n]+": Slots(LINE),
    GPT2_LINES_PATTERN: GPT2._replace(lines=True),
    BETWEEN + r"|[^\n]+?(?=\p{N}| ?[^\s\p{L}\p{N}]{2}| (?!\S)|(?![^\n]))\n?|\n": Slots(SUPERBPE),
    BETWEEN + r"|(?:(?!\p{N}| ?[^\s\p{L}\p{N}]{2}| (?!\S))[^\n])+\n?|\n": Slots(SUPERBPE),
    WORD + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r/]*\n?|[^\S\n]*[\r\n]|\s+(?!\S)|\s+": O200K._replace(
        contraction=NO_CONTRACTION, behind=False, lines=True
    ),
}
"""Patterns that are not of the family, and two of its members on lines, known by their text alone."""


@lru_cache(maxsize=64)
def slots_of(pattern: str | None) -> Slots:
    """How the scanner runs a pattern. Raises NotOfFamily."""
    exact = EXACT_SPELLINGS.get(pattern)
    if exact is not None:
        return exact
    assert pattern is not None
    return slots_of_alternatives(Expression(pattern).whole())


@lru_cache(maxsize=64)
def compiled(pattern: str | None) -> bytes | None:
    """The slots of a pattern as the scanner takes them, or None if it has no compiled form."""
    try:
        return bytes(slots_of(pattern))
    except NotOfFamily:
        return None


def splits_documents(pattern: str | None) -> bool:
    """Whether a compiled pattern splits documents: else a special token is the only place for a cut."""
    return slots_of(pattern).split not in (DOCUMENT, BYTES)


# --------------------
# From alternatives to slots.

CASES = frozenset((r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}"))
MARK, NUMBER, SPACE = frozenset((r"\p{M}",)), frozenset((r"\p{N}",)), frozenset((r"\s",))
CASELESS = MARK | {r"\p{Lm}", r"\p{Lo}"}
NEWLINE = frozenset("\r\n")
ENDLESS = 1 << 30


class Set(NamedTuple):
    """One character: of these classes and characters, or of none of them."""

    members: frozenset[str]
    negated: bool = False


class Group(NamedTuple):
    """Alternatives; with `folded`, in either case."""

    alternatives: list[list[Item]]
    folded: bool = False


class Before(NamedTuple):
    """`(?!SET)`."""

    unwanted: Set


class End(NamedTuple):
    """`$`."""


class Item(NamedTuple):
    """A quantifier and what it repeats."""

    of: Set | Group | Before | End
    least: int = 1
    most: int = 1
    possessive: bool = False

    def repeats(self, members: frozenset[str], least: int, most: int, *, negated: bool = False) -> bool:
        return self[:3] == (Set(members, negated), least, most)


class Part(NamedTuple):
    """What an alternative is for: one letter of ORDER; and the slots that it gives."""

    role: str
    slots: Mapping[str, int] = MappingProxyType({})
    strings: frozenset[str] = frozenset()


ORDER = re.compile("(?:(?:w|uv)n|n(?:w|uv))o(?P<whole_tail>t?)(?P<newlines>l?)t?bs")
"""Words (in two halves where they have cases), numbers, others, the tail, newlines, spaces before some, spaces."""


def slots_of_alternatives(alternatives: list[list[Item]]) -> Slots:
    parts = [part_of(alternative) for alternative in alternatives]
    ordered = ORDER.fullmatch("".join(part.role for part in parts if part.role != "c"))
    if ordered is None:
        raise NotOfFamily("the order of the alternatives")
    whole_tail = bool(ordered["whole_tail"] and ordered["newlines"])  # without newlines it changes nothing
    slots: dict[str, Any] = {"newlines": bool(ordered["newlines"]), "whole_tail": whole_tail}
    for part in parts:
        for name, value in part.slots.items():
            if slots.setdefault(name, value) != value:
                raise NotOfFamily(f"{name} of one alternative and of another")
    strings = contractions_tried(parts, prefix=slots["prefix"])
    if strings and slots["contraction"]:
        raise NotOfFamily("contractions in two places")
    if strings:
        slots["contraction"] = contraction_of(strings)
    if slots["numbers_apart"] and (slots["blank_numbers"] or whole_tail):
        raise NotOfFamily("numbers apart from blanks or from the tail")
    return Slots(**slots)


def contractions_tried(parts: list[Part], *, prefix: bool) -> frozenset[str]:
    """The contractions that are alternatives, but for those behind one that always takes their apostrophe.

    Others take it, and words do whose prefix it may be.
    """
    roles = "".join(part.role for part in parts)
    if prefix and re.search("uc+v", roles):
        raise NotOfFamily("contractions between the halves of a word")
    stop = min(roles.index(role) for role in ("wuo" if prefix else "o") if role in roles)
    if any(not part.strings <= IN_ASCII | {LONG_S} for part in parts):
        raise NotOfFamily("contractions")
    return frozenset().union(*(part.strings for part in parts[:stop]))


def part_of(items: list[Item]) -> Part:
    """What an alternative is for, by what it consists of."""
    if not items:
        raise NotOfFamily("an empty alternative")
    if isinstance(items[0].of, Group) or items[0].repeats(frozenset("'"), 1, 1):
        return Part("c", strings=strings_of(items))
    if isinstance(items[0].of, Set) and items[0].of.members == SPACE:
        return part_of_spaces(items)
    prefix, rest = (items[0], items[1:]) if items[0][1:3] == (0, 1) else (None, items)
    blank = prefix is not None and prefix.of == Set(frozenset(" "))
    if len(rest) == 1 and rest[0][:2] == (Set(NUMBER), 1) and (blank or prefix is None):
        most = 0 if rest[0].most == ENDLESS else rest[0].most
        if most > MOST_NUMBERS:
            raise NotOfFamily(f"words of {most} numbers")
        return Part("n", {"digits": most, "blank_numbers": blank})
    if blank and rest and isinstance(rest[0].of, Set) and rest[0].of.negated:
        return part_of_others(rest)
    if prefix is None:
        raise NotOfFamily("words without a prefix")
    return part_of_word(prefix, rest)


def part_of_word(prefix: Item, items: list[Item]) -> Part:
    slots: dict[str, int] = {"contraction": NO_CONTRACTION, "behind": False}
    if items and isinstance(items[-1].of, Group) and items[-1][1:3] == (0, 1):
        slots = {"contraction": contraction_of(strings_of([items[-1]._replace(least=1)])), "behind": True}
        items = items[:-1]
    upper, lower = Set(CASES - {r"\p{Ll}"} | MARK), Set(CASES - {r"\p{Lu}", r"\p{Lt}"} | MARK)
    shape = [item[:3] for item in items]
    if shape in ([(Set(CASES), 1, ENDLESS)], [(Set(CASES | MARK), 1, ENDLESS)]):
        role, slots["cased"], slots["marks"] = "w", False, shape[0][0] != Set(CASES)
    elif shape == [(upper, 0, ENDLESS), (lower, 1, ENDLESS)] and not items[0].possessive:
        role, slots["cased"] = "u", True
    elif shape == [(upper, 1, ENDLESS), (lower, 0, ENDLESS)]:
        role, slots["cased"] = "v", True
    else:
        raise NotOfFamily("a word")
    none_of = NEWLINE | CASES | NUMBER
    slots["prefix"] = prefix.of != Set(frozenset(" "))
    with_marks = bool(slots["cased"] or slots["marks"])
    if slots["prefix"] and prefix.of != Set(none_of, negated=True):
        if prefix.of != Set(none_of | MARK, negated=True) or not slots.get("marks"):
            raise NotOfFamily("a prefix")
    elif slots["prefix"] and prefix.possessive and with_marks:
        raise NotOfFamily("a possessive prefix that may be a mark")
    return Part(role, slots)


def part_of_others(items: list[Item]) -> Part:
    trails = {NEWLINE: NEWLINES, NEWLINE | {"/"}: NEWLINES_AND_SLASHES}
    trail = NO_TRAIL
    if len(items) == 2 and isinstance(items[1].of, Set) and not items[1].of.negated and items[1][1:3] == (0, ENDLESS):
        trail = trails.get(items[1].of.members, -1)
    for marks in (False, True):
        members = SPACE | CASES | NUMBER | (MARK if marks else frozenset())
        if items[0].repeats(members, 1, ENDLESS, negated=True) and (len(items) == 1 or trail > NO_TRAIL):
            return Part("o", {"marks": marks, "trail": trail})
    raise NotOfFamily("other signs")


def part_of_spaces(items: list[Item]) -> Part:
    some = items[0].repeats(SPACE, 1, ENDLESS)
    if len(items) == 1 and (some or items[0].repeats(SPACE, 1, 1)):
        return Part("s")
    if len(items) == 2 and some and items[1].of == End():
        return Part("t")
    if len(items) == 2 and some and isinstance(items[1].of, Before) and not items[0].possessive:
        for numbers_apart, members in ((False, SPACE), (True, SPACE | NUMBER)):
            if items[1].of.unwanted == Set(members, negated=True):
                return Part("b", {"numbers_apart": numbers_apart})
    newlines = len(items) == 2 and items[1][:2] == (Set(NEWLINE), 1) and items[1].most in (1, ENDLESS)
    if newlines and items[0] == Item(Set(SPACE), 0, ENDLESS):
        return Part("l")
    raise NotOfFamily("spaces")


def strings_of(items: list[Item], *, folded: bool = False) -> frozenset[str]:
    """All strings that an alternative matches; a contraction has few."""
    choices: list[frozenset[str]] = []
    for item in items:
        if item[1:3] != (1, 1) or not isinstance(item.of, (Set, Group)):
            raise NotOfFamily("contractions")
        if isinstance(item.of, Group):
            each = (strings_of(part, folded=folded or item.of.folded) for part in item.of.alternatives)
            choices.append(frozenset().union(*each))
        elif item.of.negated or not all(len(member) == 1 for member in item.of.members):
            raise NotOfFamily("contractions")
        else:
            choices.append(in_either_case(item.of.members) if folded else item.of.members)
    if prod(map(len, choices)) > MOST_STRINGS:
        raise NotOfFamily("contractions")
    return frozenset(map("".join, product(*choices)))


def in_either_case(characters: frozenset[str]) -> frozenset[str]:
    """As `regex` folds them: the long s, U+017F, is an s."""
    cases = {case for character in characters for case in (character, character.lower(), character.upper())}
    return frozenset(cases | {"\u017f"} if "s" in cases else cases)


MOST_STRINGS = 100
LONG_S = "'\u017f"
CONTRACTIONS = frozenset(("'s", "'d", "'m", "'t", "'ll", "'ve", "'re"))
IN_ASCII = frozenset(
    "'" + "".join(cases) for text in CONTRACTIONS for cases in product(*((sign, sign.upper()) for sign in text[1:]))
)


def contraction_of(strings: frozenset[str]) -> int:
    kinds = {CONTRACTIONS: EXACT, IN_ASCII: ASCII_FOLDED, IN_ASCII | {LONG_S}: FOLDED}
    if strings not in kinds:
        raise NotOfFamily("contractions")
    return kinds[strings]


# --------------------
# What an expression consists of, as far as the family needs it.

QUANTIFIERS = {"?": (0, 1), "*": (0, ENDLESS), "+": (1, ENDLESS)}
ESCAPED = {"r": "\r", "n": "\n", "t": "\t"}


class Expression:
    """A recursive reader of an expression: groups, sets, letters, `(?i:`, `(?!`, `$` and quantifiers."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def whole(self) -> list[list[Item]]:
        alternatives = self.alternatives()
        if self.at < len(self.text):
            raise NotOfFamily(f"{self.text[self.at :]!r}")
        while len(alternatives) == 1 and len(alternatives[0]) == 1:  # one group around all of it
            only = alternatives[0][0]
            if not isinstance(only.of, Group) or only.of.folded or only[1:] != (1, 1, False):
                break
            alternatives = only.of.alternatives
        return alternatives

    def take(self, text: str) -> bool:
        found = self.text.startswith(text, self.at)
        self.at += len(text) * found
        return found

    def next(self) -> str:
        if self.at >= len(self.text):
            raise NotOfFamily("an end where more was expected")
        self.at += 1
        return self.text[self.at - 1]

    def alternatives(self) -> list[list[Item]]:
        found: list[list[Item]] = [[]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.take("|"):
                found.append([])
            else:
                found[-1].append(self.item())
        return found

    def item(self) -> Item:
        atom = self.atom()
        if self.at == len(self.text) or self.text[self.at] not in "?*+{":
            return Item(atom)
        if isinstance(atom, (Before, End)):
            raise NotOfFamily("a quantifier behind what has no characters")
        least, most = self.quantifier()
        if self.take("?"):
            raise NotOfFamily("a lazy quantifier")
        return Item(atom, least, most, self.take("+"))

    def quantifier(self) -> tuple[int, int]:
        sign = self.next()
        if sign != "{":
            return QUANTIFIERS[sign]
        found = re.compile(r"([0-9]+)(?:(,)([0-9]*))?\}").match(self.text, self.at)
        if found is None:
            raise NotOfFamily("a quantifier")
        self.at = found.end()
        least, comma, most = found.groups()
        return int(least), int(most) if most else ENDLESS if comma else int(least)

    def atom(self) -> Set | Group | Before | End:
        if self.take("(?!"):
            alternatives = self.group()
            if len(alternatives) == 1 and len(alternatives[0]) == 1:
                unwanted = alternatives[0][0]
                if isinstance(unwanted.of, Set) and unwanted[1:] == (1, 1, False):
                    return Before(unwanted.of)
            raise NotOfFamily("a look-ahead")
        for opening, folded in (("(?:", False), ("(?i:", True)):
            if self.take(opening):
                return Group(self.group(), folded)
        if self.take("["):
            return self.set()
        sign = self.next()
        if sign == "\\":
            return self.escaped()
        if sign == "$":
            return End()
        if sign in "(){}[]^.?*+":
            raise NotOfFamily(f"{self.text[self.at - 1 :][:8]!r}")
        return Set(frozenset(sign))

    def group(self) -> list[list[Item]]:
        alternatives = self.alternatives()
        if not self.take(")"):
            raise NotOfFamily("a group without its end")
        return alternatives

    def set(self) -> Set:
        negated = self.take("^")
        members: set[str] = set()
        while not members or not self.take("]"):
            sign = self.next()
            if sign == "[" or self.text[self.at - 1 :][:2] in ("&&", "--", "||", "~~"):
                raise NotOfFamily("a set operation")
            if sign in "-]":
                raise NotOfFamily("a range, or an empty set")
            part = self.escaped() if sign == "\\" else Set(frozenset(sign))
            if part.negated:
                raise NotOfFamily(r"\S within a set")
            members |= part.members
        return Set(frozenset(members.difference(" \t\r\n") if r"\s" in members else members), negated)

    def escaped(self) -> Set:
        sign = self.next()
        if sign in ESCAPED:
            return Set(frozenset(ESCAPED[sign]))
        if sign in "sS":
            return Set(SPACE, sign == "S")
        if sign == "p":
            return Set(self.property())
        if sign.isalnum():
            raise NotOfFamily(f"\\{sign}")
        return Set(frozenset(sign))

    def property(self) -> frozenset[str]:
        name = self.next()
        if name == "{":
            name, _, _ = self.text[self.at :].partition("}")
            self.at += len(name) + 1
        if name == "L":
            return CASES
        members = frozenset((rf"\p{{{name}}}",))
        if not members <= CASES | MARK | NUMBER:
            raise NotOfFamily(rf"\p{{{name}}}")
        return members
