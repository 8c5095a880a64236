"""What a measured process finds: fresh folders of its own and memory that was just freed.

What a trainer leaves in its working folder, its home, or where temporary files and caches go is gone when the next one
starts, so nothing is answered from a file of an earlier run. Files elsewhere are out of scope.
"""

from __future__ import annotations

import contextlib
import importlib
import mmap
import os
import shutil
import site
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.common.files import CACHE_VARIABLE, cache_folder, temporary_folder
from harness.measure.machine import available_memory

PACKAGES = str(Path(__file__).resolve().parent.parent.parent)
MAKES_TABLES = "variants.counting.character_classes"
CHARACTER_CLASSES = "character-classes-*.bin"
PLACES = {
    "HOME": "home",
    "TMPDIR": "tmp",
    "TMP": "tmp",
    "TEMP": "tmp",
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_RUNTIME_DIR": "runtime",
    CACHE_VARIABLE: "harness",
}
WORKING, JOB = "work", "job"
LEAST_TOUCHED, TOUCHED_FOR_A_BYTE, MOST_TOUCHED = 64 << 20, 48, 1 << 30
SHARE_OF_ROOM = 0.25


class Limits(NamedTuple):
    """What one measured process may take: seconds of wall time, bytes of memory of its whole group. None: no limit."""

    wall_seconds: float | None = None
    memory_bytes: int | None = None


class Sandbox:
    """Fresh folders, as a context; the working one shows by links what lies in the current folder."""

    def __enter__(self) -> Sandbox:
        self.opened = temporary_folder()
        self.path = self.opened.__enter__()
        self.job, self.working = self.path / JOB, self.path / WORKING
        """Where the process leaves its answer and its results, and where it works."""
        for name in {*PLACES.values(), WORKING, JOB}:
            (self.path / name).mkdir(mode=0o700)
        with contextlib.suppress(OSError):  # one that cannot be listed is not shown
            for name in os.listdir():  # noqa: PTH208 - names are all that is needed
                (self.working / name).symlink_to(Path.cwd() / name)
        return self

    def __exit__(self, *error: object) -> None:
        self.opened.__exit__(None, None, None)

    def environment(self) -> dict[str, str]:
        """Return the variables that name the folders; packages that a user has installed are still found."""
        places = {variable: str(self.path / name) for variable, name in PLACES.items()}
        return {**places, "PYTHONUSERBASE": os.environ.get("PYTHONUSERBASE") or site.getuserbase()}

    def give_tables(self) -> None:
        """Copy the tables of Unicode's classes from the cache, where they are made once, so no process has to."""
        importlib.import_module(MAKES_TABLES).character_classes()
        for table in cache_folder().glob(CHARACTER_CLASSES):
            with contextlib.suppress(OSError):  # another process is replacing it: the measured one makes its own
                shutil.copyfile(table, self.path / PLACES[CACHE_VARIABLE] / table.name)


# Memory. A virtual machine gives free memory back to its host seconds after it was freed, and the next touch waits for
# the host: 2.4 s for a gigabyte on one such machine, 0.1 s if the same memory had just been freed.


def touch_memory(job: Mapping[str, Any]) -> None:
    """Touch and free as much memory as a call on such a job may take, so that it does not wait for the host."""
    room = int(SHARE_OF_ROOM * available_memory())  # other processes keep enough memory
    touch(min(LEAST_TOUCHED + TOUCHED_FOR_A_BYTE * bytes_read(job), MOST_TOUCHED, room))


def touch(size: int) -> None:
    """Write one byte of each page of so much new memory, and free it."""
    if size >= mmap.PAGESIZE:
        with contextlib.suppress(OSError, ValueError), mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE) as memory:
            if hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # a kernel without them
                    memory.madvise(mmap.MADV_HUGEPAGE)
            memory[:: mmap.PAGESIZE] = bytes(-(-size // mmap.PAGESIZE))


def bytes_read(job: Mapping[str, Any]) -> int:
    """Return the bytes of the text or words that a job reads; 0 if they are missing."""
    corpus = job.get("corpus")
    path = Path(corpus["path"] if corpus is not None else job["words"])
    with contextlib.suppress(OSError):
        return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size
    return 0
