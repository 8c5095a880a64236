"""Texts that are hard to scan, and what it means that the compiled counter counts one as the
definition does.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from harness.common import registry
from variants.contract import Corpus, InvalidText, Meter
from variants.counting import native
from variants.counting.patterns import EXACT_SPELLINGS
from variants.counting.pretokenize import serial
from variants.native import built

PATHS: list[str] = built("_scanner").supported_paths()
WIDTHS = (1, 2, 3, 7, 16)
COMPILED = list(
    dict.fromkeys(
        (*(card["regex"] for card in registry.cards("pattern").values()), *EXACT_SPELLINGS)
    )
)
PIECES = (
    *(
        "a",
        "b",
        "A",
        "B",
        "ab",
        "the",
        " word",
        "word ",
        "Ab",
        "aB",
        "AB",
        "x" * 17,
        "y" * 70,
        "中A",
        "一" * 9,
    ),
    *(
        "DON'T",
        "don't",
        "'ll",
        "'LL",
        "'s",
        "'S",
        "'\u017f",
        "\u017f",
        " '",
        "''",
        "'",
        "'v",
        "'r",
        "'re",
        "'Ve",
    ),
    *("'d", "'m", "'t", "<|e|>", "<|e|>x", "x<|e|>", "<|endoftext|>", "<|e", "|>", "<"),
    *(
        " ",
        "  ",
        "   ",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "\t",
        "\x0b",
        "\x1c",
        "\x00",
        "\ufeff",
        "\u200b",
    ),
    *(
        "\u0085",
        "\u00a0",
        "\u1680",
        "\u2000",
        "\u200a",
        "\u2028",
        "\u2029",
        "\u202f",
        "\u205f",
        "\u3000",
    ),
    *(
        "é",
        "É",
        "e\u0301",
        "\u0301",
        "ǅ",
        "ʰ",
        "ª",
        "一二",
        "\uff0c",
        "。",
        "䷀",
        "㐀",
        "\U0001d518",
        "😀",
    ),
    *("👩\u200d🚀", "\U0010ffff", "1", "23", "4567", "½", "٣", "²", "!", "?!", "-_-", "/", "//"),
)
SPECIAL_TOKENS: tuple[tuple[str, ...], ...] = (
    (),
    ("<|endoftext|>",),
    ("<|e|>", "<|e|>x", "x<|e|>"),
    ("aa",),
    ("ab", "bc"),
    ("aba", "bab"),
    ("\n\n", " ", "é"),
    ("a", "b", "c", "d", "e", "f"),
    ("'s", " "),
    ("<|e|>", "<|e|>", "a token of more than fifteen bytes"),
    ("\ufffd",),
    ("\ufffd<", "<|e|>", "a\ufffd", "b\ufffd\ufffd"),
)
BAD = (
    *(b"\xff", b"\xe4", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xed\xa0\x80"),
    *(b"\xc0\x80", b"\x80", b"\xf4\x90\x80\x80", b"\xf5", b"\xe0\x80\x80", b"\xf0\x80\x80\x80"),
)


def counted(
    count: Any, corpus: Corpus, **how: Any
) -> tuple[list[tuple[bytes, int]], dict[str, int]] | int:
    """The words in order with the tallies, or the offset of the first bad byte."""
    meter = Meter()
    try:
        words = list(count(corpus, meter, **how).items())
    except InvalidText as error:
        return error.offset
    return words, meter.tallies


def expect_definition(
    file: Path, content: bytes, special_tokens: tuple[str, ...], pattern: str | None, **how: Any
) -> None:
    file.write_bytes(content)
    corpus = Corpus(str(file), special_tokens, pattern, how.pop("errors", "strict"))
    want = counted(serial, corpus)
    for path in [how.pop("instructions")] if "instructions" in how else PATHS:
        got = counted(native.native, corpus, instructions=path, **how)
        assert got == want, (content, corpus, path, how)


def random_content(chance: random.Random) -> tuple[bytes, tuple[str, ...]]:
    special_tokens = chance.choice(SPECIAL_TOKENS)
    pieces = chance.sample(PIECES, chance.randint(2, 14)) + list(special_tokens)
    content = "".join(
        chance.choices(pieces, k=chance.randint(0, chance.choice((5, 30, 120, 600))))
    ).encode()
    if chance.random() < 0.1:
        place = chance.randrange(len(content) + 1)
        content = content[:place] + chance.choice(BAD) + content[place:]
    return content, special_tokens
