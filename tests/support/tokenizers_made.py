"""Tokenizers for tests: small, trained here or written by hand, and texts in which they can go
wrong.
"""

import copy
import functools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import regex

from harness.common import registry
from harness.tokenizers.encoding import pre_tokens_of
from harness.tokenizers.folder import save
from harness.tokenizers.learned import Learned, trained
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.pre_tokenizer import compiled_pattern
from variants import flat
from variants.contract import Merge, WordCounts, vocab_of

PATTERNS: dict[str, Any] = {name: card["regex"] for name, card in registry.cards("pattern").items()}
SPECIALS = ("<|endoftext|>", "<|e|>", "<|e|>x")
TEXT = (
    "The cat's mat, it'll DON'T 'S  don’t\r\n\r\n  12345 a1b2 café cafe\u0301 naïve\t\tx \n y\u00a0z\u3000一二三，四五 "
    "Привет, мир! שלום مرحبا नमस्ते 안녕하세요 こんにちは カタカナ 👩\u200d👩\u200d👧 🇩🇪 ſ 'ſ ǅ İ ẞ \u200b\ufeff "
    "def f(x):\n    return x\n\x00\x01\x7f\x1c\x85 http://a.b/c?d=e&f  --- ... !!! ½ ² Ⅷ ٣ "
    "<|e|>x<|e|><|endoftext|><|e| <|endoftext|> the the theme"
)
"""Contractions, all kinds of spaces and line ends, digits, scripts, controls, special tokens whole
and cut short.
"""


@functools.cache
def learned(
    pattern: str = "gpt2", special_tokens: Sequence[str] = (), merges: int = 200
) -> Learned:
    """A tokenizer trained by the definition on TEXT, repeated in parts so that counts differ."""
    expression = PATTERNS[pattern]
    parts = (TEXT, TEXT[:200] * 3, TEXT[100:400] * 2)
    words = [
        word
        for part in parts
        for word in ([part] if expression is None else regex.findall(expression, part))
    ]
    counts = WordCounts.from_items(Counter(map(str.encode, words)).items())
    return trained(registry.definition()(counts, merges), list(special_tokens), expression)


def learned_in_stages(
    text: str, patterns: Sequence[str], merges: int, specials: Iterable[str] = ()
) -> Learned:
    """A tokenizer trained on a text by the words of one pattern after the other, so many merges
    each.
    """
    learned: Sequence[Merge] = ()
    for name in patterns:
        words = Counter(map(str.encode, pre_tokens_of(compiled_pattern(PATTERNS[name]), text)))
        counts = WordCounts.from_items(words.items())
        learned = flat.train(counts, len(learned) + merges, inherited=learned)
    return trained(list(learned), list(specials), PATTERNS[patterns[-1]])


def of_merges(*merges: tuple[str, str]) -> Tokenizer:
    pairs = [(left.encode("latin-1"), right.encode("latin-1")) for left, right in merges]
    vocab = dict(enumerate(dict.fromkeys(vocab_of(pairs).values())))
    return Tokenizer(Learned(vocab, pairs, {}, PATTERNS["gpt2"]))


def changed(folder: Path, **changes: Any) -> Path:
    """A tokenizer.json of ours with some of its parts changed; `a__b` is the part b of a."""
    save(folder / "ours", learned("gpt2", SPECIALS), {}, overwrite=True)
    content = json.loads((folder / "ours/tokenizer.json").read_bytes())
    for name, value in changes.items():
        *keys, last = name.split("__")
        part = content
        for key in keys:
            part = part[key]
        part[last] = copy.deepcopy(value)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(content))
    return path


def split(word: bytes) -> list[bytes]:
    return [bytes((byte,)) for byte in word]


def replayed(word: bytes, merges: Sequence[Merge]) -> list[bytes]:
    """The word as training leaves it: every merge in turn, everywhere from the left."""
    tokens = split(word)
    for merge in merges:
        place = 0
        while place + 1 < len(tokens):
            if (tokens[place], tokens[place + 1]) == merge:
                tokens[place : place + 2] = [merge[0] + merge[1]]
            place += 1
    return tokens


def isolated(expression: str, text: str) -> list[str]:
    """The matches of an expression, and what is between them."""
    pieces, end = [], 0
    for start, stop in sorted(match.span() for match in regex.finditer(expression, text)):
        pieces += [text[end:start], text[start:stop]]
        end = stop
    return [piece for piece in [*pieces, text[end:]] if piece]
