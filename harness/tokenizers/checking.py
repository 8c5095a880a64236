"""The same ids from every engine, or where they differ first, with the text around and, where it shows, the reason."""

from __future__ import annotations

import shutil
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import regex

from harness.common.units import one_line
from harness.tokenizers import huggingface, ranks
from harness.tokenizers.engines import Encode, Engine
from harness.tokenizers.folder import write
from harness.tokenizers.learned import Learned
from harness.tokenizers.plain import Tokenizer

PART = 1 << 18
"""So many bytes an engine is given at a time."""
AROUND = 30
TRIALS = 400
# A character of each class that every engine knows, to try in the place of one that it may not.
WELL_KNOWN = {r"\p{Lu}": "Ж", r"\p{L}": "ж", r"\p{N}": "٣", r"\p{M}": "\u0301", r"\s": "\u3000", ".": "…"}


@dataclass(frozen=True)
class Difference:
    """The first difference in a part of the text: where it is, and what stands there."""

    place: str
    """Where the text is from."""
    byte: int
    """The offset in that text from which the ids differ."""
    before: str
    ours: list[bytes]
    theirs: list[bytes]
    smallest: str
    reason: str


@dataclass
class Verdict:
    """What comparing with one engine came to; `unable` says why it was not tried, or on what it gave up."""

    engine: str
    unable: str | None = None
    gave_up: bool = False
    texts: int = 0
    bytes: int = 0
    ids: int = 0
    replaced: int = 0
    """Texts that are not UTF-8 and were given with U+FFFD in place of what is wrong."""
    differing: int = 0
    first: Difference | None = None


@dataclass(frozen=True)
class Part:
    """A text to compare: where it is from, and where it begins there."""

    name: str
    start: int
    content: bytes


@dataclass
class Checked:
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def tried(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.unable is None]

    @property
    def differing(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.differing]


