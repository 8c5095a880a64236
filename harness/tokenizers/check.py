"""A tokenizer on texts: the same ids from every installed engine; compression; tokens that are
never used.
"""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness.common.errors import Refusal, extra
from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, share_text, token_text
from harness.measure.machine import version
from harness.tokenizers import folder as folders
from harness.tokenizers.forms import (
    MANIFEST,
    RANKS,
    TOKENIZER_JSON,
    VOCAB,
    as_tiktoken,
    engine_errors,
    load_tokenizers,
    read_ranks,
)
from harness.tokenizers.learned import Learned, last_merges
from harness.tokenizers.model import Progress, Tokenizer
from variants.contract import Merge

LONGEST_SHOWN = 40
WORDS = ("engine", "text", "tokenizer", "longest token", "class", "meaning", "token")
"""The columns of the sheets here that hold no figures."""
Parts = Iterable[tuple[str, str]]
Encode = Callable[[str], Sequence[int]]
Engine = Callable[[Path, Learned], Encode]
"""Gets a folder with a tokenizer in every form that can hold it, and the tokenizer. It may raise
anything to say that it cannot.
"""


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


# Engines


def open_tokenizers(folder: Path, _: Learned) -> Encode:
    """Hugging Face's tokenizers, 0.x or 1.x, from tokenizer.json, without truncation, padding or a
    template.
    """
    opened = load_tokenizers(folder / TOKENIZER_JSON)
    if hasattr(opened, "no_padding"):
        opened.no_padding()
        opened.no_truncation()
    else:  # since 1.0
        opened.padding = opened.truncation = None
    return lambda text: list(opened.encode(text, add_special_tokens=False).ids)


def open_tiktoken(folder: Path, learned: Learned) -> Encode:
    """tiktoken, from the ranks with the pattern and the special tokens of the tokenizer."""
    encoding = as_tiktoken(read_ranks((folder / RANKS).read_bytes()), learned)
    return lambda text: list(encoding.encode(text, allowed_special="all"))


def open_gigatoken(folder: Path, _: Learned) -> Encode:
    """gigatoken, from tokenizer.json. It takes any bytes, but splits invalid ones by its own rules,
    so it gets text.
    """
    opened = extra("gigatoken", "this engine", "engines").Tokenizer(folder / TOKENIZER_JSON)
    return lambda text: [int(number) for number in opened.encode(text)]


ENGINES = {"tokenizers": open_tokenizers, "tiktoken": open_tiktoken, "gigatoken": open_gigatoken}


@dataclass
class Verdict:
    """The result for one engine; `notes` say why it was not tried, on what it gave up, and where it
    differs first.
    """

    engine: str
    encode: Encode | None = None  # None if it cannot be tried, or no longer
    gave_up: bool = False
    texts: int = 0
    bytes: int = 0
    ids: int = 0
    differing: int = 0
    notes: list[str] = field(default_factory=list)


def verdicts_sheet(verdicts: Sequence[Verdict], caption: str, notes: Sequence[str]) -> Sheet:
    """A row for each engine, and below why it was not tried and where it differs first."""
    rows, below = [], list[str]()
    for row in verdicts:
        figures = ["-"] * 4
        if row.texts:
            figures = [bytes_text(row.bytes), *map(count_text, (row.ids, row.texts, row.differing))]
        rows.append([f"{row.engine} {version(row.engine)}", *figures])
        below += row.notes

    headings = ["engine", "bytes", "ids", "texts", "differing"]
    return Sheet([caption], columns_of(headings, rows), notes=[*below, *notes])


def columns_of(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Column]:
    """The columns of rows that have a cell for each heading."""
    columns = []
    for index, heading in enumerate(headings):
        cells = [row[index] for row in rows]
        columns.append(Column(heading, cells, heading not in WORDS))
    return columns


