"""The part of a corpus that data.skip, data.bytes and data.documents select, cut at the end of a document or line."""

from __future__ import annotations

import hashlib
import json
import mmap
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.common import cache, files
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import check_room
from harness.common.units import parse_bytes
from harness.corpora.files import CorpusFile, digest_of, hold_or_refuse

TEXT, START = "text", "start"
RULE = 2  # how slices are cut: another number makes cached ones again
TOLERANCE = 10
"""A slice may be a tenth shorter than data.bytes, to end with a document or a line."""


def cut(whole: CorpusFile, card: Mapping[str, Any], special_tokens: Sequence[str]) -> CorpusFile:
    """The slice that data.skip, data.bytes and data.documents ask for, as a file of its own; the whole if none does.

    A slice begins at the first document's end at or past `skip` bytes. It has at most `bytes` bytes and ends with the
    last document, or else the last line, that ends in the last tenth of them; or else with a character. An empty slice
    is refused.
    """
    skip, length, documents = (card[key] for key in ("skip", "bytes", "documents"))
    if skip is None and length is None and documents is None:
        return whole
    asked = {
        "skip": parse_bytes(skip, "data.skip", smallest=0) if skip is not None else 0,
        "bytes": parse_bytes(length, "data.bytes") if length is not None else None,
        "documents": documents,
    }
    if documents is not None and documents < 1:
        raise Refusal(f"data.documents={documents}; it is a number of documents, 1 or more")
    key = hashlib.sha256(json.dumps([RULE, whole.sha256, asked, list(special_tokens)]).encode()).hexdigest()
    folder = files.cache_folder("slices") / key
    if not folder.is_dir():
        make(folder, whole, asked, special_tokens)
        cache.tell_of_copy(folder, f"a slice of {whole.name}")
    hold_or_refuse(folder, f"the slice of {whole.name}")
    start = int((folder / START).read_text())
    path = folder / TEXT
    return CorpusFile(whole.name, path, path.stat().st_size, digest_of(path), parts=whole.parts_from(start), skip=start)


def make(folder: Path, whole: CorpusFile, asked: dict[str, Any], special_tokens: Sequence[str]) -> None:
    with whole.path.open("rb") as file, files.placing(folder) as temporary:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if whole.bytes else b""
        start, stop = bounds(mapped, special_tokens, **asked)
        if start == stop and whole.bytes:
            raise Refusal(nothing_left(whole, start, asked), UNMEASURED)
        check_room(folder.parent, stop - start, f"a slice of {whole.name}")
        temporary.mkdir()
        (temporary / START).write_text(str(start))
        with (temporary / TEXT).open("wb") as sliced:
            for position in range(start, stop, 1 << 24):
                sliced.write(mapped[position : min(stop, position + (1 << 24))])
        # The key names the digest of the whole, so the slice must be of just that.
        if not whole.is_unchanged():
            raise Refusal(f"{whole.name} was changed while it was read; run the same again", UNMEASURED)


def bounds(
    content: mmap.mmap | bytes, special_tokens: Sequence[str], skip: int, bytes: int | None, documents: int | None
) -> tuple[int, int]:
    """Where a slice begins and ends.

    >>> bounds(b"one<|>two<|>three<|>", ["<|>"], 2, 6, None)
    (6, 12)
    """
    tokens = sorted((token.encode() for token in special_tokens), key=len, reverse=True)
    special = re.compile(b"|".join(map(re.escape, tokens))) if tokens else None
    start = min(skip, len(content))
    if start:
        start = document_start(content, special, start, len(tokens[0]) if tokens else 0)
    stop = len(content)
    if bytes is not None and start + bytes < stop:
        stop = nearby_end(content, tokens, start, start + bytes)
    if documents is not None and special is not None:
        begun, number = start, 0
        for found in special.finditer(content, start, stop):
            number += bool(content[begun : found.start()].strip())  # as in the counts: a blank one is none
            begun = found.end()
            if number == documents:
                stop = found.end()
                break
    return start, stop


def nearby_end(content: mmap.mmap | bytes, tokens: Sequence[bytes], start: int, stop: int) -> int:
    """Where a slice from `start` ends that may not pass `stop`: the end of a document, a line or a character.

    >>> text = b"one line<|>another\\nline"
    >>> [nearby_end(text, [b"<|>"], 0, stop) for stop in (12, 20, 16, 10)]
    [11, 19, 16, 8]
    """
    nearest = stop - (stop - start) // TOLERANCE
    for ends in (tokens, (b"\n",)):
        places = [place + len(end) for end in ends if (place := content.rfind(end, start, stop)) >= 0]
        if places and max(places) >= nearest:
            return max(places)
    for token in tokens:  # no half of one is text
        place = content.find(token, max(start, stop - len(token) + 1), stop + len(token) - 1)
        if place >= 0:
            return place
    return character_start(content, stop)


def document_start(content: mmap.mmap | bytes, special: re.Pattern[bytes] | None, position: int, longest: int) -> int:
    """The first document's end at `position` or later; text that holds no special token at all is cut anywhere."""
    if special is None:
        return character_start(content, position)
    for found in special.finditer(content, max(0, position - longest)):
        if found.end() >= position:
            return found.end()
    return len(content) if special.search(content) else character_start(content, position)


def nothing_left(whole: CorpusFile, start: int, asked: Mapping[str, Any]) -> str:
    if start == whole.bytes:
        return (
            f"data.skip={asked['skip']} leaves nothing of {whole.name}: no document begins from there on to its end at "
            f"byte {whole.bytes}; skip less"
        )
    return f"data.bytes={asked['bytes']} is less than one character of {whole.name}; ask for more"


def character_start(content: mmap.mmap | bytes, position: int) -> int:
    """The start of the UTF-8 character that `position` falls into; bytes that are none may be cut anywhere."""
    for start in range(position, max(position - 4, -1), -1):
        if start == len(content) or content[start] & 0xC0 != 0x80:
            return start
    return position
