"""Random members of the published family of patterns, each in one of its spellings."""

import random
from itertools import product

from variants.counting import patterns
from variants.counting.patterns import Slots

CONTRACTIONS = {
    patterns.EXACT: (
        "'(?:[sdmt]|ll|ve|re)",
        "'s|'t|'re|'ve|'m|'ll|'d",
        "(?:'(?:ll|re|ve)|'[stmd])",
    ),
    patterns.FOLDED: (
        "'(?i:[sdmt]|ll|ve|re)",
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        "(?i:'(?:ll|ve|re|s|d|m|t))",
    ),
    patterns.ASCII_FOLDED: (
        "'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])",
        "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])",
    ),
}
UPPER = (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{M}\p{Lo}\p{Lm}\p{Lt}\p{Lu}]")
TRAILS = {
    patterns.NO_TRAIL: "",
    patterns.NEWLINES: r"[\r\n]*",
    patterns.NEWLINES_AND_SLASHES: r"[\r\n/]*",
}


def all_slots() -> list[Slots]:
    """Every member, but for two with one meaning: a tail is one word only where newlines are."""
    flags, digits, trails = (False, True), (0, 1, 2, 3, 5), (0, 1, 2)
    contractions = (patterns.NO_CONTRACTION, *CONTRACTIONS)
    values = product(contractions, *[flags] * 4, digits, flags, flags, trails, flags, flags)

    members = []
    for slots in (Slots._make((patterns.FAMILY, *each, False)) for each in values):
        is_member = slots.contraction or not slots.behind
        has_tail = (slots.newlines and not slots.numbers_apart) or not slots.whole_tail
        if is_member and has_tail and not (slots.blank_numbers and slots.numbers_apart):
            members.append(slots)
    return members


def spelling(slots: Slots, chance: random.Random) -> str:
    """An expression with these slots: quantifiers are plain or possessive where that means the
    same.
    """

    def perhaps(text: str) -> str:
        return chance.choice(("", text))

    contraction = "" if not slots.contraction else chance.choice(CONTRACTIONS[slots.contraction])
    attached = f"(?:{contraction})?{perhaps('+')}" if slots.behind else ""
    first = f"{contraction}|" if contraction and not slots.behind else ""
    prefix = r"[^\r\n\p{L}\p{N}]?" if slots.prefix else chance.choice((" ?", "[ ]?", " ?+"))
    if slots.cased:
        upper = chance.choice(UPPER)
        word = f"{prefix}{upper}*{patterns.LOWER}+{attached}"
        word += f"|{prefix}{upper}+{patterns.LOWER}*{attached}"
    else:
        letters = r"[\p{L}\p{M}]" if slots.marks else chance.choice((r"\p{L}", r"\pL", r"[\p{L}]"))
        possessive = "" if slots.marks or not slots.prefix else perhaps("+")
        word = f"{prefix}{possessive}{letters}+{perhaps('+')}{attached}"

    width = (
        perhaps("{1}") if slots.digits == 1 else f"{{1,{slots.digits}}}" if slots.digits else "+"
    )
    blank = " ?" if slots.blank_numbers else ""
    number = rf"{blank}\p{{N}}{width}{perhaps('+') if width else ''}"
    marks = r"\p{M}" if slots.marks else ""
    others = rf" ?[^\s\p{{L}}\p{{N}}{marks}]+{perhaps('+')}{TRAILS[slots.trail]}"

    # without newlines a tail changes nothing, unless it ends at numbers as well
    may_have_tail = not slots.newlines and not slots.numbers_apart and chance.random() < 0.3
    tail = rf"\s+{perhaps('+')}$|" if slots.whole_tail or may_have_tail else ""
    newlines = chance.choice((r"\s*[\r\n]|", r"\s*[\r\n]+|")) if slots.newlines else ""
    before = r"\s+(?![^\s\p{N}])" if slots.numbers_apart else r"\s+(?!\S)"
    words = "|".join(chance.sample((word, number), 2))
    return f"{first}{words}|{others}|{tail}{newlines}{before}|" + chance.choice((r"\s", r"\s+"))
