"""A corpus as one plain file on this machine: its digest, its members, and slices of it."""

from __future__ import annotations

import mmap
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.common import cache
from harness.common.cards import DataCard, Facts
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.values import at_least, parse_bytes
from harness.worker.exchange import file_state

# File systems stamp changes at intervals of up to two seconds: a second change within one would not
# show.
SECONDS_TO_SETTLE = 2.0
BLOCK_BYTES = 1 << 20
TEXT = "text"  # the file of a text in its entry of the cache
CHANGED = "was changed while it was read; run the same again"
TOLERANCE = 10  # a slice may be a tenth shorter than data.bytes, to end with a document or a line


class Part(NamedTuple):
    """Where a corpus comes from, from byte `start` on."""

    start: int
    path: str


class Damaged(Refusal):
    """A file is damaged or incomplete; a fetched one is not worth keeping."""


def check_length(name: str, length: int, limit: int) -> None:
    """Raise Damaged if more bytes have arrived than the card says; 0 is no limit."""
    if limit and length > limit:
        why = f"is longer than its card says ({limit} bytes at most), and was discarded"
        raise Damaged(f"{name} {why}; correct bytes or download on the card", UNMEASURED)


def difference(stated: Facts, facts: Mapping[str, Any]) -> str:
    """The first fact for which a card states another value, in words; empty if there is none.
    None is unknown.
    """
    for fact, value in facts.items():
        expected = getattr(stated, fact, None)
        if None not in (value, expected) and value != expected:
            return f"has {fact} {value}, its card says {expected}"
    return ""


@dataclass(frozen=True)
class CorpusFile:
    """A corpus on this machine: the name on its card, one plain file, its size and digest.

    `parts` locate the text in its sources if it is not read in place; those of a slice are those of
    the whole. `facts` are the card's counts of words; a slice has none. The path of a word table is
    a folder; `bytes` are those of its words, `sha256` is that of words and counts.
    """

    name: str
    path: Path
    bytes: int
    sha256: str
    table: bool = False  # a word store: the words are counted already
    of_text: bool = False  # a table that was made of a text, read as the run reads it
    parameters: Mapping[str, Any] | None = None  # of its generator
    parts: tuple[Part, ...] = ()
    skip: int | None = None  # where in the whole file a slice starts
    # the whole path of a file of yours, which ends with its name
    whole_path: str = field(default="", compare=False)
    facts: Facts = field(default_factory=Facts)

    def is_unchanged(self) -> bool:
        """Whether the file still has this digest."""
        try:
            return digest_of(self.path) == self.sha256
        except OSError:
            return False

    def check_unchanged(self) -> None:
        """Raise Refusal if the file has another digest now."""
        if not self.is_unchanged():
            raise Refusal(f"{self.name} {CHANGED}", UNMEASURED)

    def located(self, sentence: str, offset: int) -> str:
        """A sentence about byte `offset` of this file, which names the member that the byte comes
        from instead.
        """
        if not self.parts:
            return sentence
        whole_offset = offset + (self.skip or 0)
        part = [part for part in self.parts if part.start <= whole_offset][-1]
        sentence = sentence.replace(str(self.path), part.path, 1)
        return sentence.replace(f"at byte {offset}", f"at byte {whole_offset - part.start}", 1)


def check_readable(path: Path) -> None:
    try:
        # checked before it is opened: opening a named pipe can block
        if path.exists() and not path.is_file():
            raise Refusal(
                f"{path} is not a plain file; save it as one first, or pipe it into data.path=-",
                UNMEASURED,
            )
        path.open("rb").close()
    except FileNotFoundError:
        advice = "pass a file that exists, or [A,B] for several"
        if "${" in str(path):
            advice = '${ is not replaced here, let the shell do it: data.path="$NAME"'
        elif str(path).endswith(("'", '"')):
            advice = "its quotes are part of the name here, leave them out"
        raise Refusal(f"{path} not found; {advice}", UNMEASURED) from None
    except OSError as error:
        sentence = f"cannot read {path} ({reason(error)}); make it readable, or pass another file"
        raise Refusal(sentence, UNMEASURED) from error


def digest_of(path: Path) -> str:
    """The file's sha256, cached until the file changes, unless it has just changed: the next change
    might not show.
    """
    if (sealed := cache.sealed_digest(path)) is not None:
        return sealed
    if time.time() - path.stat().st_ctime < SECONDS_TO_SETTLE:
        return cache.digest_of(path)
    key = cache.key_of(file_state(path))
    return str(cache.kept("digests", key, lambda _: cache.digest_of(path)).facts)


def is_slice(card: DataCard) -> bool:
    """Whether a card selects a part of its text."""
    return (card.skip, card.bytes, card.documents) != (None, None, None)


