"""What a tokenizer does with texts: bytes per token, tokens per word, how much of the vocabulary occurs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, share_text, token_text
from harness.tokenizers.model import Tokenizer

LONGEST = 5
LONGEST_SHOWN = 40
NOTE = (
    "bytes per token: higher is better; tokens per word: a word is what is between white space, whatever the pattern; "
    "used: the share of the vocabulary that occurs in the text"
)
_WORD = re.compile(rb"\S+")


@dataclass(frozen=True)
class Figures:
    """One tokenizer on one text.

    A word is what is between white space (ASCII's), whatever the pattern; `special` counts special tokens among the
    `tokens`, `used` the tokens of the vocabulary that occur; of `longest` the more frequent come first among equals.
    """

    tokenizer: str
    text: str
    size: int
    words: int
    tokens: int
    special: int
    used: int
    vocabulary: int
    longest: tuple[bytes, ...]

    @property
    def bytes_per_token(self) -> float | None:
        return self.size / self.tokens if self.tokens else None

    @property
    def tokens_per_word(self) -> float | None:
        return self.tokens / self.words if self.words else None

    @property
    def share_used(self) -> float:
        return self.used / self.vocabulary

    def record(self) -> dict[str, Any]:
        """The raw figures; tokens in hexadecimal digits."""
        record = asdict(self)
        figures = {name: getattr(self, name) for name in ("bytes_per_token", "tokens_per_word", "share_used")}
        record |= {"bytes": record.pop("size"), "special_tokens": record.pop("special"), **figures}
        return {**record, "longest": [token.hex() for token in self.longest]}


def figures_of(
    name: str,
    tokenizer: Tokenizer,
    text: str,
    blocks: Iterable[bytes],
    on_progress: Callable[[int], None] = lambda _: None,
) -> Figures:
    """Encode the text once and count."""
    size = words = 0
    within = False

    def counted() -> Iterator[bytes]:
        nonlocal size, words, within
        for block in filter(None, blocks):
            size += len(block)
            words += len(_WORD.findall(block)) - (within and not block[:1].isspace())
            within = not block[-1:].isspace()
            yield block
            on_progress(size)

    counts = Counter(tokenizer.encode_iterable(counted()))
    special = set(tokenizer.special_tokens.values())
    longest = sorted(
        counts.keys() - special, key=lambda number: (-len(tokenizer.vocab[number]), -counts[number], number)
    )
    return Figures(
        name,
        text,
        size,
        words,
        counts.total(),
        sum(counts[number] for number in special),
        len(counts),
        len(tokenizer),
        tuple(tokenizer.vocab[number] for number in longest[:LONGEST]),
    )


def sheet(figures: Sequence[Figures]) -> Sheet:
    """A row for each tokenizer on each text, the tokenizers of one text together."""
    columns = [
        Column("text", [row.text for row in figures], figures=False),
        Column("tokenizer", [row.tokenizer for row in figures], figures=False),
        Column("bytes", [bytes_text(row.size) for row in figures]),
        Column("tokens", [count_text(row.tokens) for row in figures]),
        Column("bytes per token", [_three(row.bytes_per_token) for row in figures]),
        Column("tokens per word", [_three(row.tokens_per_word) for row in figures]),
        Column("vocabulary", [count_text(row.vocabulary) for row in figures]),
        Column("used", [share_text(row.share_used) for row in figures]),
        Column("longest token", [f"{len(row.longest[0])} B" if row.longest else "-" for row in figures], figures=False),
    ]
    notes = [NOTE]
    for row in figures:
        longest = ", ".join(f"{readable_token(token)} ({len(token)} B)" for token in row.longest)
        notes += [f"longest of {row.tokenizer} in {row.text}: {longest}"] if longest else []
    return Sheet([], columns, [""] * len(figures), notes)


def readable_token(token: bytes) -> str:
    """A token for people: its text if it is UTF-8, else its bytes; the middle of a long one is left out."""
    try:
        text = repr(token.decode())
    except UnicodeDecodeError:
        return token_text(token, LONGEST_SHOWN)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN // 2]}…{text[-LONGEST_SHOWN // 2 :]}"


def _three(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"
