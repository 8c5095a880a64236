"""The cache between runs: everything in it can be made or fetched again.

BPE_HARNESS_CACHE moves it. An entry is a folder with files and a seal. The seal holds the sha256 and
the state (inode, size and times) of each file, facts, and a digest of all that. An entry is made in
a hidden folder, synced, and renamed. Each reader checks the seal: a file is whole if it has the
state in the seal, or else the sha256. What is not whole is made again.

A process that uses the cache shares a lock of it until it ends; it is cleared only if no other does.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.printing import print_stderr
from harness.common.progress import bar
from harness.common.units import bytes_text
from harness.worker.exchange import file_state

VARIABLE = "BPE_HARNESS_CACHE"
ANOTHER = f"set {VARIABLE} to a folder that can be written and has room"
SEAL = "seal.json"
BLOCK_BYTES = 1 << 20
OTHER = "other"
KINDS = {
    "corpora": "data sets that were fetched or put together",
    "downloads": "data sets that are half fetched",
    "texts": "generated texts, and copies: joined, unpacked, cut, piped in",
    "counts": "tables of words",
    "parts": "parts of texts, counted for a table that is not whole yet",
    "spilled": "tables of words that killed runs left on disk",
    "digests": "digests of files",
    "imported": "what the processes of unfinished runs have imported",
    "inherited": "merges that training continued from",
    OTHER: "tables of Unicode's classes, and what else is there",
}
"""The folders of the cache; `other` is all that is in none of them."""


# Entries


@dataclass(frozen=True)
class Entry:
    """An entry that is whole: its folder, the sha256 of each file in it, and what its maker
    returned.
    """

    path: Path
    digests: Mapping[str, str]
    facts: Any


def key_of(*facts: Any) -> str:
    """The key of an entry that depends on these facts alone."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def kept(kind: str, key: str, make: Callable[[Path], Any]) -> Entry:
    """The entry of a key. If it is missing or broken, `make` writes its files into a new folder and
    returns its facts.

    Raises Refusal if it cannot be written.
    """
    return find(kind, key) or put(kind, key, make)


def find(kind: str, key: str) -> Entry | None:
    """The entry of a key, or None if it is missing or broken."""
    return read_entry(place(kind, key))


def put(
    kind: str,
    key: str,
    make: Callable[[Path], Any],
    known: Mapping[str, str] | None = None,
) -> Entry:
    """Make an entry, in place of one that is there; files whose sha256 is `known` are not read again.
    Raises Refusal as `kept` does.
    """
    path = place(kind, key)
    with files.folder_aside(path, ANOTHER) as aside:
        part = aside / path.name
        part.mkdir()

        made = seal(part, make(part), known or {})

        try:
            part.rename(path)
        except OSError:  # another one is there
            files.exchange(part, path)
        files.sync(path.parent)
    return replace(made, path=path)


def remove(kind: str, key: str) -> None:
    """Remove an entry, if it is there."""
    files.remove_tree(place(kind, key))


def place(kind: str, key: str) -> Path:
    """The folder of an entry, made or not."""
    return root() / kind / key


def seal(folder: Path, facts: Any, known: Mapping[str, str]) -> Entry:
    """Seal what is in a folder, and wait until the disk has it."""
    (folder / SEAL).unlink(missing_ok=True)
    paths = sorted(folder.rglob("*"))
    files.sync(*paths)

    names = [path.relative_to(folder).as_posix() for path in paths if path.is_file()]
    entry = Entry(
        folder, {name: known.get(name) or digest_of(folder / name) for name in names}, facts
    )
    (folder / SEAL).write_bytes(seal_text(entry, states_of(entry)))
    files.sync(folder / SEAL, folder)
    return entry


def states_of(entry: Entry) -> dict[str, Any]:
    return {name: file_state(entry.path / name) for name in entry.digests}


