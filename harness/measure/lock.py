"""One timed run at a time on a machine: two of them would measure each other.

A run locks `timing` while it measures times, and another one waits for it. A run with concurrent=true waits for nobody:
it shares the lock `concurrent`, so that a run beside it knows, and its records say so. The kernel drops a lock with the
process that holds it, however that ends. The variable BPE_HARNESS_LOCKS names another folder for the locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.common.console import say
from harness.common.errors import UNMEASURED, Refusal

VARIABLE = "BPE_HARNESS_LOCKS"
SECONDS_BETWEEN_TRIES = 0.2
SECONDS_FOR_A_LOOK = 5.0


@contextlib.contextmanager
def timing(concurrent: bool = False) -> Iterator[None]:
    """Hold the machine for timed measurements; wait while another run holds it, unless `concurrent`.

    Raises Refusal for a lock that cannot be opened.
    """
    path = lock_file("concurrent" if concurrent else "timing")
    with opened(path) as descriptor:
        if concurrent:
            share(descriptor, path)
        else:
            wait_for(descriptor, path)
        yield


def wait_for(descriptor: int, path: Path) -> None:
    """Take the lock when no other run is timed; print once which process holds it."""
    named = False
    while not lock(descriptor, fcntl.LOCK_EX) or is_concurrent():
        if not named:
            say(f"another benchmark is running here{holder(path)}; waiting (concurrent=true runs anyway)")
            named = True
        time.sleep(SECONDS_BETWEEN_TRIES)


def share(descriptor: int, path: Path) -> None:
    """Share the lock, which takes at most as long as is_concurrent looks. Raises Refusal if it takes longer."""
    deadline = time.monotonic() + SECONDS_FOR_A_LOOK
    while not lock(descriptor, fcntl.LOCK_SH):
        if time.monotonic() > deadline:
            raise Refusal(f"another program keeps {path} locked; set {VARIABLE} to a folder of your own", UNMEASURED)
        time.sleep(0.01)


def is_concurrent() -> bool:
    """Whether runs with concurrent=true are being timed."""
    with opened(lock_file("concurrent")) as descriptor:
        return not lock(descriptor, fcntl.LOCK_EX)


def lock_file(name: str) -> Path:
    """Where a lock is, the same for every user of the machine whatever their own temporary folders are."""
    shared = Path("/", "tmp")
    folder = os.environ.get(VARIABLE) or (shared if shared.is_dir() else tempfile.gettempdir())
    return Path(folder) / f"bpe-harness-{name}.lock"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor of a lock file, created if missing; reading is enough to lock it, so other users can.

    Raises Refusal for anything but a plain file: opening a pipe would never return.
    """
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, how | os.O_CREAT | os.O_EXCL, 0o644))
                path.chmod(0o644)  # whatever the umask
        descriptor = os.open(path, how)
    except OSError as error:
        raise Refusal(f"cannot lock {path} ({error.strerror}); set {VARIABLE} to a folder", UNMEASURED) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refusal(f"cannot lock {path}: it is not a plain file; remove it", UNMEASURED)
        yield descriptor
    finally:
        os.close(descriptor)


def lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def holder(path: Path) -> str:
    """The process that holds a lock, in parentheses; empty if the system does not say."""
    with contextlib.suppress(OSError, KeyError):
        inode = f":{path.stat().st_ino}"
        for line in Path("/proc/locks").read_text().splitlines():
            kind, _, _, process, place, *_ = line.partition(": ")[2].split()
            if kind == "FLOCK" and place.endswith(inode):
                return f" (process {process}, user {pwd.getpwuid(Path('/proc', process).stat().st_uid).pw_name})"
    return ""
