"""The part of a corpus that data.skip, data.bytes and data.documents ask for, cut where a document ends."""

from __future__ import annotations

import hashlib
import json
import mmap
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness import cache
from harness.corpora.files import CorpusFile, digest_of
from harness.errors import Refusal
from harness.sizes import parse_bytes


def cut(whole: CorpusFile, card: Mapping[str, Any], special_tokens: Sequence[str]) -> CorpusFile:
    """The slice that data.skip, data.bytes and data.documents ask for, as a file of its own; the whole if none does.

    A slice begins after the first document's end at or past `skip` bytes and ends at the last document's end within
    `bytes`; where no special token stands, at a character's end.
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
    key = hashlib.sha256(json.dumps([whole.sha256, asked, list(special_tokens)]).encode()).hexdigest()
    path = cache.folder("slices") / key
    if not path.exists():
        with whole.path.open("rb") as file, cache.placing(path) as temporary:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if whole.bytes else b""
            start, stop = bounds(mapped, special_tokens, **asked)
            with temporary.open("wb") as sliced:
                for position in range(start, stop, 1 << 24):
                    sliced.write(mapped[position : min(stop, position + (1 << 24))])
    return CorpusFile(whole.name, path, path.stat().st_size, digest_of(path))


def bounds(
    content: mmap.mmap | bytes, special_tokens: Sequence[str], skip: int, bytes: int | None, documents: int | None
) -> tuple[int, int]:
    """Where a slice begins and ends.

    >>> bounds(b"one<|>two<|>three<|>", ["<|>"], 2, 10, None)
    (6, 12)
    """
    tokens = sorted((token.encode() for token in special_tokens), key=len, reverse=True)
    special = re.compile(b"|".join(map(re.escape, tokens))) if tokens else None
    start = min(skip, len(content))
    if start:
        found = special.search(content, start) if special else None
        start = found.end() if found else character_start(content, start)
    stop = len(content) if bytes is None else min(len(content), start + bytes)
    if stop < len(content):
        ends = [place + len(token) for token in tokens if (place := content.rfind(token, start, stop)) >= 0]
        stop = max(ends) if ends else character_start(content, stop)
    if documents is not None and special is not None:
        begun, number = start, 0
        for found in special.finditer(content, start, stop):
            number += bool(content[begun : found.start()].strip())  # as in the counts: a blank one is none
            begun = found.end()
            if number == documents:
                stop = found.end()
                break
    return start, stop


def character_start(content: mmap.mmap | bytes, position: int) -> int:
    """The start of the UTF-8 character that `position` falls into; bytes that are none may be cut anywhere."""
    for start in range(position, max(position - 4, -1), -1):
        if start == len(content) or content[start] & 0xC0 != 0x80:
            return start
    return position
