"""Compressed files as plain ones; what a file is compressed with is told by the end of its name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import cache
from harness.corpora.extras import extra
from harness.errors import UNMEASURED, Refusal


class Damaged(Refusal):
    """A file is not what its name says, or ends too early: to be fetched again."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(f"{path} is damaged ({why}); get it again", UNMEASURED)


def zstandard() -> Any:
    return extra("zstandard", "a file compressed with Zstandard")


OPEN: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": lambda path: zstandard().open(path, "rb"),
}
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)


def unpack(packed: Path, place: Path) -> None:
    """Write what is compressed in `packed` to `place`. Raises Refusal if it is damaged or cut short."""
    with OPEN[packed.suffix](packed) as compressed, cache.placing(place) as temporary, temporary.open("wb") as plain:
        while block := next_block(compressed, packed):
            plain.write(block)


def next_block(compressed: Any, packed: Path) -> bytes:
    try:
        block: bytes = compressed.read(1 << 20)
        return block
    except Exception as error:
        if not isinstance(error, DAMAGED) and type(error).__name__ != "ZstdError":  # of a module that may be absent
            raise
        raise Damaged(packed, error) from error
