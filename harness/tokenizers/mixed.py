"""Generated text for comparing engines: many scripts, every kind of space and line end,
contractions, special tokens whole and truncated, random characters, random bytes.
"""

from __future__ import annotations

import random
import string
import unicodedata
from collections.abc import Iterator, Sequence

PART = 1 << 16
LETTERS = string.ascii_letters + "éüßñçøåœÆ"
DIGITS = "0123456789٣٤५६७๒四Ⅷ½²①"
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
CONTRACTIONS = "'s 'S 't 're 'RE 've 'm 'll 'LL 'd 'D 'ſ ’s ' ''"
ASSIGNED_FIRST = (1000, 8000, 90_000)
"""How many of the first assigned characters letters are from: alphabets, all scripts but those of
China and Korea, and nearly all.
"""


def mixed_parts(size: int, special_tokens: Sequence[str] = ()) -> Iterator[bytes]:
    """Parts of 64 KiB, `size` bytes in all; every eighth is random bytes.

    Random characters are neighbours of Unicode 3.2, so engines with older tables than ours have
    them as well.
    """
    chance, category = random.Random(0), unicodedata.ucd_3_2_0.category
    signs = map(chr, range(0x11_0000))
    assigned = [sign for sign in signs if category(sign) not in ("Cn", "Cs", "Co")]
    tokens = [*special_tokens]
    for text in special_tokens:
        tokens += filter(None, (text[:-1], text[1:]))
    alphabets = [LETTERS, LETTERS, DIGITS, SIGNS, CLUSTERS.split(" "), tokens or LETTERS]
    endings, blanks = CONTRACTIONS.split(), ["", " ", *STRANGE.split("|")]

    for number, start in enumerate(range(0, size, PART), 1):
        room = min(PART, size - start)
        if number % 8 == 0:
            yield chance.randbytes(room)
            continue

        content = bytearray()
        while len(content) < room:
            first = chance.randrange(chance.choice(ASSIGNED_FIRST))
            alphabet = chance.choice([chance.choice(alphabets), assigned[first : first + 60]])
            word = "".join(chance.choices(alphabet, k=chance.randint(1, 6)))
            word += chance.choice(endings) if chance.random() < 0.1 else ""
            content += f"{word}{chance.choice([' ', chance.choice(blanks)])}".encode()
        yield content[:room].decode(errors="ignore").encode().ljust(room, b".")
