"""What a tokenizer does with texts: bytes per token, tokens per word, how much of the vocabulary occurs."""

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

LONGEST = 5
LONGEST_SHOWN = 40
NOTE = (
    "bytes per token: higher is better; tokens per word: a word is what is between white space, whatever the pattern; "
    "used: the share of the vocabulary that occurs in the text"
)
_WORD = re.compile(rb"\S+")


class Figures(NamedTuple):
    """One tokenizer on one text.

    A word is what is between white space (ASCII's), whatever the pattern; `special_tokens` are those among `tokens`,
    `used` the tokens of the vocabulary that occur; `longest` are in hexadecimal digits, of equals the more frequent
    first.
    """

    tokenizer: str
    text: str
    bytes: int
    words: int
    tokens: int
    special_tokens: int
    used: int
    vocabulary: int
    bytes_per_token: float | None
    tokens_per_word: float | None
    share_used: float
    longest: list[str]


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
    tokens, special = counts.total(), set(tokenizer.special_tokens.values())
    longest = sorted(
        counts.keys() - special, key=lambda number: (-len(tokenizer.vocab[number]), -counts[number], number)
    )
    return Figures(
        name,
        text,
        size,
        words,
        tokens,
        special_tokens=sum(counts[number] for number in special),
        used=len(counts),
        vocabulary=len(tokenizer),
        bytes_per_token=size / tokens if tokens else None,
        tokens_per_word=tokens / words if words else None,
        share_used=len(counts) / len(tokenizer),
        longest=[tokenizer.vocab[number].hex() for number in longest[:LONGEST]],
    )


def sheet(figures: Sequence[Figures]) -> Sheet:
    """A row for each tokenizer on each text, the tokenizers of one text together."""
    columns = [
        Column("text", [row.text for row in figures], figures=False),
        Column("tokenizer", [row.tokenizer for row in figures], figures=False),
        Column("bytes", [bytes_text(row.bytes) for row in figures]),
        Column("tokens", [count_text(row.tokens) for row in figures]),
        Column("bytes per token", [_three(row.bytes_per_token) for row in figures]),
        Column("tokens per word", [_three(row.tokens_per_word) for row in figures]),
        Column("vocabulary", [count_text(row.vocabulary) for row in figures]),
        Column("used", [share_text(row.share_used) for row in figures]),
        Column(
            "longest token", [f"{len(row.longest[0]) // 2} B" if row.longest else "-" for row in figures], figures=False
        ),
    ]
    notes = [NOTE]
    for row in figures:
        longest = ", ".join(f"{readable_token(token)} ({len(token)} B)" for token in map(bytes.fromhex, row.longest))
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


# Tokens of a vocabulary that no text gives, and those that given texts never give.
#
# A token is *dead* if its own bytes, merged alone, are not this one token. Learned lists have no dead tokens, lists
# that were edited or joined do. It is *cut* if it is alive but the pattern cuts its text, and *part* if it is alive but
# not UTF-8. The others are *unused* if the texts never give them: *absent*, or made *only inside* longer tokens.

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


def unused_sheets(findings: Sequence[Finding], size: int, *, with_text: bool) -> list[Sheet]:
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
