"""A pattern splits the same in Python's `regex` and in Hugging Face's engine, in both directions, or
is refused by name.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import regex
from tokenizers_made import isolated, sequence

from harness.tokenizer import load, main, train, train_new_from_iterator
from harness.tokenizers.dialects import to_ruby
from harness.tokenizers.pre_tokenizer import BYTE_LEVEL, SPLIT, pattern_of

tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.skipif(
    not hasattr(tokenizers, "pre_tokenizers"), reason="tokenizers 1.0 has no regular expressions"
)

NEWER = {"\u0295"}
"""Characters whose category has changed since the tables of Oniguruma."""
ASSIGNED = [
    character
    for character in map(chr, range(0x20000))
    if unicodedata.ucd_3_2_0.category(character) not in ("Cn", "Cs", "Co")
    and character not in NEWER
]
CHARACTERS = (
    "aAbBeFgGiIkKsStTzZ019_-. \t\n\r\u200c\u200d²³¹¼½¾éßẞ\u017f\u212aİ\u0131ﬁﬀﬆ\u0301\u0399٣中Ⓐⓐ$+<"
    "^`|~€٪\u3000\u00a0[]&\u02bcnΣς"
)
"""Those on which the two are known to differ, and some of each other kind. Without U+0345: `regex`
takes it for a letter as soon as any part of a pattern disregards case.
"""
PATTERNS = json.loads(Path(__file__).with_name("patterns.json").read_text(encoding="utf-8"))
"""What both read alike; what means another thing to Oniguruma, or nothing, unless it is written in
another way; what only Oniguruma has, or has with another meaning; and what is refused, with its
part that is named.
"""
ALIKE: list[str] = PATTERNS["alike"]
OTHER_WAYS: list[str] = PATTERNS["in their way"]
REFUSED: dict[str, str] = PATTERNS["refused"]


def split(expression: str) -> dict[str, Any]:
    return {**SPLIT, "pattern": {"Regex": expression}}


def read(expression: str) -> str:
    """A pattern of Hugging Face's as ours."""
    return str(pattern_of(sequence(split(expression), BYTE_LEVEL)))


def theirs(expression: str, text: str) -> list[str]:
    """The pieces that Hugging Face's engine makes."""
    step = tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), "isolated")
    return [piece for piece, _ in step.pre_tokenize_str(text)]


def same(expression: str) -> str:
    return expression


@pytest.mark.parametrize(
    ("original", "ours", "oniguruma"),
    [
        *((expression, same, to_ruby) for expression in [*ALIKE, *PATTERNS["in our way"]]),
        *((expression, read, same) for expression in [*ALIKE, *OTHER_WAYS]),
        *((expression, read, lambda one: to_ruby(read(one))) for expression in ALIKE[:12]),
    ],
)
def test_every_character_is_split_alike(
    original: str, ours: Callable[[str], str], oniguruma: Callable[[str], str]
) -> None:
    text = "~".join(ASSIGNED)
    assert isolated(ours(original), text) == theirs(oniguruma(original), text)


@pytest.mark.parametrize("expression", REFUSED)
@pytest.mark.parametrize("translation", [read, to_ruby])
def test_what_they_read_differently_is_refused_by_name(
    expression: str, translation: Callable[[str], str]
) -> None:
    named = regex.escape(f"its pattern has {REFUSED[expression]}")
    with pytest.raises(
        ValueError, match=f"^{named}( without regard to case)?, which .* reads diff"
    ):
        translation(expression)


@pytest.mark.parametrize("expression", PATTERNS["ours alone"])
def test_what_only_regex_means_by_it_is_refused(expression: str) -> None:
    with pytest.raises(
        ValueError, match=r"^its pattern has .*, which tokenizers reads differently"
    ):
        to_ruby(expression)


