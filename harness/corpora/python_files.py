"""The running Python's own modules, and those installed for it, as text: what every machine has."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from harness.common.files import cache_folder, placing

NO_SOURCE = {"test", "tests", "idle_test", "idlelib_test", "__pycache__"}
INSTALLED = {"site-packages", "dist-packages"}
SEPARATOR = "<|endoftext|>"


@functools.cache
def standard_library() -> Path:
    """The running Python's own modules as one file, a document each, made again when they change."""
    return joined("stdlib", Path(sysconfig.get_paths()["stdlib"]), NO_SOURCE | INSTALLED)


@functools.cache
def site_packages() -> Path:
    """The modules installed for the running Python, likewise."""
    return joined("site_packages", Path(sysconfig.get_paths()["purelib"]), NO_SOURCE)


def joined(name: str, root: Path, left_out: set[str]) -> Path:
    files = sorted(source_files(root, left_out), key=lambda path: path.relative_to(root).as_posix())
    listing = [(path.relative_to(root).as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    key = hashlib.sha256(json.dumps(listing).encode(errors="surrogateescape")).hexdigest()[:16]
    path = cache_folder("corpora") / f"{name}-{sys.version_info.major}.{sys.version_info.minor}-{key}.txt"
    if not path.exists():
        with placing(path) as temporary, temporary.open("wb") as whole:
            for file in files:
                content = file.read_bytes()
                if is_utf8(content):
                    whole.write(content + SEPARATOR.encode())
    return path


def source_files(root: Path, left_out: set[str]) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in left_out]
        paths = (Path(folder, name) for name in names if name.endswith(".py"))
        yield from (path for path in paths if path.is_file())  # a link may lead nowhere


def is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
