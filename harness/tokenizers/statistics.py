"""What a tokenizer does with texts: bytes per token, tokens per word, tokens that are never used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, share_text, token_text
from harness.tokenizers.learned import last_merges
from harness.tokenizers.model import Tokenizer
from variants.contract import Merge

LONGEST_SHOWN = 40
NOTE = (
    "bytes per token: higher is better; tokens per word: a word is what is between white space, whatever the pattern; "
    "used: the share of the vocabulary that occurs in the text"
)
_WORD_START = re.compile(rb"\s\S")


class Figures(NamedTuple):
    """One tokenizer on one text; `used` tokens of the vocabulary occur, `longest` is one of them in hexadecimal."""

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
    on_progress: Callable[[int], None] = lambda _: None,
) -> Figures:
    """Encode the text once and count."""
    size = words = 0
    last = b" "

    def counted() -> Iterator[bytes]:
        nonlocal size, words, last
        for block in filter(None, blocks):
            size += len(block)
            words += len(_WORD_START.findall(last + block))
            last = block[-1:]
            yield block
            on_progress(size)

    counts = Counter(tokenizer.encode_iterable(counted()))
    plain = [tokenizer.vocab[number] for number in counts.keys() - set(tokenizer.special_tokens.values())]
    longest = max(sorted(plain), key=len, default=b"").hex()
    return Figures(name, text, size, words, counts.total(), len(counts), len(tokenizer), longest)


def sheet(figures: Sequence[Figures]) -> Sheet:
    """A row for each tokenizer on each text, the tokenizers of one text together."""
    columns = [
        Column("text", [row.text for row in figures], figures=False),
        Column("tokenizer", [row.tokenizer for row in figures], figures=False),
        Column("bytes", [bytes_text(row.bytes) for row in figures]),
        Column("tokens", [count_text(row.tokens) for row in figures]),
        Column("bytes per token", [_ratio(row.bytes, row.tokens) for row in figures]),
        Column("tokens per word", [_ratio(row.tokens, row.words) for row in figures]),
        Column("vocabulary", [count_text(row.vocabulary) for row in figures]),
        Column("used", [share_text(row.used / row.vocabulary) for row in figures]),
        Column("longest token", [readable_token(bytes.fromhex(row.longest)) for row in figures], figures=False),
    ]
    return Sheet([], columns, [""] * len(figures), [NOTE])


def readable_token(token: bytes) -> str:
    """A token for people: its text if it is UTF-8, else its bytes; the middle of a long one is left out."""
    try:
        text = repr(token.decode())
    except UnicodeDecodeError:
        return token_text(token, LONGEST_SHOWN)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN // 2]}…{text[-LONGEST_SHOWN // 2 :]}"


def _ratio(number: int, base: int) -> str:
    return f"{number / base:.3f}" if base else "-"


# Tokens of a vocabulary that no text gives, and those that given texts never give.
#
# A token is *dead* if its own bytes, merged alone, are not this one token. Learned lists have no dead tokens, lists
# that were edited or joined do. It is *cut* if it is alive but the pattern cuts its text, and *part* if it is alive but
# not UTF-8. The others are *unused* if the texts never give them.

CLASSES = {
    "dead": "no text gives it",
    "cut": "the pattern cuts it; some context may still give it",
    "part": "part of a character",
    "unused": "the texts never give it",
}
TOKENS_SHOWN = 30


class Finding(NamedTuple):
    """A token that is not used."""

    id: int
    token: bytes
    kind: str

    def record(self) -> dict[str, Any]:
        return {"id": self.id, "token": self.token.hex(), "text": readable_token(self.token), "class": self.kind}


def unused(tokenizer: Tokenizer, blocks: Iterable[bytes] | None = None) -> list[Finding]:
    """The tokens that are dead, cut, part, or, with a text in blocks, unused; the worst first.

    Special tokens and single bytes are not judged.
    """
    ids = {token: number for token, number in tokenizer.learned.token_ids().items() if len(token) > 1}
    alive = last_merges(tokenizer.merges, ids)
    given = set(ids.values()) if blocks is None else set(tokenizer.encode_iterable(blocks))
    findings = []
    for token, number in ids.items():
        if kind := kind_of(token, tokenizer, alive) or ("" if number in given else "unused"):
            findings.append(Finding(number, token, kind))
    order = list(CLASSES)
    return sorted(findings, key=lambda finding: (order.index(finding.kind), finding.id))


def kind_of(token: bytes, tokenizer: Tokenizer, alive: Mapping[bytes, Merge]) -> str:
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "part" if token in alive else "dead"
    whole = tokenizer.pieces(text) == [text]
    if token not in alive and not (tokenizer.ignore_merges and whole):
        return "dead"
    return "" if whole else "cut"


def unused_sheets(findings: Sequence[Finding], size: int, *, with_text: bool) -> list[Sheet]:
    """A row for each class, `unused` only with a text; and the first tokens."""
    kinds = [kind for kind in CLASSES if with_text or kind != "unused"]
    numbers = [sum(1 for finding in findings if finding.kind == kind) for kind in kinds]
    classes = [
        Column("class", kinds, figures=False),
        Column("tokens", list(map(count_text, numbers))),
        Column("share", [share_text(number / size) for number in numbers]),
        Column("meaning", [CLASSES[kind] for kind in kinds], figures=False),
    ]
    first = findings[:TOKENS_SHOWN]
    tokens = [
        Column("id", [str(finding.id) for finding in first]),
        Column("token", [readable_token(finding.token) for finding in first], figures=False),
        Column("class", [finding.kind for finding in first], figures=False),
    ]
    rest = len(findings) - len(first)
    notes = [f"{count_text(rest)} more; --format json has all"] if rest else []
    tables = [Sheet([], classes, [""] * len(kinds), [])]
    return [*tables, Sheet([], tokens, [""] * len(first), notes)] if first else tables
