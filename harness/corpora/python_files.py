"""The running Python's own modules as text: what every machine has."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from harness import cache

LEFT_OUT = {"test", "tests", "idle_test", "idlelib_test", "site-packages", "dist-packages", "__pycache__"}
SEPARATOR = "<|endoftext|>"


@functools.cache
def standard_library() -> Path:
    """The running Python's own modules as one file, a document each, made again when they change."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(source_files(root), key=lambda path: path.relative_to(root).as_posix())
    listing = [(path.relative_to(root).as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = hashlib.sha256(json.dumps(listing).encode()).hexdigest()[:16]
    path = cache.folder("corpora") / f"stdlib-{sys.version_info.major}.{sys.version_info.minor}-{key}.txt"
    if not path.exists():
        with cache.placing(path) as temporary, temporary.open("wb") as joined:
            for file in files:
                content = file.read_bytes()
                if is_utf8(content):
                    joined.write(content + SEPARATOR.encode())
    return path


def source_files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        paths = (Path(folder, name) for name in names if name.endswith(".py"))
        yield from (path for path in paths if path.is_file())  # a link may lead nowhere


def is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
