"""Encode a text with every installed engine: the same ids as ours, or the first difference."""

from __future__ import annotations

import importlib.metadata
import itertools
import random
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, one_line
from harness.tokenizers import folder as folders
from harness.tokenizers.forms import RANKS, TOKENIZER_JSON, load_tokenizers, tiktoken_encoding
from harness.tokenizers.learned import Learned
from harness.tokenizers.merges_file import read_ranks
from harness.tokenizers.model import Tokenizer, joined, load
from harness.tokenizers.statistics import readable_token

AROUND = 30
Encode = Callable[[str], Sequence[int]]
Engine = Callable[[Path], Encode]
"""Gets a folder with a tokenizer in every form that can hold it. It may raise anything to say that it cannot."""


def open_tokenizers(folder: Path) -> Encode:
    """Hugging Face's tokenizers, 0.x or 1.x, from tokenizer.json, without truncation, padding or a template."""
    opened = load_tokenizers(existing(folder / TOKENIZER_JSON))
    if hasattr(opened, "no_padding"):
        opened.no_padding()
        opened.no_truncation()
    else:  # since 1.0
        opened.padding = opened.truncation = None
    return lambda text: list(opened.encode(text, add_special_tokens=False).ids)


def open_tiktoken(folder: Path) -> Encode:
    """tiktoken, from the ranks with the manifest's pattern and special tokens."""
    ranks, learned = read_ranks(existing(folder / RANKS).read_bytes()), load(folder).learned
    encoding = tiktoken_encoding(ranks, learned.special_tokens, learned.pattern)
    return lambda text: list(encoding.encode(text, allowed_special="all"))


def open_gigatoken(folder: Path) -> Encode:
    """gigatoken, from tokenizer.json. It takes any bytes, but splits invalid ones by its own rules, so it gets text."""
    opened = extra("gigatoken", "this engine", "engines").Tokenizer(existing(folder / TOKENIZER_JSON))
    return lambda text: [int(number) for number in opened.encode(text)]


ENGINES = {"tokenizers": open_tokenizers, "tiktoken": open_tiktoken, "gigatoken": open_gigatoken}


