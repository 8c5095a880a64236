"""Data sets: from a card to one plain file on this machine, its digest known, its slice cut.

A card (conf/data/NAME.yaml) says what a corpus is, where it comes from and what is known of it. Whatever the source,
the rest of the harness sees a file. A checksum that stands on a card holds wherever the file lies.
"""

from __future__ import annotations

import functools
import hashlib
import json
import mmap
import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import cache
from harness.errors import UNMEASURED, Refusal
from harness.sizes import parse_bytes

LEFT_OUT = {"test", "tests", "idle_test", "idlelib_test", "site-packages", "dist-packages", "__pycache__"}
SEPARATOR = "<|endoftext|>"


@dataclass(frozen=True)
class CorpusFile:
    """A corpus as it is on this machine: the name on its card, one plain file, its size and digest."""

    name: str
    path: Path
    bytes: int
    sha256: str


def prepare(card: Mapping[str, Any], special_tokens: Sequence[str]) -> CorpusFile:
    """Find or make the file of a card, verify it, cut the slice that is asked for.

    Raises Refusal if it is not there (with where it is expected and how to get it), cannot be read, or differs from the
    checksum on its card.
    """
    kind = card["source"].get("kind")
    if card["path"] is not None:
        path = Path(card["path"])
        # A file's name need not be UTF-8, but a record is.
        name = os.fsencode(path.name).decode(errors="replace") if kind == "path" else card["name"]
    elif kind == "stdlib":
        path, name = standard_library(), card["name"]
    elif kind != "url":
        raise Refusal(f"data={card['name']} needs data.path=FILE")
    else:
        path, name = cache.folder("corpora") / card["source"]["file"], card["name"]
        if not path.exists():
            raise Refusal(f"data={name}: no file at {path}; {card['source']['how']}, or say data.path=FILE", UNMEASURED)
    check_readable(path)
    # The size first: it is known at once, and of some corpora it is all that is known.
    check_fact(name, path, card, "bytes", path.stat().st_size)
    whole = CorpusFile(name, path, path.stat().st_size, digest_of(path))
    check_fact(name, path, card, "sha256", whole.sha256)
    return cut(whole, card, special_tokens)


def check_fact(name: str, path: Path, card: Mapping[str, Any], fact: str, found: int | str) -> None:
    expected = card["facts"].get(fact, found)
    if found != expected:
        said = f"{found} bytes" if fact == "bytes" else f"{fact} {found}"
        raise Refusal(
            f"data={name}: {path} has {said}, its card says {expected}; it is another file or damaged, "
            "get it again, or use it as a file of its own with data=file",
            UNMEASURED,
        )


def check_readable(path: Path) -> None:
    try:
        if path.is_dir():
            raise Refusal(f"{path} is a folder; say data.path=FILE", UNMEASURED)
        if path.exists() and not path.is_file():  # asked before it is opened: opening a named pipe can wait for ever
            raise Refusal(f"{path} is not a plain file; save it as one first", UNMEASURED)
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise Refusal(f"there is no file {path}; say data.path=FILE with one that exists", UNMEASURED) from None
    except OSError as error:
        raise Refusal(f"cannot read {path} ({error.strerror})", UNMEASURED) from error


def digest_of(path: Path) -> str:
    """The file's sha256, remembered for as long as the file's size, time and place stay the same."""
    status = path.stat()
    identity = f"{path.resolve()}|{status.st_size}|{status.st_mtime_ns}|{status.st_ino}"
    remembered = cache.folder("digests") / hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()
    if remembered.exists():
        return remembered.read_text()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with cache.placing(remembered) as temporary:
        temporary.write_text(digest)
    return digest


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


@functools.cache
def standard_library() -> Path:
    """The running Python's own modules as one file, a document each, made again when they change."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(source_files(root), key=lambda path: path.relative_to(root).as_posix())
    listing = [(path.relative_to(root).as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:16]
    path = cache.folder("corpora") / f"stdlib-{sys.version_info.major}.{sys.version_info.minor}-{key}.txt"
    if not path.exists():
        with cache.placing(path) as temporary, temporary.open("wb") as joined:
            for file in files:
                content = file.read_bytes()
                if is_utf8(content):
                    joined.write(content + SEPARATOR.encode())
    return path


def source_files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        paths = (Path(folder, name) for name in names if name.endswith(".py"))
        yield from (path for path in paths if path.is_file())  # a link may lead nowhere


def is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
