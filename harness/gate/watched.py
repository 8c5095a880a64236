"""What a gate compares with, and what measures it, while code that is not trusted runs: digested before and after.

That code has the rights of who runs the gate, so nothing here can be kept from it for certain. The time of a
file's last change of any kind is the kernel's and cannot be set back, so that what is restored is seen as well.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Known = tuple[int, ...]


@dataclass
class Watched:
    """Files and folders, and how each was when it was added."""

    seen: dict[Path, dict[str, tuple[Known, str]]] = field(default_factory=dict)

    def add(self, top: Path) -> None:
        """From now on `top`, and all below it, is to stay as it is."""
        self.seen[top] = dict(contents(top))

    def changed(self) -> list[str]:
        """The names of what is not as it was: changed, added or gone."""
        found = []
        for top, before in self.seen.items():
            after = dict(contents(top))
            found += [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
        return found


def contents(top: Path) -> Iterator[tuple[str, tuple[Known, str]]]:
    """Everything below a folder by its name from there, or the one file that it is: its state, and its digest."""
    yield from state(top, top.name)
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = Path(folder, name)
            yield from state(path, str(path.relative_to(top)))


def state(path: Path, name: str) -> Iterator[tuple[str, tuple[Known, str]]]:
    try:
        seen = path.lstat()
        if stat.S_ISLNK(seen.st_mode):
            content = os.fsencode(path.readlink())
        else:
            content = path.read_bytes() if stat.S_ISREG(seen.st_mode) else b""
    except OSError:  # it is gone, or cannot be read, which is another state than that it had
        return
    known = (seen.st_mode, seen.st_size, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns)
    yield name, (known, hashlib.sha256(content).hexdigest())


def make_read_only(top: Path) -> None:
    """Take the right to write from everything below a folder; whoever owns it may take it back, and root needs none."""
    allow(top, lambda mode: mode & ~0o222)


def make_writable(top: Path) -> None:
    allow(top, lambda mode: mode | 0o200)


def allow(top: Path, changed: Callable[[int], int]) -> None:
    for folder, _, files in os.walk(top):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if not path.is_symlink():
                path.chmod(changed(stat.S_IMODE(path.lstat().st_mode)))