def seal_text(entry: Entry, states: Mapping[str, Any]) -> bytes:
    text = json.dumps([entry.digests, states, entry.facts]).encode()
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def read_entry(folder: Path) -> Entry | None:
    """The entry in a folder, or None if it is missing or broken."""
    try:
        digest, _, text = (folder / SEAL).read_bytes().partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            return None

        digests, sealed, facts = json.loads(text)
        entry = Entry(folder, digests, facts)
        states = states_of(entry)
        for name, expected in digests.items():
            if states[name] != sealed[name] and digest_of(folder / name) != expected:
                return None
    except OSError:
        return None

    if states != sealed:  # a copy of the cache: its files need not be read the next time
        with contextlib.suppress(Refusal):
            files.write_output(folder / SEAL, seal_text(entry, states))
    return entry


def sealed_digest(path: Path) -> str | None:
    """The sha256 of a file of an entry that is whole; None for any other file."""
    entry = read_entry(path.parent) if root() in path.parents else None
    return None if entry is None else entry.digests.get(path.name)


def digest_of(path: Path) -> str:
    """The sha256 of what a file holds now."""
    hasher = hashlib.sha256()
    size = path.stat().st_size
    with path.open("rb") as file, bar(f"checking {path.name}", size, "bytes") as show:
        while block := file.read(BLOCK_BYTES):
            hasher.update(block)
            show(file.tell())
    return hasher.hexdigest()


# The folder


def folder(*parts: str) -> Path:
    """A folder below the cache, made if it is missing."""
    path = root().joinpath(*parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(path, error) from error
    return path


def root() -> Path:
    """The folder of the cache, made if it is missing. Raises Refusal if a variable names one that
    cannot be used; without one a temporary folder takes the place of one in an unusable home.
    """
    given = os.environ.get(VARIABLE)
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "bpe-harness")
    path = Path(given or usual.expanduser())

    try:
        path.mkdir(parents=True, exist_ok=True)
        if not given and not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "")
        _in_use(path)
    except OSError as error:
        if given:
            raise unusable(path, error) from error
        return temporary(path, error)
    return path


def temporary(path: Path, error: OSError) -> Path:
    """A cache for this process and those that it starts, with a note why."""
    # below the folder, whose lock is that of its process alone
    os.environ[VARIABLE] = str(files.folder_of_process() / "cache")
    what = f"cannot use the cache {path} ({reason(error)}), so nothing is kept after this command"
    print_stderr(f"{what}; {ANOTHER}")
    return root()


def unusable(path: Path, error: OSError) -> Refusal:
    """A refusal of a folder of the cache; users who share one meet files of each other."""
    why = reason(error)
    if isinstance(error, PermissionError):
        why += "; two users cannot share a cache"
    return Refusal(f"cannot use the cache {path} ({why}); {ANOTHER}", UNMEASURED)


def lock(path: Path) -> io.FileIO:
    """A file of the cache to lock, made if it is missing."""
    try:
        return files.open_appending(path)
    except OSError as error:
        raise unusable(path, error) from error


@functools.cache
def _in_use(path: Path) -> int:
    """A descriptor of the cache that bears a shared lock until this process ends."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def check_free_space(needed: int, what: str) -> None:
    """Raises Refusal if the cache has fewer than `needed` bytes free."""
    free = shutil.disk_usage(root()).free
    if free < needed:
        sizes = f"needs {bytes_text(needed)} in {root()}, and {bytes_text(free)} are free"
        instead = f"make room, or set {VARIABLE} to a folder that has it"
        raise Refusal(f"{what} {sizes}; {instead}", UNMEASURED)


# Clearing


def listing(kind: str) -> dict[Path, int]:
    """What is in the folder of a kind, with its bytes; hidden names are what killed runs left."""
    if kind == OTHER:
        paths = [path for path in root().iterdir() if path.name not in KINDS]
    else:
        paths = [path for path in folder(kind).iterdir() if path.suffix != ".lock"]

    sizes = {}
    for path in sorted(paths):
        inside = [file for file in (path, *path.rglob("*")) if file.is_file()]
        sizes[path] = sum(file.lstat().st_size for file in inside)
    return sizes


def clear(kinds: Sequence[str]) -> dict[Path, int]:
    """Remove and return all that is of these kinds. Raises Refusal if another process uses the
    cache.
    """
    lock = _in_use(root())
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Refusal(
            "another command uses the cache; clear it when that has ended", UNMEASURED
        ) from error

    removed = {path: size for kind in kinds for path, size in listing(kind).items()}
    for path in removed:
        files.remove_tree(path)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return removed
