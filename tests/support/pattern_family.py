"""Random members of the published family of patterns, each in one of its spellings."""

from __future__ import annotations

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
TRAILS = {
    patterns.NO_TRAIL: "",
    patterns.NEWLINES: r"[\r\n]*",
    patterns.NEWLINES_AND_SLASHES: r"[\r\n/]*",
}


def all_slots() -> list[Slots]:
    """Every member, but for two with one meaning: a tail is one word only where newlines are."""
    contractions = [(patterns.NO_CONTRACTION, False), *product((1, 2, 3), (False, True))]
    spaces = [(False, False), (True, False), (True, True)]
    numbers = [
        *product((0, 1, 2, 3, 5), (False, True), (False,)),
        *product((0, 1, 2, 3, 5), (False,), (True,)),
    ]
    words = product((False, True), repeat=3)
    return [
        Slots(
            patterns.FAMILY,
            contraction,
            behind,
            prefix,
            cased,
            marks,
            *number,
            trail,
            newlines,
            tail,
        )
        for (contraction, behind), (prefix, cased, marks), number, trail, (
            newlines,
            tail,
        ) in product(contractions, words, numbers, (0, 1, 2), spaces)
        if not (number[2] and tail)
    ]


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
        upper, lower = (
            chance.choice((r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{M}\p{Lo}\p{Lm}\p{Lt}\p{Lu}]")),
            patterns.LOWER,
        )
        word = f"{prefix}{upper}*{lower}+{attached}|{prefix}{upper}+{lower}*{attached}"
    else:
        letters = r"[\p{L}\p{M}]" if slots.marks else chance.choice((r"\p{L}", r"\pL", r"[\p{L}]"))
        word = f"{prefix}{perhaps('+') if not slots.marks and slots.prefix else ''}{letters}+{perhaps('+')}{attached}"
    blank = " ?" if slots.blank_numbers else ""
    width = (
        "+" if not slots.digits else f"{{1,{slots.digits}}}" if slots.digits > 1 else perhaps("{1}")
    )
    number = rf"{blank}\p{{N}}{width}{perhaps('+') if width else ''}"
    marks = r"\p{M}" if slots.marks else ""
    others = rf" ?[^\s\p{{L}}\p{{N}}{marks}]+{perhaps('+')}{TRAILS[slots.trail]}"
    tail = (
        rf"\s+{perhaps('+')}$|"
        if slots.whole_tail or (not slots.newlines and chance.random() < 0.3)
        else ""
    )
    newlines = chance.choice((r"\s*[\r\n]|", r"\s*[\r\n]+|")) if slots.newlines else ""
    before = r"\s+(?![^\s\p{N}])" if slots.numbers_apart else r"\s+(?!\S)"
    if slots.numbers_apart and tail and not slots.whole_tail:
        tail = ""  # a tail ends at numbers as well
    words = f"{word}|{number}" if chance.random() < 0.5 else f"{number}|{word}"
    return f"{first}{words}|{others}|{tail}{newlines}{before}|" + chance.choice((r"\s", r"\s+"))
