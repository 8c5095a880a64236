"""A pattern splits the same in Python's `regex` and in Hugging Face's engine, in both directions, or
is refused by name.
"""

import random
import unicodedata
from collections.abc import Callable

import pytest
import regex
from rows import json_beside
from tokenizers_made import isolated
from workbench import first_fast

from harness.tokenizers.pre_tokenizer import from_ruby, to_ruby

tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.skipif(
    not hasattr(tokenizers, "pre_tokenizers"), reason="tokenizers 1.0 has no regular expressions"
)

ASSIGNED = [
    character
    for character in map(chr, range(0x20000))
    if unicodedata.ucd_3_2_0.category(character) not in ("Cn", "Cs", "Co")
    and character != "\u0295"  # its category has changed since the tables of Oniguruma
]
CHARACTERS = (
    "aAbBeFgGiIkKsStTzZ019_-. \t\n\r\u200c\u200d²³¹¼½¾éßẞ\u017f\u212aİ\u0131ﬁﬀﬆ\u0301\u0399٣中Ⓐⓐ$+<"
    "^`|~€٪\u3000\u00a0[]&\u02bcnΣς"
)
"""Those on which the two are known to differ, and some of each other kind. Without U+0345: `regex`
takes it for a letter as soon as any part of a pattern disregards case.
"""
PATTERNS = json_beside(__file__, "patterns.json")
"""What both read alike; what means another thing to Oniguruma, or nothing, unless it is written in
another way; what only Oniguruma has, or has with another meaning; and what is refused, with its
part that is named.
"""
ALIKE: list[str] = PATTERNS["alike"]
OTHER_WAYS: list[str] = PATTERNS["in their way"]
REFUSED: dict[str, str] = PATTERNS["refused"]


def theirs(expression: str, text: str) -> list[str]:
    """The pieces that Hugging Face's engine makes."""
    step = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), "isolated")
    return [piece for piece, _ in step.pre_tokenize_str(text)]


@pytest.mark.parametrize("step", first_fast([9, 1]))
@pytest.mark.parametrize(
    ("original", "ours", "oniguruma"),
    [
        *((expression, str, to_ruby) for expression in [*ALIKE, *PATTERNS["in our way"]]),
        *((expression, from_ruby, str) for expression in [*ALIKE, *OTHER_WAYS]),
        *(
            (expression, from_ruby, lambda one: to_ruby(from_ruby(one)))
            for expression in ALIKE[:12]
        ),
    ],
)
def test_every_character_is_split_alike(
    original: str, ours: Callable[[str], str], oniguruma: Callable[[str], str], step: int
) -> None:
    text = "~".join([*ASSIGNED[:8000], *CHARACTERS, *ASSIGNED[8000::step]])
    assert isolated(ours(original), text) == theirs(oniguruma(original), text)


@pytest.mark.parametrize(
    ("expression", "named", "translation", "reader"),
    [
        *((one, regex.escape(named), from_ruby, "ours") for one, named in REFUSED.items()),
        *((one, regex.escape(named), to_ruby, "tokenizers") for one, named in REFUSED.items()),
        *((one, "", to_ruby, "tokenizers") for one in PATTERNS["ours alone"]),
        *((one, ".* in a set", from_ruby, "ours") for one in PATTERNS["theirs alone"]),
    ],
)
def test_what_they_read_differently_is_refused_by_name(
    expression: str, named: str, translation: Callable[[str], str], reader: str
) -> None:
    refused = f"^its pattern has {named}.*, which {reader} reads differently"
    with pytest.raises(ValueError, match=refused):
        translation(expression)


def some_pattern(chance: random.Random) -> str:
    parts = [*ALIKE[:10], *ALIKE[14:], *OTHER_WAYS, "s", "t", "(?i:'s|'ll)", "[^a-z]"]
    written = ""
    for _ in range(chance.randint(1, 4)):
        part = chance.choice(parts).replace("(?i)", "")
        written += part + chance.choice(["", "", "+", "?", "{1,3}", "|", r"(?!\S)"])
    return chance.choice(["", "", "(?i)"]) + written.strip("|")


@pytest.mark.parametrize("seed", range(150))
def test_random_patterns_split_alike_or_are_refused(seed: int) -> None:
    """Patterns that match nothing at all are left out: each engine goes on in its own way."""
    chance = random.Random(seed)
    expression = some_pattern(chance)
    while regex.search(expression.replace(r"\H", "H"), "") is not None:
        expression = some_pattern(chance)
    for ours, oniguruma in ((from_ruby, str), (str, to_ruby)):
        try:
            mine, other = ours(expression), oniguruma(expression)
        except ValueError as error:
            if "its pattern has " not in str(error):
                raise
            continue
        for _ in range(30):
            text = "".join(chance.choices(CHARACTERS, k=20))
            assert isolated(mine, text) == theirs(other, text), (mine, other, text)
