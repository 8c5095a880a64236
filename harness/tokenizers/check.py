"""Tokenizers compared: whether every installed engine gives the same ids as ours, and decodes them to
the same text; how well tokenizers compress texts.
"""

from __future__ import annotations

import codecs
import random
import re
import shutil
import string
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal, extra
from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, share_text, token_text
from harness.common.values import first_difference
from harness.measure.machine import version
from harness.tokenizers.folder import as_tiktoken, engine_errors, load_tokenizers, save
from harness.tokenizers.forms import MANIFEST, RANKS, TOKENIZER_JSON, VOCAB, read_ranks
from harness.tokenizers.learned import Learned
from harness.tokenizers.model import Progress, Tokenizer


class Opened(NamedTuple):
    """What an engine does with a tokenizer."""

    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str]


Engine = Callable[[Path, Learned], Opened]
"""Gets a folder with a tokenizer in every form that can hold it, and the tokenizer. It may raise
anything to say that it cannot.
"""


def open_tokenizers(folder: Path, _: Learned) -> Opened:
    """Hugging Face's tokenizers, 0.x or 1.x, from tokenizer.json, without truncation, padding or a
    template.
    """
    opened = load_tokenizers(folder / TOKENIZER_JSON)
    if hasattr(opened, "no_padding"):
        opened.no_padding()
        opened.no_truncation()
    else:  # since 1.0
        opened.padding = opened.truncation = None
    return Opened(
        lambda text: opened.encode(text, add_special_tokens=False).ids,
        lambda ids: opened.decode(ids, skip_special_tokens=False),
    )


def open_tiktoken(folder: Path, learned: Learned) -> Opened:
    """tiktoken, from the ranks with the pattern and the special tokens of the tokenizer."""
    encoding = as_tiktoken(read_ranks((folder / RANKS).read_bytes()), learned)
    return Opened(lambda text: encoding.encode(text, allowed_special="all"), encoding.decode)


def open_gigatoken(folder: Path, _: Learned) -> Opened:
    """gigatoken, from tokenizer.json. It takes any bytes, but splits invalid ones by its own rules,
    so it gets text.
    """
    opened = extra("gigatoken", "this engine", "engines").Tokenizer(folder / TOKENIZER_JSON)
    return Opened(
        opened.encode, lambda ids: bytes(opened.decode(list(ids))).decode(errors="replace")
    )


ENGINES = {"tokenizers": open_tokenizers, "tiktoken": open_tiktoken, "gigatoken": open_gigatoken}


@dataclass
class Verdict:
    """The result for one engine; `notes` say why it was not tried, on what it gave up, and where it
    differs first.
    """

    engine: str
    opened: Opened | None = None  # None if it cannot be tried, or no longer
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
        figures = [bytes_text(row.bytes), *map(count_text, (row.ids, row.texts, row.differing))]
        rows.append([f"{row.engine} {version(row.engine)}", *(figures if row.texts else "----")])
        below += row.notes

    headings = ["engine", "bytes", "ids", "texts", "differing"]
    return Sheet([caption], columns_under(headings, rows), notes=[*below, *notes])


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """MISMATCH if an engine differs, UNMEASURED if one gave up or none was compared."""
    if any(verdict.differing for verdict in verdicts):
        return MISMATCH
    gave_up = any(verdict.gave_up for verdict in verdicts)
    return OK if any(verdict.texts for verdict in verdicts) and not gave_up else UNMEASURED


def check_engines(
    tokenizer: Tokenizer,
    source: Path,
    texts: Iterable[tuple[str, Iterable[bytes]]],
    engines: Mapping[str, Engine],
    show: Progress = lambda _: None,
) -> tuple[list[Verdict], list[str]]:
    """Encode texts, each with a name, with ours and with each engine that can open a form of it, and
    compare every id and the decoded text.

    A form that is in `source` is copied from there, because that is the file which people load.
    Returns notes about the others, too.
    """
    verdicts = [Verdict(name) for name in engines]
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as temporary:
        folder = Path(temporary)
        notes = save(folder, tokenizer.learned, {})
        copy_forms(source, folder)
        for verdict in verdicts:
            try:
                with engine_errors(f"{verdict.engine} was not tried"):
                    verdict.opened = engines[verdict.engine](folder, tokenizer.learned)
            except Refusal as refusal:
                verdict.notes.append(str(refusal))

    done = 0
    for name, blocks in texts:
        before = done
        # A character whose bytes are divided between two blocks is put together.
        for part in codecs.iterdecode(blocks, "utf-8", "surrogateescape"):
            content = part.encode(errors="surrogateescape")
            text = content.decode(errors="replace")
            encoded = Encoded(name, done - before, text, tokenizer.encode(text))
            for verdict in verdicts:
                _compare(verdict, tokenizer, encoded)
            done += len(content)
            show(done)
    return verdicts, notes


def copy_forms(source: Path, folder: Path) -> None:
    """Copy the forms in a folder or of a file over those of another folder."""
    if source.name in (MANIFEST, VOCAB):
        source = source.parent
    for name in (TOKENIZER_JSON, RANKS):
        original = source / name if source.is_dir() else source
        if original.suffix == Path(name).suffix and original.is_file():
            shutil.copyfile(original, folder / name)


