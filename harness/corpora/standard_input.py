"""Standard input as a file: read once, to the end, for all the processes that will read the corpus."""

from __future__ import annotations

import atexit
import functools
import shutil
import sys
import tempfile
from pathlib import Path

from harness.common import files
from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.corpora.compressed import BEGINNINGS, blocks_of
from harness.corpora.files import BLOCK_BYTES, Part


@functools.cache
def spooled() -> tuple[Path, tuple[Part, ...]]:
    """The file that standard input was written to, unpacked if it was compressed; it is gone when this process ends.

    It lies in the cache, where there is room for corpora, and not where temporary files are, which may be memory.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise Refusal("data.path=- reads standard input, and nothing is piped into it; say COMMAND | ... data.path=-")
    folder = Path(tempfile.mkdtemp(prefix="stdin-", dir=files.cache_folder("spool")))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    text = folder / "standard input"
    try:
        with text.open("wb") as file, bar("reading standard input", 0, "bytes") as show:
            while block := sys.stdin.buffer.read(BLOCK_BYTES):
                file.write(block)
                show(file.tell())
        return unpacked(text), (Part(0, "standard input"),)
    except OSError as error:
        raise Refusal(
            f"cannot keep standard input in {folder.parent} ({error.strerror}); set {files.CACHE_VARIABLE} to a folder "
            "with room for it",
            UNMEASURED,
        ) from error


def unpacked(text: Path) -> Path:
    with text.open("rb") as file:
        head = file.read(max(map(len, BEGINNINGS)))
    kind = next((kind for beginning, kind in BEGINNINGS.items() if head.startswith(beginning)), None)
    if kind is None:
        return text
    plain = text.with_name("unpacked standard input")
    with plain.open("wb") as file, bar("unpacking standard input", text.stat().st_size, "bytes") as show:
        try:
            for block in blocks_of(text, show, kind):
                file.write(block)
        except Refusal as refusal:
            raise Refusal(f"{refusal}".replace(str(text), "standard input"), refusal.exit_code) from refusal
    text.unlink()
    return plain
