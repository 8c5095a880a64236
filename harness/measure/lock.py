"""One timed run at a time on a machine: two of them would measure each other.

A run locks `timing` while it measures times, and another one waits for it. A run with concurrent=true waits for nobody:
it shares the lock `concurrent`, so that other runs wait for it or say so in their records. The kernel drops a lock with
the process that holds it, however that ends. The variable BPE_HARNESS_LOCKS names another folder for the locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal

VARIABLE = "BPE_HARNESS_LOCKS"
SECONDS_BETWEEN_TRIES = 0.2
WAITING = "another benchmark is running here; waiting (concurrent=true runs anyway)"


@contextlib.contextmanager
def timing(concurrent: bool = False) -> Iterator[None]:
    """Hold the machine for timed measurements; wait while another run holds it, unless `concurrent`.

    Raises Refusal for a lock that cannot be opened.
    """
    with opened("concurrent" if concurrent else "timing") as descriptor:
        if concurrent:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        elif not (lock(descriptor) and not is_concurrent()):
            say(WAITING)
            while not lock(descriptor) or is_concurrent():
                time.sleep(SECONDS_BETWEEN_TRIES)
        yield


def is_concurrent() -> bool:
    """Whether runs with concurrent=true are being timed."""
    with opened("concurrent") as descriptor:
        return not lock(descriptor)


def lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_file(name: str) -> Path:
    """Return the path of a lock, the same for every user of the machine whatever their temporary folders are."""
    shared = Path("/", "tmp")
    folder = os.environ.get(VARIABLE) or (shared if shared.is_dir() else tempfile.gettempdir())
    return Path(folder) / f"bpe-harness-{name}.lock"


@contextlib.contextmanager
def opened(name: str) -> Iterator[int]:
    """A descriptor of a lock, created if missing; reading is enough to lock it, so other users can.

    Raises Refusal if it cannot be opened: a link is not followed, and a pipe is not waited for.
    """
    path, how = lock_file(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, how | os.O_CREAT | os.O_EXCL, 0o644))
                path.chmod(0o644)  # whatever the umask
        descriptor = os.open(path, how)
    except OSError as error:
        raise Refusal(f"cannot lock {path} ({error.strerror}); set {VARIABLE} to a folder", UNMEASURED) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)
