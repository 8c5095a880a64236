"""Tokens of a vocabulary that no text gives, and those that given texts never give.

A token is *dead* if its own bytes, merged alone, are not this one token. Learned lists have no dead tokens, lists that
were edited or joined do. It is *cut* if it is alive but the pattern cuts its text, and *part* if it is alive but not
UTF-8. The others are *unused* if the texts never give them: *absent*, or made *only inside* longer tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.common.sheet import Column, Sheet
from harness.common.units import count_text, share_text
from harness.tokenizers.learned import last_merges
from harness.tokenizers.model import Tokenizer
from harness.tokenizers.statistics import readable_token
from variants.contract import Merge

CLASSES = {
    "dead": "no text gives it",
    "cut": "the pattern cuts it; some context may still give it",
    "part": "part of a character",
    "unused": "the texts never give it",
}
TOKENS_SHOWN = 30


class Finding(NamedTuple):
    """A token that is not used; `made` is how often merging made it in the texts, None without texts."""

    id: int
    token: bytes
    kind: str
    made: int | None

    def record(self) -> dict[str, Any]:
        record = {"id": self.id, "token": self.token.hex(), "text": readable_token(self.token), "class": self.kind}
        return record if self.made is None else {**record, "made": self.made}


def unused(tokenizer: Tokenizer, blocks: Iterable[bytes] | None = None) -> list[Finding]:
    """The tokens that are dead, cut, part, or, with a text in blocks, unused; the worst first.

    Special tokens and single bytes are not judged.
    """
    ids = {token: number for token, number in tokenizer.learned.token_ids().items() if len(token) > 1}
    halves = last_merges(tokenizer.merges, ids)
    emitted = None if blocks is None else Counter(tokenizer.encode_iterable(blocks))
    made = {} if emitted is None else times_made(emitted, ids, halves)
    findings = []
    for token, number in ids.items():
        kind = kind_of(token, tokenizer, halves)
        if not kind and emitted is not None and not emitted[number]:
            kind = "unused"
        if kind:
            findings.append(Finding(number, token, kind, None if emitted is None else made[token]))
    order = list(CLASSES)
    return sorted(findings, key=lambda finding: (order.index(finding.kind), finding.made or 0, finding.id))


def kind_of(token: bytes, tokenizer: Tokenizer, alive: Mapping[bytes, Merge]) -> str:
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "part" if token in alive else "dead"
    whole = tokenizer.pieces(text) == [text]
    if token not in alive and not (tokenizer.ignore_merges and whole):
        return "dead"
    return "" if whole else "cut"


def times_made(emitted: Counter[int], ids: Mapping[bytes, int], halves: Mapping[bytes, Merge]) -> dict[bytes, int]:
    """How often merging made each token: for itself, or inside a longer one."""
    made = {token: emitted[number] for token, number in ids.items()}
    for token in sorted(halves, key=len, reverse=True):
        for half in halves[token]:
            if half in made:
                made[half] += made[token]
    return made


def sheets(findings: Sequence[Finding], size: int, *, with_text: bool) -> list[Sheet]:
    """A row for each class, `unused` only with a text; and the first tokens."""
    kinds = [kind for kind in CLASSES if with_text or kind != "unused"]
    groups = {kind: [finding for finding in findings if finding.kind == kind] for kind in kinds}
    inside = sum(1 for finding in findings if finding.kind == "unused" and finding.made)
    absent = len(groups.get("unused", ())) - inside
    unused = f"the texts never give it: {count_text(absent)} absent, {count_text(inside)} only inside others"
    classes = [
        Column("class", list(groups), figures=False),
        Column("tokens", [count_text(len(group)) for group in groups.values()]),
        Column("share", [share_text(len(group) / size) for group in groups.values()]),
        Column("meaning", [unused if kind == "unused" else CLASSES[kind] for kind in groups], figures=False),
    ]
    first = findings[:TOKENS_SHOWN]
    tokens = [
        Column("id", [str(finding.id) for finding in first]),
        Column("token", [readable_token(finding.token) for finding in first], figures=False),
        Column("class", [finding.kind for finding in first], figures=False),
        Column("made", ["-" if finding.made is None else count_text(finding.made) for finding in first]),
    ]
    rest = len(findings) - len(first)
    notes = [f"{count_text(rest)} more; --format json has all"] if rest else []
    tables = [Sheet([], classes, [""] * len(groups), [])]
    return [*tables, Sheet([], tokens, [""] * len(first), notes)] if first else tables