def check(
    tokenizer: Tokenizer,
    source: Path,
    parts: Parts,
    engines: Mapping[str, Engine],
    show: Progress = lambda _: None,
) -> tuple[list[Verdict], list[str]]:
    """Encode texts with ours and with each engine that can open a form of it, and compare every id.

    `parts` are parts of texts that are divided between characters, each with its text's name. A
    form that is in `source` is copied from there, because that is the file which people load.
    Returns notes about the others, too.
    """
    verdicts = [Verdict(name) for name in engines]
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as temporary:
        folder = Path(temporary)
        notes = folders.save(folder, tokenizer.learned, {})
        copy_forms(source, folder)
        for verdict in verdicts:
            try:
                with engine_errors(f"{verdict.engine} was not tried"):
                    verdict.encode = engines[verdict.engine](folder, tokenizer.learned)
            except Refusal as refusal:
                verdict.notes.append(str(refusal))

    done: Counter[str] = Counter()
    for name, part in parts:
        content = part.encode(errors="surrogateescape")
        text = content.decode(errors="replace")
        ours = tokenizer.encode(text)
        for verdict in verdicts:
            _compare(verdict, tokenizer, name, done[name], text, ours)
        done[name] += len(content)
        show(done.total())
        if not any(verdict.encode for verdict in verdicts):
            break
    return verdicts, notes


def copy_forms(source: Path, folder: Path) -> None:
    """Copy the forms in a folder or of a file over those of another folder."""
    if source.name in (MANIFEST, VOCAB):
        source = source.parent
    for name in (TOKENIZER_JSON, RANKS):
        original = source / name if source.is_dir() else source
        if original.suffix == Path(name).suffix and original.is_file():
            shutil.copyfile(original, folder / name)


def _compare(
    verdict: Verdict, tokenizer: Tokenizer, name: str, start: int, text: str, ours: list[int]
) -> None:
    if verdict.encode is None:
        return
    try:
        with engine_errors(f"{verdict.engine} gave up on {name} from byte {start}"):
            theirs = list(verdict.encode(text))
    except Refusal as refusal:
        verdict.encode, verdict.gave_up = None, True
        verdict.notes.append(str(refusal))
        return

    verdict.texts += 1
    verdict.bytes += len(text.encode())
    verdict.ids += len(ours)
    if theirs != ours:
        if not verdict.differing:
            verdict.notes.append(f"{verdict.engine} differs first at")
            verdict.notes += _difference(tokenizer, name, start, ours, theirs)
        verdict.differing += 1


def _difference(
    tokenizer: Tokenizer, name: str, start: int, ours: list[int], theirs: list[int]
) -> Iterator[str]:
    """The first place where ids differ, the text before it, and up to six tokens of each."""
    pairs = enumerate(itertools.zip_longest(ours, theirs))
    same = next(index for index, (mine, other) in pairs if mine != other)
    before = tokenizer.decode(ours[:same])
    yield f"  {name}, byte {start + len(before)}, after {before[-30:].decode(errors='replace')!r}"
    for side, ids in (("ours:", ours), ("theirs:", theirs)):
        tokens = " ".join(
            readable_token(tokenizer.vocab.get(number, b"?")) for number in ids[same : same + 6]
        )
        yield f"    {side:7} {tokens or '(the end)'}"


# Compression

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
    return Sheet([], columns_of(HEADINGS, rows), notes=[NOTE])


def _ratio(number: int, base: int) -> str:
    return f"{number / base:.3f}" if base else "-"


# Tokens of a vocabulary that no text gives, and those that given texts never give.
#
# A token is *dead* if its own bytes, merged alone, are not this one token. Learned lists have no
# dead tokens, lists that were edited or joined do. It is *cut* if it is alive but the pattern cuts
# its text, and *part* if it is alive but not UTF-8. The others are *unused* if the texts never give
# them.

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


def unused(
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

    sheets = [Sheet([], columns_of(["class", "tokens", "share", "meaning"], classes))]
    if first:
        sheets.append(Sheet([], columns_of(["id", "token", "class"], tokens), notes=notes))
    return sheets
