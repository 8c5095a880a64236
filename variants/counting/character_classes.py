"""Which classes every character belongs to, taken from the installed `regex` and cached under its
version.

The compiled scanner must agree with `regex` on every code point, whatever version of Unicode that
knows, so its tables are made from `regex` itself. That takes a fifth of a second, once: the tables
lie in the cache folder afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from array import array
from functools import lru_cache
from pathlib import Path

import regex

CLASSES = (
    r"\p{L}",
    r"\p{N}",
    r"\s",
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
)
"""Bit i of a character's classes says whether it matches class i: letter, number, space, and
o200k's two.
"""

PAGE = 128
NUMBER_OF_PAGES = (sys.maxunicode + 1) // PAGE
DIGEST_BYTES = 32
CACHE_VARIABLE = "BPE_HARNESS_CACHE"


@lru_cache(maxsize=1)
def character_classes() -> tuple[bytes, bytes]:
    """The number (uint16) of each page of 128 code points, and the distinct pages, one byte of
    classes a character.
    """
    identity = "\n".join((regex.__version__, sys.byteorder, str(PAGE), *CLASSES)).encode()
    path = harness_cache() / f"character-classes-{hashlib.sha256(identity).hexdigest()[:16]}.bin"
    kept = b""
    with contextlib.suppress(OSError):  # not kept yet, or no folder to keep it in
        kept = path.read_bytes()
    tables = kept[DIGEST_BYTES:]
    if hashlib.sha256(tables).digest() != kept[:DIGEST_BYTES]:
        tables = two_level(classes_of_all())
        with contextlib.suppress(OSError):
            keep(path, hashlib.sha256(tables).digest() + tables)
    return tables[: 2 * NUMBER_OF_PAGES], tables[2 * NUMBER_OF_PAGES :]


def harness_cache() -> Path:
    """The folder that the harness keeps its cache in, moved by the same variable."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "bpe-harness")
    return Path(os.environ.get(CACHE_VARIABLE) or usual)


def classes_of_all() -> bytearray:
    """One byte for every code point; a surrogate is not a character and has no class."""
    classes = bytearray(sys.maxunicode + 1)
    for first, stop in ((0, 0xD800), (0xE000, sys.maxunicode + 1)):
        text = "".join(map(chr, range(first, stop)))
        for bit, expression in enumerate(CLASSES):
            joined = bytes(value | 1 << bit for value in range(256))
            for match in regex.finditer(f"{expression}+", text):
                run = slice(first + match.start(), first + match.end())
                classes[run] = classes[run].translate(joined)
    return classes


def two_level(classes: bytes | bytearray) -> bytes:
    """The page numbers followed by the distinct pages: most of Unicode's 8,704 pages are alike."""
    pages: dict[bytes, int] = {}
    numbers = [
        pages.setdefault(bytes(classes[at : at + PAGE]), len(pages))
        for at in range(0, len(classes), PAGE)
    ]
    return array("H", numbers).tobytes() + b"".join(pages)


def keep(path: Path, content: bytes) -> None:
    """Place the file whole, by renaming, so that concurrent runs never meet half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        Path(folder, "whole").write_bytes(content)
        Path(folder, "whole").replace(path)


if __name__ == "__main__":
    character_classes()
