"""One timed run at a time on a machine: two of them would measure each other.

A run holds a lock while it measures times; another one is refused unless it says concurrent=true. Those that do hold
a lock of their own, so that a run beside which they appear knows it and its records say so. The kernel drops locks with
the process that held them, however it ends. One variable moves the locks: BPE_HARNESS_LOCKS.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.errors import UNMEASURED, Refusal

VARIABLE = "BPE_HARNESS_LOCKS"


def lock_file(name: str) -> Path:
    """A lock's place, the same for every user of the machine whatever their own temporary folders are."""
    shared = Path("/", "tmp")
    folder = os.environ.get(VARIABLE) or (shared if shared.is_dir() else tempfile.gettempdir())
    return Path(folder) / f"bpe-harness-{name}.lock"


def opened(path: Path) -> int:
    """A descriptor of a lock file, which whoever comes first makes; reading it is enough to lock it."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644))
            path.chmod(0o644)  # whatever the umask: other users lock it too
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)


def locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def others_beside() -> bool:
    """Whether runs are being timed that said concurrent=true."""
    descriptor = opened(lock_file("concurrent"))
    try:
        return not locked(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def timing(concurrent: bool = False) -> Iterator[None]:
    """Hold the machine for timed measurements. Raises Refusal if another run is being timed that this must not join."""
    descriptor = None
    try:
        descriptor = opened(lock_file("concurrent" if concurrent else "timing"))
        if concurrent:
            fcntl.flock(descriptor, fcntl.LOCK_SH)  # waits at most for a look of others_beside
        elif not locked(descriptor, fcntl.LOCK_EX) or others_beside():
            raise Refusal(
                "another run is being timed on this machine, and each would measure the other; wait for it, or say "
                "concurrent=true to measure all the same, which the records will say",
                UNMEASURED,
            )
        yield
    except OSError as error:
        if descriptor is not None:
            raise
        raise Refusal(
            f"cannot lock {error.filename} ({error.strerror}); set {VARIABLE} to a folder", UNMEASURED
        ) from error
    finally:
        if descriptor is not None:
            os.close(descriptor)
