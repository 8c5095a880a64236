"""A cold page cache: what a measured process reads comes from the disk, not from memory that an earlier read filled."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal

WARM, COLD = "warm", "cold"
TRIES, SECONDS_BETWEEN_TRIES = 20, 0.05


def drop(path: str) -> None:
    """Have the kernel forget what it holds of a file, so that the next reader waits for the disk; this needs no root.

    Raises Refusal where that cannot be done, or cannot be confirmed: some file systems are memory themselves, and what
    another process has mapped stays.
    """
    if not sys.platform.startswith("linux"):
        raise Refusal("page_cache=cold needs Linux; leave it out here", UNMEASURED)
    for _ in range(TRIES):
        with Path(path).open("rb") as file:
            os.fsync(file.fileno())  # what is not on the disk yet cannot be forgotten
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if not bytes_in_memory(path):
            return
        time.sleep(SECONDS_BETWEEN_TRIES)  # another processor may still have pages on a list of its own
    raise Refusal(
        f"page_cache=cold: {path} stays in memory, or is not yours to look at; put a copy of your own on a disk (no "
        "tmpfs), and end what has mapped it",
        UNMEASURED,
    )


def bytes_in_memory(path: str) -> int:
    """How much of a file the kernel holds, in whole pages. Of another user's file it says that it holds everything.

    A read that does not wait would tell as well, but it makes the kernel read ahead.
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return 0
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
            beginning = ctypes.c_char.from_buffer(mapped)
            address = ctypes.c_void_p(ctypes.addressof(beginning))
            failed = ctypes.CDLL(None, use_errno=True).mincore(address, ctypes.c_size_t(size), pages)
            del beginning  # a mapping that is pointed to cannot be closed
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return sum(page & 1 for page in pages) * mmap.PAGESIZE
