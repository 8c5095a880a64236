"""A corpus as one plain file on this machine: readable, its digest known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import cache
from harness.errors import UNMEASURED, Refusal


@dataclass(frozen=True)
class CorpusFile:
    """A corpus as it is on this machine: the name on its card, one plain file, its size and digest.

    Of a word table these are its folder, the bytes of its words, and the digest of words and counts.
    """

    name: str
    path: Path
    bytes: int
    sha256: str
    table: bool = False  # a word store: the words are counted already
    parameters: Mapping[str, Any] | None = None  # what it was generated of


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
    remembered = memory_of(path)
    if remembered.exists():
        return remembered.read_text()
    digest = fresh_digest_of(path)
    remember(path, digest)
    return digest


def fresh_digest_of(path: Path) -> str:
    """The sha256 of what the file holds now, whatever is remembered of it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remember(path: Path, digest: str) -> None:
    with cache.placing(memory_of(path)) as temporary:
        temporary.write_text(digest)


def memory_of(path: Path) -> Path:
    """Where the digest is kept of this file as it is: another size, time or place is another file."""
    status = path.stat()
    identity = f"{path.resolve()}|{status.st_size}|{status.st_mtime_ns}|{status.st_ino}"
    return cache.folder("digests") / hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()