def version_of(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def existing(path: Path) -> Path:
    if not path.is_file():
        raise Refusal(f"{path.name} not found", UNMEASURED)
    return path


class Part(NamedTuple):
    """A part of a text: the text's name, where the part starts in it, and the bytes."""

    name: str
    start: int
    content: bytes


@dataclass
class Verdict:
    """The result for one engine; `unable` says why it was not tried, or on what it gave up."""

    engine: str
    unable: str | None = None
    gave_up: bool = False
    texts: int = 0
    bytes: int = 0
    ids: int = 0
    differing: int = 0
    notes: list[str] = field(default_factory=list)
    """For people: why it was not tried, and where it differs first."""


def sheet(verdicts: Sequence[Verdict], caption: str, notes: Sequence[str]) -> Sheet:
    """A row for each engine, and below why it was not tried and where it differs first."""

    def cells(value: Callable[[Verdict], str]) -> list[str]:
        return [value(verdict) if verdict.texts else "-" for verdict in verdicts]

    columns = [
        Column("engine", [f"{row.engine} {version_of(row.engine)}".strip() for row in verdicts], figures=False),
        Column("bytes", cells(lambda row: bytes_text(row.bytes))),
        Column("ids", cells(lambda row: count_text(row.ids))),
        Column("texts", cells(lambda row: count_text(row.texts))),
        Column("differ", cells(lambda row: count_text(row.differing))),
    ]
    return Sheet([caption], columns, [""] * len(verdicts), [*(note for row in verdicts for note in row.notes), *notes])


def check(
    tokenizer: Tokenizer,
    parts: Iterable[Part],
    engines: Mapping[str, Engine],
    folder: Path,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[Verdict]:
    """Encode every part with ours and with each engine that can open the folder, and compare every id."""
    verdicts = [Verdict(name) for name in engines]
    opened: list[tuple[Verdict, Encode]] = []
    for verdict, engine in zip(verdicts, engines.values(), strict=True):
        try:
            opened.append((verdict, engine(folder)))
        except Exception as error:  # whatever an engine raises says why it cannot
            verdict.unable = one_line(str(error)) or type(error).__name__
            verdict.notes.append(f"{verdict.engine} was not tried: {verdict.unable}")
    done = 0
    for part in parts:
        if all(verdict.unable is not None for verdict, _ in opened):
            break
        text = part.content.decode(errors="replace")
        ours = tokenizer.encode(text)
        for verdict, encode in opened:
            if verdict.unable is None:
                _compare(verdict, tokenizer, encode, part, text, ours)
        done += len(part.content)
        on_progress(done)
    return verdicts


def _compare(verdict: Verdict, tokenizer: Tokenizer, encode: Encode, part: Part, text: str, ours: list[int]) -> None:
    try:
        theirs = list(encode(text))
    except BaseException as error:  # engines in Rust panic, which is not an Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        verdict.gave_up = True
        verdict.unable = f"it gave up on {part.name} from byte {part.start}: {one_line(str(error))[:300]}"
        verdict.notes.append(f"{verdict.engine}: {verdict.unable}")
        return
    verdict.texts += 1
    verdict.bytes += len(part.content)
    verdict.ids += len(ours)
    if theirs != ours:
        if not verdict.differing:
            verdict.notes.append(f"{verdict.engine} differs first at")
            verdict.notes += _difference(tokenizer, part, text.encode(), ours, theirs)
        verdict.differing += 1


def _difference(tokenizer: Tokenizer, part: Part, content: bytes, ours: list[int], theirs: list[int]) -> Iterator[str]:
    """The first place where ids differ, the text before it, and up to six tokens of each."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
    byte = len(tokenizer.decode(ours[:same]))
    before = content[max(0, byte - AROUND) : byte].decode(errors="replace")
    yield f"  {part.name}, byte {part.start + byte}, after {before!r}"
    for side, ids in (("ours:", ours), ("theirs:", theirs)):
        tokens = " ".join(readable_token(tokenizer.vocab.get(number, b"?")) for number in ids[same : same + 6])
        yield f"    {side:7} {tokens or '(the end)'}"


def parts_of(name: str, blocks: Iterable[bytes]) -> Iterator[Part]:
    """A text in parts, divided between characters."""
    start = 0
    for content in (text.encode(errors="surrogateescape") for text in joined(blocks) if text):
        yield Part(name, start, content)
        start += len(content)


@contextmanager
def every_form(learned: Learned, source: Path) -> Iterator[tuple[Path, list[str]]]:
    """A folder with the tokenizer in every form, and notes about what some cannot express.

    A form that is in `source` is copied from there, because that is the file which people load.
    """
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as made:
        folder = Path(made)
        notes = folders.save(folder, learned, {})
        for name in (TOKENIZER_JSON, RANKS):
            original = source / name if source.is_dir() else source
            if original.suffix == Path(name).suffix and original.is_file():
                shutil.copyfile(original, folder / name)
        yield folder, notes


# Generated text: many scripts, every kind of blank and line end, contractions, special tokens whole and truncated,
# random characters, random bytes. Random characters are those of Unicode 3.2, so engines with older tables than ours
# have them as well.

MIXED_PART = 1 << 16
DIGITS = "0123456789٣٤५६७๒四Ⅷ½²①"
SIGNS = ".,;:!?-–—…'\"’‘“”()[]{}<>/\\|@#$%^&*_+=~`«»¿¡、。「」・€£¥§©®™°±×÷→∀∑"
CLUSTERS = ["e\u0301", "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "☺\ufe0f", "ﬁ", "ǅ", "İ", "ß", "ẞ"]
CLUSTERS += ["\u0301", "x\u20e3", "\x00", "\x7f", "\ufffd"]
STRANGE = (
    "  |   |\t|\n|\n\n|\r\n|\r| \n|\n |\t\t|\v|\f|\u00a0|\u3000|\u2003|"
    "\u2028|\u0085|\u200b|\ufeff|\u1680|\u180e| \u00a0 |\x1c"
)
BLANKS = [*[" "] * 60, *[""] * 20, *STRANGE.split("|")]
ENDINGS = ["'s", "'S", "'t", "'re", "'RE", "'ve", "'m", "'ll", "'LL", "'d", "'D", "'ſ", "’s", "'", "''", *[""] * 135]


def mixed_parts(seed: int, size: int, special_tokens: Sequence[str] = ()) -> Iterator[bytes]:
    """Parts of 64 KiB, `size` bytes in all; every eighth is random bytes."""
    chance, category = random.Random(seed), unicodedata.ucd_3_2_0.category
    assigned = [sign for sign in map(chr, range(0x11_0000)) if category(sign) not in ("Cn", "Cs", "Co")]
    letters = (sign for sign in assigned if category(sign)[0] in "LM")
    # Every 128 characters are about one script; behind the last alphabets are Chinese, Korean and Yi.
    scripts = [[*group] for _, group in itertools.groupby(letters, lambda sign: min(ord(sign) >> 7, 0x3400 >> 7))]
    tokens = [part for text in special_tokens for part in (text, text[:-1], text[1:]) if part]
    common = [*scripts[:2] * 8, *[DIGITS, SIGNS] * 8, *[CLUSTERS, assigned, tokens or CLUSTERS] * 4]
    for number, start in enumerate(range(0, size, MIXED_PART), 1):
        room, text = min(MIXED_PART, size - start), bytearray()
        while len(text) < room:
            signs = chance.choices(chance.choice([*common, *scripts]), k=chance.randint(1, 6))
            text += "".join([*signs, chance.choice(ENDINGS), chance.choice(BLANKS)]).encode()
        whole = text[:room].decode(errors="ignore").encode().ljust(room, b".")
        yield chance.randbytes(room) if number % 8 == 0 else whole
