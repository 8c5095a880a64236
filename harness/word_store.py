"""Word counts on disk: the three columns as raw little-endian arrays, and a manifest written last.

Reading maps the files, so that a worker has the words in no time and several share the memory. Standard library only:
workers read it under any interpreter.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from pathlib import Path
from typing import Any

from variants.contract import WordCounts

MANIFEST = "manifest.json"
COLUMNS = (("data", "B"), ("offsets", "q"), ("counts", "Q"))


class BrokenWords(Exception):
    """The folder does not hold word counts, or not all of them."""


def write(folder: Path, word_counts: WordCounts) -> dict[str, Any]:
    """Write the columns into a new folder; returns the manifest."""
    folder.mkdir(parents=True)
    sizes = {}
    for column, _ in COLUMNS:
        view: memoryview = getattr(word_counts, column)
        (folder / column).write_bytes(view)
        sizes[column] = view.nbytes
    manifest = {"words": len(word_counts), "pre_tokens": sum(word_counts.values()), "sizes": sizes}
    manifest["sha256"] = digest(word_counts)
    with (folder / MANIFEST).open("w") as file:
        json.dump(manifest, file)
        file.flush()
        os.fsync(file.fileno())
    return manifest


def read(folder: Path) -> tuple[WordCounts, dict[str, Any]]:
    """Map the columns of a folder. Raises BrokenWords if they are not whole."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        columns = [map_column(folder / column, format, manifest["sizes"][column]) for column, format in COLUMNS]
        word_counts = WordCounts(*columns)
        if (len(word_counts), len(word_counts.data)) != (manifest["words"], word_counts.offsets[-1]):
            raise ValueError("the columns do not belong together")
        return word_counts, {name: manifest[name] for name in ("words", "pre_tokens", "sha256")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokenWords(f"{folder}: {error}") from error


def map_column(path: Path, format: str, size: int) -> memoryview:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size != size:
            raise ValueError(f"{path.name} is not of {size} bytes")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    return memoryview(mapped).cast("B").cast(format)  # type: ignore[call-overload,no-any-return]


def digest(word_counts: WordCounts) -> str:
    """A digest of which words there are and how often, whatever their order."""
    hasher = hashlib.sha256()
    for word, count in sorted(word_counts.items()):
        hasher.update(b"%d %d " % (len(word), count))
        hasher.update(word)
    return hasher.hexdigest()
