"""What the cache keeps: held by those who use it, listed, removed when somebody asks or the copies grow beyond a limit.

Copies are of people's own files: joined, unpacked, cut. They are made for a run and kept for the next. Everything in
the cache can be made again, or fetched again. An entry is held by a lock of the kernel for as long as its user lives,
and only what nobody holds is removed, by being renamed first: so nobody meets half of one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.common import files
from harness.common.streams import say
from harness.common.units import bytes_text, parse_bytes

LIMIT_VARIABLE = "BPE_HARNESS_CACHE_LIMIT"
USUAL_LIMIT = "20GB"
WORTH_TELLING_BYTES = 50_000_000

MOST_HELD = 200
"""Of a process that goes through more, the first are let go: it has no more than so many open files to spare."""

JUST_BEGUN_SECONDS = 60
"""For so long what is half made is left alone: who makes it may not have come to lock it."""

COPIES = ("assembled", "slices")
HALF_MADE = "half-made"
KINDS = {
    "assembled": "copies of joined and unpacked files",
    "slices": "copies of parts of corpora",
    "corpora": "data sets that were fetched or put together",
    "downloads": "data sets that are half fetched",
    "generated": "generated data sets",
    "tables": "tables of words",
    "counts": "counted words, and merges that were proved on them",
    "parts": "parts of texts, counted for a table that is not whole yet",
    "spool": "what was piped in",
    HALF_MADE: "what runs had begun when they were killed",
}
"""The folders that can grow, and what is left in all of them; beside them lie small files about them."""


@dataclass(frozen=True)
class Entry:
    """One thing that is kept, a folder or a file, with all that is in it."""

    path: Path
    bytes: int
    used: float
    """When it was made or last used, in seconds since the epoch."""


_held: dict[Path, tuple[int, os.stat_result]] = {}
"""What this process uses, each with an open descriptor that bears the lock until the process ends."""


def hold(path: Path) -> bool:
    """Keep the entry that `path` lies in from being removed while this process lives; False if it is gone.

    What lies elsewhere is nobody's to remove.
    """
    entry = entry_of(path)
    if entry is None:
        return True
    try:
        there = entry.stat()
        if entry in _held and os.path.samestat(_held[entry][1], there):
            return True
        descriptor = os.open(entry, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_SH)  # a remover holds it for a moment only
    opened = os.fstat(descriptor)
    with contextlib.suppress(OSError):
        if os.path.samestat(opened, entry.stat()):
            if entry in _held or len(_held) >= MOST_HELD:
                os.close(_held.pop(entry if entry in _held else next(iter(_held)))[0])
            _held[entry] = descriptor, opened
            if entry.is_dir():  # the times of a file say whether it is as it was
                os.utime(entry)
            return True
    os.close(descriptor)
    return False


def entry_of(path: Path) -> Path | None:
    """The entry of the cache that `path` is or lies in; None if it lies elsewhere."""
    cache = files.cache_folder()
    with contextlib.suppress(ValueError):
        kind, name, *_ = path.relative_to(cache).parts
        return cache / kind / name
    return None


def entries(kind: str) -> list[Entry]:
    """What there is of a kind, the longest unused first; what is half made is a kind of its own."""
    top = files.cache_folder()
    folders = [top, *filter(Path.is_dir, top.iterdir())] if kind == HALF_MADE else [files.cache_folder(kind)]
    found = []
    for path in (each for folder in folders for each in folder.iterdir()):
        if path.name.startswith(".") != (kind == HALF_MADE) or path.suffix == ".lock":
            continue
        with contextlib.suppress(FileNotFoundError):
            found.append(Entry(path, size_of(path), path.stat().st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder, however deep."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(each.lstat().st_size for each in path.rglob("*") if each.is_file())


def remove(entry: Entry) -> bool:
    """Remove it; False if somebody uses it, or it cannot be removed."""
    try:
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gone = entry.path.with_name(f".{entry.path.name}.{os.getpid()}")
        entry.path.rename(gone)
        files.remove_tree(gone)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def tell_of_copy(made: Path, name: str) -> None:
    """Say that a copy was made, if it is large, and remove others, the longest unused first, until the limit holds."""
    hold(made)
    size = size_of(made)
    if size >= WORTH_TELLING_BYTES:
        say(
            f"{name}: a copy of {bytes_text(size)} is kept in {made.parent}; "
            "python -m harness.corpora cache lists and clears such copies"
        )
    for gone in trimmed(limit()):
        say(f"removed a copy of {bytes_text(gone.bytes)} from the cache: all are over {bytes_text(limit())}")


def limit() -> int:
    """The most that all copies may take. Raises Refusal if the variable that says so is not a size."""
    return parse_bytes(os.environ.get(LIMIT_VARIABLE) or USUAL_LIMIT, LIMIT_VARIABLE)


def trimmed(most: int) -> Iterator[Entry]:
    """Remove copies that nobody uses until the rest takes no more than this; yields those that are gone."""
    kept = sorted((entry for kind in COPIES for entry in entries(kind)), key=lambda entry: entry.used)
    total = sum(entry.bytes for entry in kept)
    for entry in kept:
        if total <= most:
            return
        if remove(entry):
            total -= entry.bytes
            yield entry


def cleared(kinds: Sequence[str]) -> tuple[list[Entry], list[Entry]]:
    """Remove all of these kinds that nobody uses; returns what is gone, and what is still there."""
    gone: list[Entry] = []
    kept: list[Entry] = []
    for kind in kinds:
        for entry in entries(kind):
            fresh = kind == HALF_MADE and time.time() - entry.used < JUST_BEGUN_SECONDS
            (gone if not fresh and remove(entry) else kept).append(entry)
    return gone, kept