def card_slice(whole: CorpusFile, card: DataCard, special_tokens: Sequence[str]) -> CorpusFile:
    """The slice that data.skip, data.bytes and data.documents select, as a separate file; without
    them the whole.

    A slice starts at the first document's end at or past `skip` bytes. It has at most `bytes` bytes
    and ends with the last document, or else the last line, that ends in the last tenth of them; or
    else with a character.
    """
    if not is_slice(card):
        return whole
    skip = parse_bytes(card.skip or 0, "data.skip", smallest=0)
    length = None if card.bytes is None else parse_bytes(card.bytes, "data.bytes")
    if card.documents is not None:
        at_least("data.documents", card.documents)

    content = mapped(whole.path)
    start, stop = bounds(content, special_tokens, skip, length, card.documents)
    if start == stop and whole.bytes:
        skipped = (
            f"data.skip={skip} leaves nothing of {whole.name}: no document starts there; skip less"
        )
        short = f"data.bytes={length} is less than one character of {whole.name}; set it higher"
        raise Refusal(skipped if start == whole.bytes else short, UNMEASURED)
    return excerpt(whole, content, start, stop)


def mapped(path: Path) -> mmap.mmap | bytes:
    """What is in a file, to be searched without reading it whole."""
    with path.open("rb") as file:
        is_empty = not file.read(1)
        return b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def excerpt(whole: CorpusFile, content: mmap.mmap | bytes, start: int, stop: int) -> CorpusFile:
    """A part of a file as a file of the cache, named by the digest of the whole."""
    parts = whole.parts or (Part(0, str(whole.path)),)
    blocks = [memoryview(content)[start:stop]]
    return made_of(whole, [start, stop], blocks, parts=parts, skip=start)


def made_of(
    whole: CorpusFile, how: Sequence[Any], blocks: Iterable[Any], **facts: Any
) -> CorpusFile:
    """A text that was made of a file, as a file of the cache. Raises Refusal if that has changed."""

    def make(folder: Path) -> None:
        with (folder / TEXT).open("wb") as file:
            file.writelines(blocks)
        whole.check_unchanged()

    entry = cache.kept("texts", cache.key_of(whole.sha256, *how), make)
    path, digest = entry.path / TEXT, entry.digests[TEXT]
    size = path.stat().st_size
    return replace(whole, path=path, bytes=size, sha256=digest, facts=Facts(), **facts)


def any_of(ends: Sequence[bytes]) -> re.Pattern[bytes]:
    """What matches each of these, the first if several do."""
    return re.compile(b"|".join(map(re.escape, ends)) or b"(?!)")


def bounds(
    content: mmap.mmap | bytes,
    special_tokens: Sequence[str],
    skip: int,
    bytes: int | None,
    documents: int | None,
) -> tuple[int, int]:
    """Where a slice starts and stops; text that holds no special token at all starts anywhere.

    >>> bounds(b"one<|>two<|>three<|>", ["<|>"], 2, 6, None)
    (6, 12)
    """
    tokens = sorted((token.encode() for token in special_tokens), key=len, reverse=True)
    special = any_of(tokens)
    start = min(skip, len(content))
    if start and special.search(content):
        ends = (match.end() for match in special.finditer(content, max(0, start - len(tokens[0]))))
        start = next((end for end in ends if end >= start), len(content))
    else:
        start = character_start(content, start)
    stop = len(content)
    if bytes is not None and start + bytes < stop:
        stop = nearby_end(content, tokens, start, start + bytes)
    if documents is not None:
        first, number = start, 0
        for match in special.finditer(content, start, stop):
            # as in the counts, without blank ones
            number += bool(content[first : match.start()].strip())
            first = match.end()
            if number == documents:
                return start, first
    return start, stop


def nearby_end(content: mmap.mmap | bytes, tokens: Sequence[bytes], start: int, stop: int) -> int:
    """Where a slice from `start` ends that may not pass `stop`: the end of a document, a line or a
    character.

    >>> text = b"one line<|>another\\nline"
    >>> [nearby_end(text, [b"<|>"], 0, stop) for stop in (12, 20, 16, 10)]
    [11, 19, 16, 8]
    """
    nearest = stop - (stop - start) // TOLERANCE
    for ends in (tokens, (b"\n",)):
        stops = [
            offset + len(end)
            for end in ends
            if (offset := content.rfind(end, max(start, nearest - len(end)), stop)) >= 0
        ]
        if stops:
            return max(stops)
    for token in tokens:  # half a special token is not text
        offset = content.find(token, max(start, stop - len(token) + 1), stop + len(token) - 1)
        if offset >= 0:
            return offset
    return character_start(content, stop)


def character_start(content: mmap.mmap | bytes, position: int) -> int:
    """The start of the UTF-8 character at `position`; invalid bytes may be cut anywhere."""
    for start in range(position, max(position - 4, -1), -1):
        if start == len(content) or content[start] & 0xC0 != 0x80:
            return start
    return position