class Encoded(NamedTuple):
    """A part of a text, the byte from which it is, and our ids."""

    name: str
    start: int
    text: str
    ids: list[int]


def _compare(verdict: Verdict, tokenizer: Tokenizer, part: Encoded) -> None:
    """Add a part to the figures of an engine that has not given up, and the first difference."""
    if verdict.opened is None:
        return
    try:
        with engine_errors(f"{verdict.engine} gave up on {part.name} from byte {part.start}"):
            theirs = list(verdict.opened.encode(part.text))
            decoded = verdict.opened.decode(part.ids)
    except Refusal as refusal:
        verdict.opened, verdict.gave_up = None, True
        verdict.notes.append(str(refusal))
        return

    expected = tokenizer.decode_text(part.ids, errors="replace")
    verdict.texts += 1
    verdict.bytes += len(part.text.encode())
    verdict.ids += len(part.ids)
    if theirs == part.ids and decoded == expected:
        return
    if not verdict.differing and theirs != part.ids:
        verdict.notes.append(f"{verdict.engine} differs first at")
        verdict.notes += _difference(tokenizer, part, theirs)
    elif not verdict.differing:
        place = max(0, first_difference(expected, decoded) - 30)
        mine, other = expected[place : place + 60], decoded[place : place + 60]
        verdict.notes.append(f"{verdict.engine} decodes otherwise, first in {part.name}")
        verdict.notes += [f"    ours:   {mine!r}", f"    theirs: {other!r}"]
    verdict.differing += 1


def _difference(tokenizer: Tokenizer, part: Encoded, theirs: list[int]) -> list[str]:
    """The first place where ids differ, the text before it, and up to six tokens of each."""
    same = first_difference(part.ids, theirs)
    before = tokenizer.decode(part.ids[:same])
    after = before[-30:].decode(errors="replace")
    lines = [f"  {part.name}, byte {part.start + len(before)}, after {after!r}"]
    for side, ids in (("ours:  ", part.ids), ("theirs:", theirs)):
        tokens = [tokenizer.vocab.get(number, b"?") for number in ids[same : same + 6]]
        lines.append(f"    {side} " + (" ".join(map(readable_token, tokens)) or "(the end)"))
    return lines


# Generated text: many scripts, every kind of space and line end, contractions, special tokens whole
# and truncated, random characters, random bytes

PART = 1 << 16
LETTERS = string.ascii_letters + "éüßñçøåœÆ"
DIGITS = "0123456789٣٤५६७๒四Ⅷ½²①"
SIGNS = ".,;:!?-–—…'\"’‘“”()[]{}<>/\\|@#$%^&*_+=~`«»¿¡、。「」・€£¥§©®™°±×÷→∀∑"
CLUSTERS = (
    "e\u0301 👩\u200d👩\u200d👧 🇩🇪 👍🏽 ☺\ufe0f ﬁ ǅ İ ß ẞ \u0301 x\u20e3 \x00 \x7f \ufffd "
    # word characters to one engine and not to another, and letters with two cases in one of them
    "می\u200cروم क्\u200dष ² ³ ¹ ¼ ½ ¾ Ⓐ \u212a \u0131 \u0345"
)
STRANGE = (
    "  |   |\t|\n|\n\n|\r\n|\r| \n|\n |\t\t|\v|\f|\u00a0|\u3000|\u2003|"
    "\u2028|\u0085|\u200b|\ufeff|\u1680|\u180e| \u00a0 |\x1c"
)
CONTRACTIONS = "'s 'S 't 're 'RE 've 'm 'll 'LL 'd 'D 'ſ ’s ' ''"
ASSIGNED_FIRST = (1000, 8000, 90_000)
"""How many of the first assigned characters letters are from: alphabets, all scripts but those of
China and Korea, and nearly all.
"""


def mixed_parts(size: int, special_tokens: Sequence[str] = ()) -> Iterator[bytes]:
    """Parts of 64 KiB, `size` bytes in all; every eighth is random bytes.

    Random characters are neighbours of Unicode 3.2, so engines with older tables than ours have
    them as well.
    """
    chance, category = random.Random(0), unicodedata.ucd_3_2_0.category
    signs = map(chr, range(0x11_0000))
    assigned = [sign for sign in signs if category(sign) not in ("Cn", "Cs", "Co")]
    tokens = [*special_tokens]
    for text in special_tokens:
        tokens += filter(None, (text[:-1], text[1:]))
    alphabets = [LETTERS, LETTERS, DIGITS, SIGNS, CLUSTERS.split(" "), tokens or LETTERS]
    endings, blanks = CONTRACTIONS.split(), ["", " ", *STRANGE.split("|")]

    for number, start in enumerate(range(0, size, PART), 1):
        room = min(PART, size - start)
        if number % 8 == 0:
            yield chance.randbytes(room)
            continue

        content = bytearray()
        while len(content) < room:
            first = chance.randrange(chance.choice(ASSIGNED_FIRST))
            alphabet = chance.choice([chance.choice(alphabets), assigned[first : first + 60]])
            word = "".join(chance.choices(alphabet, k=chance.randint(1, 6)))
            word += chance.choice(endings) if chance.random() < 0.1 else ""
            content += f"{word}{chance.choice([' ', chance.choice(blanks)])}".encode()
        yield content[:room].decode(errors="ignore").encode().ljust(room, b".")


# How well tokenizers compress texts

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
