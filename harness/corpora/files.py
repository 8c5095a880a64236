"""A corpus as one plain file on this machine: readable, its digest known, and where in it which of its members lies."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from harness.common import cache, files
from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar

# File systems stamp changes at intervals of up to two seconds: a change within one of them would not show.
SECONDS_TO_SETTLE = 2.0
BLOCK_BYTES = 1 << 20


class Part(NamedTuple):
    """From byte `start` of a corpus on: what stands at byte `at` of `path`, or `of` what is made of it."""

    start: int
    path: str
    at: int = 0
    of: str = ""


class Damaged(Refusal):
    """A file does not hold what its name says, or ends too early: what was fetched so is not worth keeping."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, UNMEASURED)


@dataclass(frozen=True)
class CorpusFile:
    """A corpus as it is on this machine: the name on its card, one plain file, its size and digest.

    `parts` say where it comes from if it is not read in place. `facts` are what its card says of all its words, to be
    held against what is counted; a slice has none.
    Of a word table these are its folder, the bytes of its words, and the digest of words and counts.
    """

    name: str
    path: Path
    bytes: int
    sha256: str
    table: bool = False  # a word store: the words are counted already
    of_text: bool = False  # a table that was made of a text, read as the run reads it
    parameters: Mapping[str, Any] | None = None  # what it was generated of
    parts: tuple[Part, ...] = ()
    skip: int | None = None  # where in the whole a slice begins
    facts: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()  # what a person should know who reads what came of it

    def is_unchanged(self) -> bool:
        """Whether the file still holds what it held when its digest was taken."""
        try:
            return digest_of(self.path) == self.sha256
        except OSError:
            return False

    def parts_from(self, start: int) -> tuple[Part, ...]:
        """The parts of a slice of this file that begins at byte `start`."""
        parts = self.parts or (Part(0, str(self.path)),)
        first = max(place for place, part in enumerate(parts) if part.start <= start)
        begun = parts[first]._replace(start=0, at=start - parts[first].start + parts[first].at)
        return (begun, *(part._replace(start=part.start - start) for part in parts[first + 1 :]))

    def located(self, sentence: str, offset: int) -> str:
        """A sentence about byte `offset` of this file, said of the member that it comes from."""
        if not self.parts:
            return sentence
        part = max((part for part in self.parts if part.start <= offset), key=lambda part: part.start)
        place = f"at byte {offset - part.start + part.at}{part.of}"
        return sentence.replace(str(self.path), part.path, 1).replace(f"at byte {offset}", place, 1)


def check_readable(path: Path) -> None:
    try:
        if path.exists() and not path.is_file():  # asked before it is opened: opening a named pipe can wait for ever
            raise Refusal(f"{path} is not a plain file; save it as one first, or pipe it into data.path=-", UNMEASURED)
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise Refusal(f"there is no file {path}; set data.path=FILE with one that exists", UNMEASURED) from None
    except OSError as error:
        raise Refusal(f"cannot read {path} ({error.strerror})", UNMEASURED) from error


def hold_or_refuse(path: Path, name: str) -> None:
    """Keep it from being removed from the cache while this process lives. Raises Refusal if it is gone already."""
    if not cache.hold(path):
        raise Refusal(f"{name} was removed from the cache meanwhile; run the same again", UNMEASURED)


def digest_of(path: Path) -> str:
    """The file's sha256, remembered for as long as nothing about the file changes.

    A file that has changed just now is not remembered: a further change might bear the same time.
    """
    remembered = memory_of(path)
    if remembered.exists():
        return remembered.read_text()
    begun = time.time()
    digest = fresh_digest_of(path)
    if path.stat().st_ctime < begun - SECONDS_TO_SETTLE and memory_of(path) == remembered:
        remember(path, digest)
    return digest


def fresh_digest_of(path: Path) -> str:
    """The sha256 of what the file holds now, whatever is remembered of it."""
    hasher, done = hashlib.sha256(), 0
    with path.open("rb") as file, bar(f"checking {path.name}", path.stat().st_size, "bytes") as show:
        while block := file.read(BLOCK_BYTES):
            hasher.update(block)
            done += len(block)
            show(done)
    return hasher.hexdigest()


def remember(path: Path, digest: str) -> None:
    with files.placing(memory_of(path)) as temporary:
        temporary.write_text(digest)


def memory_of(path: Path) -> Path:
    """Where the digest is kept of this file as it is."""
    return files.cache_folder("digests") / hashlib.sha256(state_of(path).encode(errors="surrogateescape")).hexdigest()


def state_of(path: Path) -> str:
    """Changes when the file does. The last of the times cannot be set back, unlike that of modification."""
    status = path.stat()
    times = status.st_mtime_ns, status.st_ctime_ns
    return f"{path.resolve()}|{status.st_size}|{times}|{status.st_dev}|{status.st_ino}"
