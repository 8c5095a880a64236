"""Text to compare tokenizers on: many scripts, every kind of blank and line end, contractions, special tokens whole
and truncated, random characters, random bytes. The same seed gives the same text everywhere.

Random characters are those of Unicode 3.2, so engines with older tables than ours have them as well.
"""

from __future__ import annotations

import functools
import random
import unicodedata
from collections.abc import Iterator, Sequence

PART = 1 << 16
SCRIPTS = (
    "a-z A-Z à-ö ø-ÿ ā-ſ|α-ω Α-Ρ|а-я А-Я|ա-ֆ|א-ת|ء-غ ف-ي \u064b-\u0652|ܐ-ܬ|क-ह ा-ौ \u094d|ক-ন া-ী|"
    "க-ஙஜ ா-ூ|క-న ా-ౄ|ක-න|ก-ฮ ะ-\u0e39|ກ-ຂ ະ-\u0eb9|ཀ-ཇ \u0f71-\u0f74|က-အ ာ-ဲ|ა-ჰ|가-힣|ሀ-ሆ ለ-ቆ|Ꭰ-Ᏼ|"
    "ក-ហ ា-ៅ|ᠠ-ᡷ|ぁ-ゔ|ァ-ヺ|一-龥|𐐀-𐐥|𐌰-𐍂"
)
"""Ranges of letters of 27 scripts, divided by bars."""
DIGITS = "0123456789٣٤५६৭๒四Ⅷ½²①"
SIGNS = ".,;:!?-–—…'\"’‘“”()[]{}<>/\\|@#$%^&*_+=~`«»¿¡、。「」・€£¥§©®™°±×÷→∀∑"
BLANKS = [" "] * 60 + ["  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\t\t", "\v", "\f"]
BLANKS += ["\u00a0", "\u3000", "\u2003", "\u2028", "\u0085", "\u200b", "\ufeff", "\u1680", "\u180e", " \u00a0 ", "\x1c"]
ENDINGS = ["'s", "'S", "'t", "'re", "'RE", "'ve", "'m", "'ll", "'LL", "'d", "'D", "'ſ", "’s", "'", "''"]
CLUSTERS = ["e\u0301", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "☺\ufe0f", "ﬁ", "ǅ", "İ", "ß", "ẞ"]
CLUSTERS += ["\u0301", "x\u20e3", "\x00", "\x7f", "\ufffd"]


def mixed_parts(seed: int, size: int, special_tokens: Sequence[str] = ()) -> Iterator[bytes]:
    """Parts of some 64 kB, up to `size` bytes together; every eighth is random bytes."""
    chance = random.Random(seed)
    scripts = [_letters(ranges) for ranges in SCRIPTS.split("|")]
    assigned = _assigned()
    specials = [part for text in special_tokens for part in (text, text[:-1], text[1:]) if part]
    made = number = 0
    while made < size:
        room = min(PART, size - made)
        number += 1
        part = chance.randbytes(room) if number % 8 == 0 else _text(chance, room, scripts, assigned, specials)
        yield part
        made += len(part)


def _text(
    chance: random.Random, room: int, scripts: Sequence[str], assigned: Sequence[str], specials: Sequence[str]
) -> bytes:
    pieces: list[str] = []
    size = 0
    while size < room:
        piece = _piece(chance, scripts, assigned, specials)
        pieces.append(piece)
        size += len(piece.encode())
    while size > room:
        size -= len(pieces.pop().encode())
    return "".join(pieces).encode() + b"." * (room - size)


def _piece(chance: random.Random, scripts: Sequence[str], assigned: Sequence[str], specials: Sequence[str]) -> str:
    """A word with its ending and the blank after it, or something else that occurs in texts."""
    kind = chance.random()
    if kind < 0.70:
        script = scripts[0] if chance.random() < 0.3 else chance.choice(scripts)
        word = "".join(chance.choices(script, k=chance.randint(1, 9)))
        ending = chance.choice(ENDINGS) if chance.random() < 0.1 else ""
        return word + ending + chance.choice(BLANKS)
    if kind < 0.80:
        return "".join(chance.choices(DIGITS, k=chance.randint(1, 6))) + chance.choice(BLANKS)
    if kind < 0.90:
        return "".join(chance.choices(SIGNS, k=chance.randint(1, 3))) + chance.choice(["", *BLANKS[-30:]])
    if kind < 0.94:
        return chance.choice(CLUSTERS)
    if kind < 0.98 or not specials:
        return "".join(chance.choices(assigned, k=chance.randint(1, 3)))
    return chance.choice(specials)


def _letters(ranges: str) -> str:
    """The characters of ranges such as `a-z`, separated by blanks."""
    letters = ""
    for part in ranges.split():
        for place, character in enumerate(part):
            if character == "-" and place:
                letters += "".join(map(chr, range(ord(part[place - 1]) + 1, ord(part[place + 1]))))
            else:
                letters += character
    return letters


@functools.cache
def _assigned() -> list[str]:
    """Every character that Unicode 3.2 had assigned."""
    category = unicodedata.ucd_3_2_0.category
    return [character for character in map(chr, range(0x11_0000)) if category(character) not in ("Cn", "Cs", "Co")]