def some_pattern(chance: random.Random) -> str:
    parts = [
        *ALIKE[:10],
        *ALIKE[14:],
        *OTHER_WAYS,
        "s",
        "t",
        "(?i:'s|'ll)",
        "[^a-z]",
    ]
    written = ""
    for _ in range(chance.randint(1, 4)):
        part = chance.choice(parts).replace("(?i)", "")
        written += part + chance.choice(["", "", "+", "?", "{1,3}", "|", r"(?!\S)"])
    return "(?i)" * (chance.random() < 0.3) + written.strip("|")


def translated(
    expression: str, ours: Callable[[str], str], oniguruma: Callable[[str], str]
) -> tuple[str, str] | None:
    """The pattern for either engine; None if it is refused by name."""
    try:
        return ours(expression), oniguruma(expression)
    except ValueError as error:
        if "its pattern has " not in str(error):
            raise
        return None


@pytest.mark.parametrize("seed", range(150))
def test_random_patterns_split_alike_or_are_refused(seed: int) -> None:
    """Patterns that match nothing at all are left out: each engine goes on in its own way."""
    chance = random.Random(seed)
    expression = some_pattern(chance)
    while regex.search(expression.replace(r"\H", "H"), "") is not None:
        expression = some_pattern(chance)
    pairs = [translated(expression, read, same), translated(expression, same, to_ruby)]
    for _ in range(30):
        text = "".join(chance.choices(CHARACTERS, k=20))
        for mine, other in filter(None, pairs):
            assert isolated(mine, text) == theirs(other, text), (mine, other, text)


def with_pattern(expression: str) -> Any:
    """An untrained tokenizer of tokenizers."""
    plain = tokenizers.Tokenizer(tokenizers.models.BPE())
    steps = [
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), "isolated"),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(steps)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    options = {"special_tokens": [], "initial_alphabet": alphabet, "show_progress": False}
    plain.train_from_iterator([], tokenizers.trainers.BpeTrainer(vocab_size=256, **options))
    return plain


DOCUMENTS = [
    "می\u200cکتب می\u200cروم m² 5½ beef \t xyz aİa a\u212aa ҖҖ 你好。" * 3,
    "x² x² می\u200cروم",
]


@pytest.mark.parametrize(
    "expression",
    [r"\w+|[^\w\s]+|\s+", r"[\h]+|[^\n]", r"\H+|.|\n", "[[:punct:]]+|[[:alnum:]]+|."],
)  # fmt: skip
def test_training_and_encoding_are_those_of_hugging_face(tmp_path: Path, expression: str) -> None:
    old, hugging = with_pattern(expression), with_pattern(expression)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    options = {"special_tokens": [], "initial_alphabet": alphabet, "show_progress": False}
    hugging.train_from_iterator(
        DOCUMENTS, tokenizers.trainers.BpeTrainer(vocab_size=290, **options)
    )
    new = train_new_from_iterator(old, DOCUMENTS, 290)
    assert json.loads(new.to_str())["model"] == json.loads(hugging.to_str())["model"]

    path = tmp_path / "tokenizer.json"
    hugging.save(str(path))
    for text in DOCUMENTS:
        assert load(path).encode(text) == hugging.encode(text).ids
        assert load(path).huggingface().encode(text).ids == hugging.encode(text).ids


def test_a_pattern_that_may_match_nothing_first_is_not_saved_for_hugging_face(
    tmp_path: Path,
) -> None:
    for pattern in ("(?=b)|b|.", r"x*|[\s\S]"):
        note = train(["ab"], 258, pattern=pattern).save(tmp_path, overwrite=True)[0]
        assert note.startswith("tokenizer.json cannot hold this tokenizer: its pattern has an empt")


def test_a_saved_pattern_of_ones_own_gives_our_ids(tmp_path: Path) -> None:
    tokenizer = train(DOCUMENTS, 300, pattern=r"\w+|[^\w\s]+|\s+", special_tokens=())
    assert [note[:46] for note in tokenizer.save(tmp_path)] == [
        "tiktoken reads a pattern of your own by its ru"
    ]
    for text in DOCUMENTS:
        assert tokenizer.huggingface().encode(text).ids == tokenizer.encode(text)
    assert main(["check", str(tmp_path), "--size", "200kB"]) == 0
