"""How well tokenizers compress texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.common.sheet import Sheet
from harness.common.units import bytes_text, count_text, share_text
from harness.tokenizers.model import Progress, Tokenizer
from harness.tokenizers.sheets import columns_under, readable_token

NOTE = (
    "bytes per token: higher is better; tokens per word: a word is what is between white space, whatever the pattern; "
    "used: the share of the vocabulary that occurs in the text"
)
HEADINGS = (
    "text",
    "tokenizer",
    "bytes",
    "tokens",
    "bytes per token",
    "tokens per word",
    "vocabulary",
    "used",
    "longest token",
)
_WORD_START = re.compile(rb"\s\S")


class Figures(NamedTuple):
    """One tokenizer on one text; `used` tokens of the vocabulary occur, `longest` is one of them in
    hexadecimal.
    """

    tokenizer: str
    text: str
    bytes: int
    words: int
    tokens: int
    used: int
    vocabulary: int
    longest: str


def figures_of(
    name: str,
    tokenizer: Tokenizer,
    text: str,
    blocks: Iterable[bytes],
    show: Progress = lambda _: None,
    *,
    special_tokens: bool = True,
) -> Figures:
    """Encode the text once and count."""
    size = words = 0

    def counted() -> Iterator[bytes]:
        nonlocal size, words
        last = b" "
        for block in filter(None, blocks):
            size += len(block)
            words += len(_WORD_START.findall(last + block))
            last = block[-1:]
            yield block
            show(size)

    counts = Counter(tokenizer.encode_iterable(counted(), special_tokens=special_tokens))
    plain = [
        tokenizer.vocab[number] for number in counts.keys() - set(tokenizer.special_tokens.values())
    ]
    longest = max(sorted(plain), key=len, default=b"").hex()
    return Figures(name, text, size, words, counts.total(), len(counts), len(tokenizer), longest)


def figures_sheet(figures: Sequence[Figures]) -> Sheet:
    """A row for each tokenizer on each text, the tokenizers of one text together."""
    rows = []
    for row in figures:
        texts = [row.text, row.tokenizer, bytes_text(row.bytes), count_text(row.tokens)]
        ratios = [_ratio(row.bytes, row.tokens), _ratio(row.tokens, row.words)]
        share = share_text(row.used / row.vocabulary)
        longest = readable_token(bytes.fromhex(row.longest))
        rows.append([*texts, *ratios, count_text(row.vocabulary), share, longest])
    return Sheet([], columns_under(HEADINGS, rows), notes=[NOTE])


def _ratio(number: int, base: int) -> str:
    return f"{number / base:.3f}" if base else "-"
