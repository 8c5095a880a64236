"""Text to compare tokenizers on: many scripts, every kind of blank and line end, contractions, special tokens whole
and truncated, random characters, random bytes. The same seed gives the same text everywhere.

Random characters are those of Unicode 3.2, so engines with older tables than ours have them as well.
"""

from __future__ import annotations

import functools
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence

PART = 1 << 16
SCRIPTS = (
    "a-zA-Zà-öø-ÿā-ſ|α-ωΑ-Ρ|а-яА-Я|ա-ֆ|א-ת|ء-غف-ي\u064b-\u0652|ܐ-ܬ|क-हा-ौ\u094d|ক-না-ী|க-ஙஜா-ூ|క-నా-ౄ|ක-න|ก-ฮะ-\u0e39|"
    "ກ-ຂະ-\u0eb9|ཀ-ཇ\u0f71-\u0f74|က-အာ-ဲ|ა-ჰ|가-힣|ሀ-ሆለ-ቆ|Ꭰ-Ᏼ|ក-ហា-ៅ|ᠠ-ᡷ|ぁ-ゔ|ァ-ヺ|一-龥|𐐀-𐐥|𐌰-𐍂"
)
"""Ranges of letters of 27 scripts, divided by bars."""
DIGITS = "0123456789٣٤५६७๒四Ⅷ½²①"
SIGNS = ".,;:!?-–—…'\"’‘“”()[]{}<>/\\|@#$%^&*_+=~`«»¿¡、。「」・€£¥§©®™°±×÷→∀∑"
STRANGE = (
    "  |   |\t|\n|\n\n|\r\n|\r| \n|\n |\t\t|\v|\f|\u00a0|\u3000|\u2003|"
    "\u2028|\u0085|\u200b|\ufeff|\u1680|\u180e| \u00a0 |\x1c"
)
BLANKS = [" "] * 60 + STRANGE.split("|")
ENDINGS = ["'s", "'S", "'t", "'re", "'RE", "'ve", "'m", "'ll", "'LL", "'d", "'D", "'ſ", "’s", "'", "''"]
CLUSTERS = ["e\u0301", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "☺\ufe0f", "ﬁ", "ǅ", "İ", "ß", "ẞ"]
CLUSTERS += ["\u0301", "x\u20e3", "\x00", "\x7f", "\ufffd"]


def mixed_parts(seed: int, size: int, special_tokens: Sequence[str] = ()) -> Iterator[bytes]:
    """Parts of 64 KiB, `size` bytes in all; every eighth is random bytes."""
    chance = random.Random(seed)
    scripts = [_letters(ranges) for ranges in SCRIPTS.split("|")]
    others = [part for text in special_tokens for part in (text, text[:-1], text[1:]) if part]
    for number, start in enumerate(range(0, size, PART), 1):
        room = min(PART, size - start)
        yield chance.randbytes(room) if number % 8 == 0 else _text(chance, room, scripts, others)


def _text(chance: random.Random, room: int, scripts: Sequence[str], others: Sequence[str]) -> bytes:
    text = bytearray()
    while len(text) < room:
        text += _piece(chance, scripts, others).encode()
    return text[:room].decode(errors="ignore").encode().ljust(room, b".")


def _piece(chance: random.Random, scripts: Sequence[str], others: Sequence[str]) -> str:
    """A word with its ending and the blank after it, or something else that occurs in texts."""
    kind = chance.random()
    if kind < 0.70:
        script = scripts[0] if chance.random() < 0.3 else chance.choice(scripts)
        ending = chance.choice(ENDINGS) if chance.random() < 0.1 else ""
        return "".join(chance.choices(script, k=chance.randint(1, 9))) + ending + chance.choice(BLANKS)
    if kind < 0.90:
        signs, blanks = (DIGITS, BLANKS) if kind < 0.80 else (SIGNS, ["", *BLANKS[50:]])
        return "".join(chance.choices(signs, k=chance.randint(1, 5))) + chance.choice(blanks)
    if kind < 0.94:
        return chance.choice(CLUSTERS)
    if kind < 0.98 or not others:
        return "".join(chance.choices(_assigned(), k=chance.randint(1, 3)))
    return chance.choice(others)


def _letters(ranges: str) -> str:
    """The characters of ranges such as `a-zA-Z`, or of single characters."""
    pairs = re.findall("(.)-(.)|(.)", ranges)
    return "".join(single or "".join(map(chr, range(ord(first), ord(last) + 1))) for first, last, single in pairs)


@functools.cache
def _assigned() -> list[str]:
    """Every character that Unicode 3.2 had assigned."""
    category = unicodedata.ucd_3_2_0.category
    return [character for character in map(chr, range(0x11_0000)) if category(character) not in ("Cn", "Cs", "Co")]
