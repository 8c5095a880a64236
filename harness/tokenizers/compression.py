"""How well tokenizers compress texts, and how sheets show tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, share_text, token_text
from harness.tokenizers.model import Progress, Tokenizer

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


# Sheets

LONGEST_SHOWN = 40
WORDS = ("engine", "text", "tokenizer", "longest token", "token")
"""The columns of the sheets here that hold no figures."""


def readable_token(token: bytes) -> str:
    """A token for people: its text if it is UTF-8, else its bytes; the middle of a long one is left
    out.
    """
    try:
        text = repr(token.decode())
    except UnicodeDecodeError:
        return token_text(token, LONGEST_SHOWN)
    if len(text) <= LONGEST_SHOWN:
        return text
    half = LONGEST_SHOWN // 2
    return f"{text[:half]}…{text[-half:]}"


def columns_under(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Column]:
    """The columns of rows that have a cell for each heading."""
    columns = []
    for index, heading in enumerate(headings):
        cells = [row[index] for row in rows]
        columns.append(Column(heading, cells, heading not in WORDS))
    return columns
