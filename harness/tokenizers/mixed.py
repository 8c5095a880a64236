"""Generated text for comparing engines: many scripts, every kind of space and line end,
contractions, special tokens whole and truncated, random characters, random bytes.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

PART = 1 << 16


def repeated(table: Mapping[int, Sequence[Any]]) -> list[Any]:
    """Every value of a table as many times as its weight says."""
    return [value for weight, values in table.items() for value in [*values] * weight]


DIGITS = "0123456789٣٤५६７๒四Ⅷ½²①"
SIGNS = ".,;:!?-–—…'\"’‘“”()[]{}<>/\\|@#$%^&*_+=~`«»¿¡、。「」・€£¥§©®™°±×÷→∀∑"
CLUSTERS = (
    "e\u0301 👩\u200d👩\u200d👧 🇩🇪 👍🏽 ☺\ufe0f ﬁ ǅ İ ß ẞ \u0301 x\u20e3 \x00 \x7f \ufffd "
    # word characters to one engine and not to another, and letters with two cases in one of them
    "می\u200cروم क्\u200dष ² ³ ¹ ¼ ½ ¾ Ⓐ \u212a \u0131 \u0345"
)
STRANGE = (
    "  |   |\t|\n|\n\n|\r\n|\r| \n|\n |\t\t|\v|\f|\u00a0|\u3000|\u2003|"
    "\u2028|\u0085|\u200b|\ufeff|\u1680|\u180e| \u00a0 |\x1c"
)
BLANKS = repeated({60: [" "], 20: [""], 1: STRANGE.split("|")})
CONTRACTIONS = "'s 'S 't 're 'RE 've 'm 'll 'LL 'd 'D 'ſ ’s ' ''"
ENDINGS = repeated({135: [""], 1: CONTRACTIONS.split()})


def mixed_parts(size: int, special_tokens: Sequence[str] = ()) -> Iterator[bytes]:
    """Parts of 64 KiB, `size` bytes in all; every eighth is random bytes."""
    chance, alphabets = random.Random(0), alphabets_with(special_tokens)

    for number, start in enumerate(range(0, size, PART), 1):
        room = min(PART, size - start)
        if number % 8 == 0:
            yield chance.randbytes(room)
            continue

        text = bytearray()
        while len(text) < room:
            signs = chance.choices(chance.choice(alphabets), k=chance.randint(1, 6))
            text += "".join([*signs, chance.choice(ENDINGS), chance.choice(BLANKS)]).encode()
        yield text[:room].decode(errors="ignore").encode().ljust(room, b".")


def alphabets_with(special_tokens: Sequence[str]) -> list[Sequence[str]]:
    """What words consist of, the common alphabets several times.

    Random characters are those of Unicode 3.2, so engines with older tables than ours have them as
    well. Every 128 letters are about one script; behind the last alphabets are Chinese, Korean and
    Yi.
    """
    category = unicodedata.ucd_3_2_0.category
    assigned = [
        sign for sign in map(chr, range(0x11_0000)) if category(sign) not in ("Cn", "Cs", "Co")
    ]
    letters = filter(lambda sign: category(sign)[0] in "LM", assigned)
    scripts = [[*group] for _, group in groupby(letters, lambda sign: min(ord(sign), 0x3400) >> 7)]
    tokens = [*special_tokens]
    for text in special_tokens:
        tokens += filter(None, (text[:-1], text[1:]))

    clusters = CLUSTERS.split(" ")
    rare = [clusters, assigned, tokens or clusters]
    return repeated({8: [*scripts[:2], DIGITS, SIGNS], 4: rare, 1: scripts})
