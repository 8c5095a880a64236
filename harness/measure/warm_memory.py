"""Memory that a call will need is made ready before it begins, so that no call waits for the host of a virtual machine.

A virtual machine gives free memory back to its host, seconds after it was freed (free page reporting, a balloon), and
some of it has never been touched. The first touch of such memory waits for the host. On the machine where this was
found it took 2.4 s for a gigabyte, and 0.1 s where the same memory had just been freed: a quarter of a training's time,
or none of it, by what had happened to run before. `python -m harness.doctor` says what it takes on yours.

So as much as the same call took before is touched, kept from being given back, and freed a little ahead of the process
that is measured: the kernel hands out first what was freed last.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from harness.measure.environment import container, memory_bytes

AHEAD_BYTES = 512 << 20
"""How much lies free for a process that asks for it; more is not taken between two looks at it."""
LEAST_BESIDES, FOR_A_BYTE_BESIDES, MOST_BESIDES = 16 << 20, 32, 256 << 20
"""What is touched besides, so much and so much for each byte of the corpus, and freed at once: for the import, which
would seem to work while it waits for the host, and because the kernel does not always give out first what was freed
last. With 16 or 80 MB every third run of 10 MB of text (30 ms) had to wait for a large page all the same, with 256 one
in ten."""
LEAST_BEFORE_ANY, FOR_A_BYTE_BEFORE_ANY, MOST_BEFORE_ANY = 8 << 20, 16, 1 << 30
"""What is expected of a call of which no earlier run is known: so much, and so much for each byte of its corpus."""
MOST_BYTES = 4 << 30
SHARE_OF_ROOM = 0.25

taken_before: dict[str, int] = {}
"""The memory that a job's call took at most, in bytes, by what it was."""


class WarmMemory:
    """Memory that is touched, and held until it is freed piece by piece.

    Where no memory is to be had, or the system knows no such mappings, nothing is held and nothing is wrong.
    """

    def __init__(self, size: int) -> None:
        """Touch `size` bytes, as far as there is room for them."""
        self.size = min(size, room())
        self.held = 0
        self.mapping: mmap.mmap | None = None
        if self.size < mmap.PAGESIZE or not hasattr(mmap, "MADV_DONTNEED"):
            return
        with contextlib.suppress(OSError, ValueError):
            self.mapping = mmap.mmap(-1, self.size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # a kernel without them
                    self.mapping.madvise(mmap.MADV_HUGEPAGE)
            touch(self.mapping)
            self.held = self.size

    def free_ahead_of(self, taken: int) -> None:
        """Free what a call that has taken so many bytes may ask for until the next look."""
        self.keep(self.size - AHEAD_BYTES - taken)

    def keep(self, size: int) -> None:
        """Hold no more than `size` bytes."""
        size = -(-max(size, 0) // mmap.PAGESIZE) * mmap.PAGESIZE
        if self.mapping is not None and size < self.held:
            self.mapping.madvise(mmap.MADV_DONTNEED, size, self.held - size)
            self.held = size

    def close(self) -> None:
        """Free what is held."""
        if self.mapping is not None:
            self.mapping.close()
            self.mapping, self.held = None, 0


def touch(mapping: mmap.mmap) -> None:
    """Write one byte of each page."""
    mapping[:: mmap.PAGESIZE] = bytes(-(-len(mapping) // mmap.PAGESIZE))


def room() -> int:
    """How much may be touched: no process of ours, and nobody else's, shall lack memory because of it."""
    most = [memory_bytes("MemAvailable") or 0]
    if (limit := limit_of_container()) is not None:
        most.append(limit)
    return min(MOST_BYTES, int(SHARE_OF_ROOM * min(most)))


@functools.cache
def limit_of_container() -> int | None:
    return cast("int | None", container()["memory_bytes"])


def expected_bytes(job: Mapping[str, Any]) -> int:
    """What a job's call took when it ran before, in this process; else what one of its size may take."""
    if (known := taken_before.get(identity(job))) is not None:
        return known
    return min(LEAST_BEFORE_ANY + FOR_A_BYTE_BEFORE_ANY * size_of(job), MOST_BEFORE_ANY)


def bytes_besides(job: Mapping[str, Any]) -> int:
    """What is touched besides what the call is expected to take."""
    return min(LEAST_BESIDES + FOR_A_BYTE_BESIDES * size_of(job), MOST_BESIDES)


def remember(job: Mapping[str, Any], taken: int) -> None:
    """Keep what a job's call took for the next time that it runs."""
    taken_before[identity(job)] = taken


def identity(job: Mapping[str, Any]) -> str:
    """What a job is, by what decides how much memory it takes."""
    asked = [job.get(name) for name in ("kind", "target", "params", "threads", "num_merges", "interpreter")]
    return repr((asked, path_of(job)))


def size_of(job: Mapping[str, Any]) -> int:
    """The bytes of what a job reads; none where it is not there, which is for others to say."""
    path = path_of(job)
    with contextlib.suppress(OSError):
        return Path(path).stat().st_size if path is not None else 0
    return 0


def path_of(job: Mapping[str, Any]) -> str | None:
    """Where what a job reads lies, if it reads a file."""
    corpus = job.get("corpus")
    return cast("str | None", job.get("words") if corpus is None else corpus["path"])


def seconds_to_touch(size: int) -> tuple[float, float] | None:
    """How long it takes to touch `size` free bytes as they are found, and again when they have just been freed.

    None where there is no room for so many.
    """
    found = []
    for _ in range(2):
        started = time.perf_counter()
        memory = WarmMemory(size)
        found.append(time.perf_counter() - started)
        held = memory.held
        memory.close()
        if held < size:
            return None
    return found[0], found[1]
