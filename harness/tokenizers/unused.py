"""Tokens of a vocabulary that no text gives, and those that given texts never give.

A token is *dead* if its own bytes, merged alone, are not this one token. Learned lists have no dead
tokens, lists that were edited or joined do. It is *cut* if it is alive but the pattern cuts its text,
and *part* if it is alive but not UTF-8. The others are *unused* if the texts never give them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.common.sheet import Sheet
from harness.common.units import count_text, share_text
from harness.tokenizers.learned import last_merges
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.sheets import columns_under, readable_token
from variants.contract import Merge

CLASSES = {
    "dead": "no text gives it",
    "cut": "the pattern cuts it; some context may still give it",
    "part": "part of a character",
    "unused": "the texts never give it",
}
TOKENS_SHOWN = 30


class UnusedToken(NamedTuple):
    """A token that is not used."""

    id: int
    token: bytes
    kind: str

    def record(self) -> dict[str, str | int]:
        return {
            "id": self.id,
            "token": self.token.hex(),
            "text": readable_token(self.token),
            "class": self.kind,
        }


def unused_tokens(
    tokenizer: Tokenizer, blocks: Iterable[bytes] | None = None, *, special_tokens: bool = True
) -> list[UnusedToken]:
    """The tokens that are dead, cut, part, or, with a text in blocks, unused; the worst first.

    Special tokens and single bytes are not judged.
    """
    ids = tokenizer.learned.token_ids()
    tokens = [token for token in ids if len(token) > 1]
    alive = last_merges(tokenizer.merges, tokens)
    used = set(ids.values())
    if blocks is not None:
        used = set(tokenizer.encode_iterable(blocks, special_tokens=special_tokens))

    findings = []
    for token in tokens:
        kind = kind_of(token, tokenizer, alive) or "unused" * (ids[token] not in used)
        if kind:
            findings.append(UnusedToken(ids[token], token, kind))
    return sorted(findings, key=lambda finding: (list(CLASSES).index(finding.kind), finding.id))


def kind_of(token: bytes, tokenizer: Tokenizer, alive: Mapping[bytes, Merge]) -> str:
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "part" if token in alive else "dead"
    whole = tokenizer.pieces(text) == [text]
    if token not in alive and not (tokenizer.ignore_merges and whole):
        return "dead"
    return "" if whole else "cut"


def unused_sheets(findings: Sequence[UnusedToken], size: int, *, with_text: bool) -> list[Sheet]:
    """A row for each class, `unused` only with a text; and the first tokens."""
    numbers = Counter(finding.kind for finding in findings)
    classes = []
    for kind, meaning in CLASSES.items():
        if with_text or kind != "unused":
            number = numbers[kind]
            classes.append([kind, count_text(number), share_text(number / size), meaning])

    first = findings[:TOKENS_SHOWN]
    tokens = [[str(number), readable_token(token), kind] for number, token, kind in first]
    rest = len(findings) - len(first)
    notes = [f"{count_text(rest)} more; --format json has all"] if rest else []

    sheets = [Sheet([], columns_under(["class", "tokens", "share", "meaning"], classes))]
    if first:
        sheets.append(Sheet([], columns_under(["id", "token", "class"], tokens), notes=notes))
    return sheets
