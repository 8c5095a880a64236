"""Texts that are hard to scan, and what it means that the compiled counter counts one as the
definition does. scanned_texts.toml has what the texts are made of.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tomllib
from workbench import corpus_of

from harness.common import registry
from variants.contract import Corpus, InvalidText, Meter
from variants.counting import native
from variants.counting.patterns import EXACT_SPELLINGS
from variants.counting.pretokenize import serial

PATHS: list[str] = pytest.importorskip("variants.native._scanner").supported_paths()
WIDTHS = (1, 2, 3, 7, 16)
CARDS = registry.cards("pattern").values()
COMPILED = list(dict.fromkeys([*(card["regex"] for card in CARDS), *EXACT_SPELLINGS]))
PARTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PIECES: list[str] = PARTS["pieces"]
SPECIAL_TOKENS = [tuple(tokens) for tokens in PARTS["special_tokens"]]
BAD = [bytes.fromhex(bad) for bad in PARTS["bad"]]


Counted = tuple[list[tuple[bytes, int]], dict[str, int]] | int
"""The words in order with the tallies, or the offset of the first bad byte."""


def counted(count: Any, corpus: Corpus, **how: Any) -> Counted:
    meter = Meter()
    try:
        words = list(count(corpus, meter, **how).items())
    except InvalidText as error:
        return error.offset
    return words, meter.tallies


def expect_definition(
    folder: Path, content: bytes, special_tokens: tuple[str, ...], pattern: str | None, **how: Any
) -> None:
    """Fail unless the compiled counter counts a text, which it reads from this folder, like the
    definition.
    """
    corpus = corpus_of(folder, content, special_tokens, pattern, how.pop("errors", "strict"))
    paths = [how.pop("instructions")] if "instructions" in how else PATHS

    want = counted(serial, corpus)
    for path in paths:
        got = counted(native.native, corpus, instructions=path, **how)
        assert got == want, (content, corpus, path, how)


def random_text(
    chance: random.Random, special_tokens: Sequence[str], pieces: Sequence[str] = PIECES
) -> str:
    parts = [*chance.sample(pieces, chance.randint(2, 14)), *special_tokens]
    length = chance.randint(0, chance.choice((5, 30, 120, 600)))
    return "".join(chance.choices(parts, k=length))


def random_content(chance: random.Random) -> tuple[bytes, tuple[str, ...]]:
    special_tokens = chance.choice(SPECIAL_TOKENS)
    content = random_text(chance, special_tokens).encode()

    if chance.random() < 0.1:
        place = chance.randrange(len(content) + 1)
        content = content[:place] + chance.choice(BAD) + content[place:]
    return content, special_tokens
