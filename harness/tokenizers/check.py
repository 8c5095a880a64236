"""Encode a text with every installed engine: the same ids as ours, or the first difference and why.

A package can add an engine with an entry point in the group `harness.engines`. Its `package.module:function` gets a
folder with vocab.json, merges.txt, tokenizer.json, ranks.tiktoken (if the tokenizer fits in it) and manifest.json, and
returns a function from str to ids. If the first has a true attribute `takes_bytes`, the second also gets bytes that are
not UTF-8. It may raise anything to say that it cannot.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import regex

from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import resolve
from harness.common.units import one_line
from harness.tokenizers import huggingface, tiktoken
from harness.tokenizers.folder import Manifest, manifest_in, write
from harness.tokenizers.learned import Learned
from harness.tokenizers.merges_file import read_ranks
from harness.tokenizers.model import Tokenizer

ENTRY_POINTS = "harness.engines"
PART = 1 << 18
"""Bytes given to an engine at a time."""
AROUND = 30
TRIALS = 400
# A character of each class that every engine has, to replace one that it may lack.
WELL_KNOWN = {r"\p{Lu}": "Ж", r"\p{L}": "ж", r"\p{N}": "٣", r"\p{M}": "\u0301", r"\s": "\u3000", ".": "…"}
Encode = Callable[[Any], Sequence[int]]
Engine = Callable[[Path], Encode]


def open_tokenizers(folder: Path) -> Encode:
    """Hugging Face's tokenizers, 0.x or 1.x, from tokenizer.json, without truncation, padding or a template."""
    opened = installed("tokenizers").Tokenizer.from_file(str(existing(folder / huggingface.FILE)))
    if hasattr(opened, "no_padding"):
        opened.no_padding()
        opened.no_truncation()
    else:  # since 1.0, which compiles a pattern when it first meets a text
        opened.padding = opened.truncation = None
        opened.encode("a")
    return lambda text: list(opened.encode(text, add_special_tokens=False).ids)


def open_tiktoken(folder: Path) -> Encode:
    """tiktoken, from the ranks with the manifest's pattern and special tokens."""
    module, described = installed("tiktoken"), manifest_in(folder)
    ranks = read_ranks(existing(folder / tiktoken.FILE).read_bytes())
    assert isinstance(described, Manifest)
    pattern = tiktoken.ANYTHING if described.pattern is None else described.pattern
    encoding = module.Encoding("ours", pat_str=pattern, mergeable_ranks=ranks, special_tokens=described.special_tokens)
    return lambda text: list(encoding.encode(text, allowed_special="all"))


def open_gigatoken(folder: Path) -> Encode:
    """gigatoken, from tokenizer.json. It takes any bytes, but splits invalid ones by its own rules, so it gets text."""
    opened = installed("gigatoken").Tokenizer(existing(folder / huggingface.FILE))
    return lambda text: [int(number) for number in opened.encode(text)]


OURS = {"tokenizers": open_tokenizers, "tiktoken": open_tiktoken, "gigatoken": open_gigatoken}


def engines() -> dict[str, Engine]:
    """Every engine by name, those of other packages last."""
    announced = importlib.metadata.entry_points(group=ENTRY_POINTS)
    return {**OURS, **{entry.name: resolve(entry.value) for entry in announced if entry.name not in OURS}}


