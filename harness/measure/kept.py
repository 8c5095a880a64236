"""Reference merges in the cache, guarded against what is being measured: it could write there as we do.

The kernel's time of change cannot be set by who changes a file. A reference that was made or changed while a measured
process or one of its children lived is removed when all of them have ended, and made anew by those who need it. That
may be another run's, honestly made in that moment; it costs time only.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from harness.common.files import cache_folder

REFERENCES = "*/reference-*"


class UntouchedReferences:
    """A context around a measured process; after it, no reference is there that was touched within."""

    def __enter__(self) -> UntouchedReferences:
        self.folder = cache_folder("counts")
        self.before = self.seen()
        return self

    def __exit__(self, *error: object) -> None:
        for path, identity in self.seen().items():
            if self.before.get(path) != identity:
                with contextlib.suppress(OSError):
                    path.unlink()

    def seen(self) -> dict[Path, tuple[int, ...]]:
        """Each reference, and what changes with it, whoever changes it."""
        found: dict[Path, tuple[int, ...]] = {}
        for path in self.folder.glob(REFERENCES):
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(path)
                found[path] = (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size, status.st_nlink)
        return found
