"""What a tokenizer does with texts: how short they become, how much of the vocabulary they use, by what tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, share_text, token_text
from harness.tokenizers.plain import Tokenizer

LONGEST = 5
LONGEST_SHOWN = 40
_WORD = re.compile(rb"\S+")


@dataclass(frozen=True)
class Figures:
    """One tokenizer on one text."""

    tokenizer: str
    text: str
    size: int
    """Bytes."""
    words: int
    """What stands between white space (ASCII's); the same for every tokenizer, whatever its pattern."""
    tokens: int
    special: int
    """Special tokens among them."""
    used: int
    """How many of the tokens of the vocabulary occur at all."""
    vocabulary: int
    longest: tuple[bytes, ...]
    """The longest tokens that occur, in bytes, the more frequent first among equals."""

    @property
    def bytes_per_token(self) -> float | None:
        return self.size / self.tokens if self.tokens else None

    @property
    def tokens_per_word(self) -> float | None:
        return self.tokens / self.words if self.words else None

    @property
    def share_used(self) -> float:
        return self.used / self.vocabulary


def figures_of(
    name: str,
    tokenizer: Tokenizer,
    text: str,
    blocks: Iterable[bytes],
    on_progress: Callable[[int], None] = lambda _: None,
) -> Figures:
    """Encode the text once and count."""
    words = _Words()
    counts: Counter[int] = Counter(tokenizer.encode_iterable(_counted(blocks, words, on_progress)))
    special = set(tokenizer.special_tokens.values())
    longest = sorted(
        (number for number in counts if number not in special),
        key=lambda number: (-len(tokenizer.vocab[number]), -counts[number], number),
    )
    return Figures(
        name,
        text,
        words.bytes,
        words.number,
        counts.total(),
        sum(counts[number] for number in special),
        len(counts),
        len(tokenizer.vocab),
        tuple(tokenizer.vocab[number] for number in longest[:LONGEST]),
    )


class _Words:
    """Counts bytes and words of a text that comes in blocks."""

    def __init__(self) -> None:
        self.bytes = 0
        self.number = 0
        self.within = False

    def add(self, block: bytes) -> None:
        self.bytes += len(block)
        self.number += len(_WORD.findall(block)) - (self.within and not block[:1].isspace() and bool(block))
        self.within = not block[-1:].isspace() if block else self.within


def _counted(blocks: Iterable[bytes], words: _Words, on_progress: Callable[[int], None]) -> Iterable[bytes]:
    for block in blocks:
        words.add(block)
        yield block
        on_progress(words.bytes)


def sheet(figures: Sequence[Figures]) -> Sheet:
    """A row for each tokenizer on each text, the tokenizers of one text together."""
    columns = [
        Column("text", [each.text for each in figures], figures=False),
        Column("tokenizer", [each.tokenizer for each in figures], figures=False),
        Column("bytes", [bytes_text(each.size) for each in figures]),
        Column("tokens", [count_text(each.tokens) for each in figures]),
        Column("bytes per token", [_three(each.bytes_per_token) for each in figures]),
        Column("tokens per word", [_three(each.tokens_per_word) for each in figures]),
        Column("vocabulary", [count_text(each.vocabulary) for each in figures]),
        Column("used", [share_text(each.share_used) for each in figures]),
        Column("longest token", [_longest(each) for each in figures], figures=False),
    ]
    notes = [
        "bytes per token: more is shorter; tokens per word: a word is what stands between white space, whatever the "
        "pattern; used: the share of the vocabulary that occurs in the text",
        *_long_tokens(figures),
    ]
    return Sheet([], columns, [""] * len(figures), notes)


def as_record(figures: Figures) -> dict[str, object]:
    """The raw figures, for programs; tokens in hexadecimal digits."""
    return {
        "text": figures.text,
        "tokenizer": figures.tokenizer,
        "bytes": figures.size,
        "words": figures.words,
        "tokens": figures.tokens,
        "special_tokens": figures.special,
        "bytes_per_token": figures.bytes_per_token,
        "tokens_per_word": figures.tokens_per_word,
        "vocabulary": figures.vocabulary,
        "used": figures.used,
        "share_used": figures.share_used,
        "longest": [token.hex() for token in figures.longest],
    }


def _long_tokens(figures: Sequence[Figures]) -> list[str]:
    return [
        f"longest of {each.tokenizer} in {each.text}: "
        + ", ".join(f"{_token(token)} ({len(token)} B)" for token in each.longest)
        for each in figures
        if each.longest
    ]


def _longest(each: Figures) -> str:
    return f"{len(each.longest[0])} B" if each.longest else "-"


def _token(token: bytes) -> str:
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return token_text(token, LONGEST_SHOWN)
    said = repr(text)
    return said if len(said) <= LONGEST_SHOWN else f"{said[: LONGEST_SHOWN // 2]}…{said[-LONGEST_SHOWN // 2 :]}"


def _three(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"