def version_of(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def installed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Refusal(f"it is not installed; run python -m pip install {module}", UNMEASURED) from error


def existing(path: Path) -> Path:
    if not path.is_file():
        raise Refusal(f"there is no {path.name}", UNMEASURED)
    return path


@dataclass(frozen=True)
class Part:
    """A part of a text: the text's name, where the part starts in it, and the bytes."""

    name: str
    start: int
    content: bytes


@dataclass(frozen=True)
class Difference:
    """The first difference: the text, the byte from which ids differ, the text before, up to six tokens of each."""

    place: str
    byte: int
    before: str
    ours: list[bytes]
    theirs: list[bytes]
    smallest: str
    reason: str

    def lines(self) -> list[str]:
        """The difference for people."""
        lines = [
            f"  {self.place}, byte {self.byte}, after {self.before!r}",
            f"    ours:   {_tokens(self.ours)}",
            f"    theirs: {_tokens(self.theirs)}",
        ]
        if self.smallest:
            points = " ".join(f"U+{ord(character):04X}" for character in self.smallest[:12])
            lines.append(f"    smallest text that differs: {self.smallest[:80]!r} ({points})")
        return [*lines, f"    reason: {self.reason}"] if self.reason else lines


@dataclass
class Verdict:
    """The result for one engine; `unable` says why it was not tried, or on what it gave up."""

    engine: str
    unable: str | None = None
    texts: int = 0
    bytes: int = 0
    ids: int = 0
    differing: int = 0
    replaced: int = 0
    """Texts that are not UTF-8 and were given with U+FFFD in place of invalid bytes."""
    first: Difference | None = None
    gave_up: bool = False

    def record(self) -> dict[str, Any]:
        """The verdict as plain data; tokens in hexadecimal digits."""
        record = asdict(self)
        del record["gave_up"]
        if record["first"] is not None:
            for side in ("ours", "theirs"):
                record["first"][side] = [token.hex() for token in record["first"][side]]
        return record


def check(
    tokenizer: Tokenizer,
    parts: Iterable[Part],
    engines: Mapping[str, Engine],
    folder: Path,
    on_progress: Callable[[int], None] = lambda _: None,
) -> list[Verdict]:
    """Encode every part with ours and with each engine that can open the folder, and compare every id."""
    verdicts = [Verdict(name) for name in engines]
    opened: list[tuple[Verdict, Encode, bool]] = []
    for verdict, engine in zip(verdicts, engines.values(), strict=True):
        try:
            opened.append((verdict, engine(folder), getattr(engine, "takes_bytes", False)))
        except Exception as error:  # whatever an engine raises says why it cannot
            verdict.unable = one_line(str(error)) or type(error).__name__
    done = 0
    for part in parts:
        if all(verdict.unable is not None for verdict, _, _ in opened):
            break
        text = part.content.decode(errors="replace")
        valid = text.encode() == part.content
        ours = tokenizer.encode(text)
        ours_of_bytes = ours if valid else tokenizer.encode(part.content)
        for verdict, encode, takes_bytes in opened:
            if verdict.unable is None:
                given, expected = (part.content, ours_of_bytes) if takes_bytes and not valid else (text, ours)
                verdict.replaced += not valid and not takes_bytes
                _compare(verdict, tokenizer, encode, part, given, expected)
        done += len(part.content)
        on_progress(done)
    return verdicts


def _compare(
    verdict: Verdict, tokenizer: Tokenizer, encode: Encode, part: Part, given: str | bytes, ours: list[int]
) -> None:
    try:
        theirs = list(encode(given))
    except BaseException as error:  # engines in Rust panic, which is not an Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        verdict.gave_up = True
        verdict.unable = f"it gave up on {part.name} from byte {part.start}: {one_line(str(error))[:300]}"
        return
    verdict.texts += 1
    verdict.bytes += len(part.content)
    verdict.ids += len(ours)
    if theirs != ours:
        verdict.differing += 1
        verdict.first = verdict.first or _difference(tokenizer, encode, part, given, ours, theirs)


def _difference(
    tokenizer: Tokenizer, encode: Encode, part: Part, given: str | bytes, ours: list[int], theirs: list[int]
) -> Difference:
    content = given.encode() if isinstance(given, str) else given
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
    byte = len(tokenizer.decode(ours[:same]))
    smallest = _smallest(tokenizer, encode, content, byte) if isinstance(given, str) else ""
    return Difference(
        part.name,
        part.start + byte,
        content[max(0, byte - AROUND) : byte].decode(errors="replace"),
        [tokenizer.vocab.get(number, b"?") for number in ours[same : same + 6]],
        [tokenizer.vocab.get(number, b"?") for number in theirs[same : same + 6]],
        smallest,
        _reason(tokenizer, encode, smallest),
    )


def _smallest(tokenizer: Tokenizer, encode: Encode, content: bytes, byte: int) -> str:
    """A text from around the difference that still differs and from which nothing can be removed; empty if none."""
    text = content[max(0, byte - 200) : byte + 200].decode(errors="ignore")
    if not _differs(tokenizer, encode, text):
        text = content.decode(errors="ignore")
        if len(text) > 20_000 or not _differs(tokenizer, encode, text):
            return ""
    width, trials = max(1, len(text) // 2), 0
    while width and trials < TRIALS:
        start, shorter = 0, False
        while start < len(text) and trials < TRIALS:
            trial = text[:start] + text[start + width :]
            trials += 1
            if trial and _differs(tokenizer, encode, trial):
                text, shorter = trial, True
            else:
                start += width
        width = width if shorter and width == 1 else width // 2
    return text


def _differs(tokenizer: Tokenizer, encode: Encode, text: str) -> bool:
    return list(encode(text)) != tokenizer.encode(text)


def _reason(tokenizer: Tokenizer, encode: Encode, smallest: str) -> str:
    """Which character the engine puts into another class than `regex` does, if replacing it removes the difference."""
    for character in dict.fromkeys(smallest):
        if character.isascii():
            continue
        kind = next(kind for kind in WELL_KNOWN if regex.fullmatch(kind, character, regex.DOTALL))
        if not _differs(tokenizer, encode, smallest.replace(character, WELL_KNOWN[kind])):
            name = unicodedata.name(character, "unknown to this Python")
            return (
                f"it puts U+{ord(character):04X} ({name}) into another class of characters than `regex` "
                f"{regex.__version__} does, as engines with other tables of Unicode do"
            )
    return ""


def _tokens(tokens: Sequence[bytes]) -> str:
    return " ".join(_token(token) for token in tokens) or "(the end)"


def _token(token: bytes) -> str:
    try:
        return repr(token.decode())
    except UnicodeDecodeError:
        return repr(token)


def parts_of(name: str, blocks: Iterable[bytes], size: int = PART) -> Iterator[Part]:
    """A text in parts of about `size` bytes, which end after a line if possible, and else between characters."""
    waiting, start = b"", 0
    for block in blocks:
        waiting += block
        while len(waiting) >= 2 * size:
            between = (place for place in range(size, size - 4, -1) if waiting[place] & 0xC0 != 0x80)
            end = waiting.rfind(b"\n", 0, size) + 1 or next(between, size)
            yield Part(name, start, waiting[:end])
            waiting, start = waiting[end:], start + end
    if waiting:
        yield Part(name, start, waiting)


@contextmanager
def every_form(learned: Learned, source: Path | None) -> Iterator[tuple[Path, list[str]]]:
    """A folder with the tokenizer in every form, and notes about what some cannot express.

    A form that is in `source` is copied from there, because that is the file which people load.
    """
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as made:
        folder = Path(made)
        notes = write(folder, learned, None, {})
        for name in (huggingface.FILE, tiktoken.FILE):
            original = source / name if source is not None and source.is_dir() else source
            if original is not None and original.is_file() and _is_form(original, name):
                shutil.copyfile(original, folder / name)
        yield folder, notes


def _is_form(path: Path, name: str) -> bool:
    return path.suffix == Path(name).suffix and path.name not in ("vocab.json", "manifest.json")