def check(
    tokenizer: Tokenizer,
    parts: Iterable[Part],
    engines: Mapping[str, Engine],
    folder: Path,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Checked:
    """Encode every part with ours and with each engine that can open the folder, and compare every id."""
    checked = Checked([Verdict(name) for name in engines])
    opened: list[tuple[Verdict, Encode, bool]] = []
    for verdict, engine in zip(checked.verdicts, engines.values(), strict=True):
        try:
            opened.append((verdict, engine(folder), getattr(engine, "takes_bytes", False)))
        except Exception as error:  # whatever an engine raises, it says why it cannot
            verdict.unable = one_line(str(error)) or type(error).__name__
    done = 0
    for part in parts:
        if not any(verdict.unable is None for verdict, _, _ in opened):
            break
        text = part.content.decode(errors="replace")
        whole = text.encode() == part.content
        ours = tokenizer.encode(text)
        ours_of_bytes = ours if whole else tokenizer.encode(part.content)
        for verdict, encode, takes_bytes in opened:
            if verdict.unable is None:
                given, expected = (part.content, ours_of_bytes) if takes_bytes and not whole else (text, ours)
                verdict.replaced += not whole and not takes_bytes
                _compare(verdict, tokenizer, encode, part, given, expected)
        done += len(part.content)
        on_progress(done)
    return checked


def _compare(
    verdict: Verdict, tokenizer: Tokenizer, encode: Encode, part: Part, given: str | bytes, ours: list[int]
) -> None:
    try:
        theirs = list(encode(given))
    except BaseException as error:  # engines in Rust panic, which is no Exception
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
        if verdict.first is None:
            verdict.first = _difference(tokenizer, encode, part, given, ours, theirs)


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
    """A text from around the difference that still differs and of which nothing can be left out; empty if none does."""
    text = content[max(0, byte - 200) : byte + 200].decode(errors="ignore")
    if not _differs(tokenizer, encode, text):
        text = content.decode(errors="ignore")
        if len(text) > 20_000 or not _differs(tokenizer, encode, text):
            return ""
    width, trials = max(1, len(text) // 2), 0
    while width and trials < TRIALS:
        start, shorter = 0, False
        while start < len(text) and trials < TRIALS:
            tried = text[:start] + text[start + width :]
            trials += 1
            if tried and _differs(tokenizer, encode, tried):
                text, shorter = tried, True
            else:
                start += width
        width = width if shorter and width == 1 else width // 2
    return text


def _differs(tokenizer: Tokenizer, encode: Encode, text: str) -> bool:
    return list(encode(text)) != tokenizer.encode(text)


def _reason(tokenizer: Tokenizer, encode: Encode, smallest: str) -> str:
    """Which character the engine takes for one of another class than `regex` does, if putting another mends it."""
    for character in dict.fromkeys(smallest):
        if character.isascii():
            continue
        kind = next(kind for kind in WELL_KNOWN if regex.fullmatch(kind, character, regex.DOTALL))
        if not _differs(tokenizer, encode, smallest.replace(character, WELL_KNOWN[kind])):
            name = unicodedata.name(character, "no name known to this Python")
            return (
                f"its expressions know U+{ord(character):04X} ({name}) for another class of characters than `regex` "
                f"{version_of_regex()} does, as engines with other tables of Unicode do"
            )
    return ""


def version_of_regex() -> str:
    return str(regex.__version__)


def parts_of(name: str, blocks: Iterable[bytes], size: int = PART) -> Iterator[Part]:
    """A text in parts of about `size` bytes; where it can be, a part ends after a line, and else between characters."""
    waiting, start = b"", 0
    for block in blocks:
        waiting += block
        while len(waiting) >= 2 * size:
            end = waiting.rfind(b"\n", 0, size) + 1 or _between_characters(waiting, size)
            yield Part(name, start, waiting[:end])
            waiting, start = waiting[end:], start + end
    if waiting:
        yield Part(name, start, waiting)


def _between_characters(content: bytes, end: int) -> int:
    return next((place for place in range(end, end - 4, -1) if content[place] & 0xC0 != 0x80), end)


@contextmanager
def every_form(learned: Learned, source: Path | None) -> Iterator[tuple[Path, list[str]]]:
    """A folder with the tokenizer in every form, and what could not be said in some.

    A form that lies in `source` is taken from there as it is, for it is that file which people load.
    """
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as made:
        folder = Path(made)
        said = write(folder, learned, None, {})
        for name in (huggingface.FILE, ranks.FILE):
            original = source / name if source is not None and source.is_dir() else source
            if original is not None and original.is_file() and _is_form(original, name):
                shutil.copyfile(original, folder / name)
        yield folder, said


def _is_form(path: Path, name: str) -> bool:
    return path.suffix == Path(name).suffix and path.name not in ("vocab.json", "manifest.json")


def shown(difference: Difference) -> Sequence[str]:
    """The difference in lines, for people."""
    lines = [
        f"  {difference.place}, byte {difference.byte}, after {difference.before!r}",
        f"    ours:   {_tokens(difference.ours)}",
        f"    theirs: {_tokens(difference.theirs)}",
    ]
    if difference.smallest:
        points = " ".join(f"U+{ord(character):04X}" for character in difference.smallest[:12])
        lines.append(f"    smallest text that differs: {difference.smallest[:80]!r} ({points})")
    if difference.reason:
        lines.append(f"    reason: {difference.reason}")
    return lines


def _tokens(tokens: Sequence[bytes]) -> str:
    return " ".join(repr(token.decode()) if _is_text(token) else repr(token) for token in tokens) or "(the end)"


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_record(checked: Checked) -> list[dict[str, Any]]:
    """The verdicts as plain data, for programs."""
    return [
        {
            "engine": verdict.engine,
            "unable": verdict.unable,
            "texts": verdict.texts,
            "bytes": verdict.bytes,
            "ids": verdict.ids,
            "differing": verdict.differing,
            "replaced": verdict.replaced,
            "first": None
            if verdict.first is None
            else {
                "place": verdict.first.place,
                "byte": verdict.first.byte,
                "before": verdict.first.before,
                "ours": [token.hex() for token in verdict.first.ours],
                "theirs": [token.hex() for token in verdict.first.theirs],
                "smallest": verdict.first.smallest,
                "reason": verdict.first.reason,
            },
        }
        for verdict in checked.verdicts
    ]
