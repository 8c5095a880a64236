"""One timed run at a time on a machine: two of them would measure each other.

A run holds a lock while it measures times; another one is refused unless it says concurrent=true. Those that do hold
a lock of their own, so that a run beside which they appear knows it and its records say so. The kernel drops locks with
the process that held them, however it ends. One variable moves the locks: BPE_HARNESS_LOCKS.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal

VARIABLE = "BPE_HARNESS_LOCKS"
SECONDS_FOR_A_LOOK = 5.0


def lock_file(name: str) -> Path:
    """A lock's place, the same for every user of the machine whatever their own temporary folders are."""
    shared = Path("/", "tmp")
    folder = os.environ.get(VARIABLE) or (shared if shared.is_dir() else tempfile.gettempdir())
    return Path(folder) / f"bpe-harness-{name}.lock"


def opened(path: Path) -> int:
    """A descriptor of a lock file, which whoever comes first makes; reading it is enough to lock it.

    Raises Refusal, naming the file, for anything but a plain one: a pipe would be waited for.
    """
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, how)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, how | os.O_CREAT | os.O_EXCL, 0o644))
            path.chmod(0o644)  # whatever the umask: other users lock it too
        descriptor = os.open(path, how)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refusal(f"cannot lock {path}: it is no plain file; remove it", UNMEASURED)
    return descriptor


def locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(descriptor: int) -> None:
    """Hold a lock with others, which waits at most for a look of is_concurrent. Raises Refusal if it lasts longer."""
    give_up = time.monotonic() + SECONDS_FOR_A_LOOK
    while not locked(descriptor, fcntl.LOCK_SH):
        if time.monotonic() > give_up:
            raise Refusal(
                f"another program keeps {lock_file('concurrent')} locked; set {VARIABLE} to a folder of your own",
                UNMEASURED,
            )
        time.sleep(0.01)


def is_concurrent() -> bool:
    """Whether runs are being timed that said concurrent=true."""
    descriptor = opened(lock_file("concurrent"))
    try:
        return not locked(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def timing(concurrent: bool = False) -> Iterator[None]:
    """Hold the machine for timed measurements. Raises Refusal if another run is being timed that this must not join."""
    descriptor = held(concurrent)
    try:
        yield
    finally:
        os.close(descriptor)


def held(concurrent: bool) -> int:
    """The descriptor of a lock that is held. Raises Refusal if it cannot be had."""
    descriptor = None
    try:
        descriptor = opened(lock_file("concurrent" if concurrent else "timing"))
        if concurrent:
            share(descriptor)
        elif not locked(descriptor, fcntl.LOCK_EX) or is_concurrent():
            raise Refusal(
                "another run is being timed on this machine, and each would measure the other; wait for it, "
                "or set concurrent=true (--concurrent, where a command has it): the records will say so",
                UNMEASURED,
            )
    except BaseException as error:
        if descriptor is not None:
            os.close(descriptor)
        if not isinstance(error, OSError):
            raise
        raise Refusal(
            f"cannot lock {error.filename} ({error.strerror}); set {VARIABLE} to a folder", UNMEASURED
        ) from error
    return descriptor
