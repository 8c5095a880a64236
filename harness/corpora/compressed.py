"""What compressed files hold, block by block; a plain file is read the same way. The end of a name says which it is."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.corpora.files import BLOCK_BYTES, Damaged

Show = Callable[[int], None]
# How a compressed stream begins. The first byte or the second is none that UTF-8 text has there, but for bzip2.
BEGINNINGS = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"\xfd7zXZ\x00": ".xz"}
COMPRESSED_AT_ONCE = 1 << 14


def blocks_of(path: Path, show: Show, suffix: str | None = None, start: int = 0) -> Iterator[bytes]:
    """The blocks of the plain text of a file, `show` told of the bytes read from it.

    A file that is not compressed can be read from byte `start` on. Raises Refusal, naming the place, if it is damaged
    or ends early.
    """
    kind = path.suffix.lower() if suffix is None else suffix
    reader = READERS.get(kind, plain_blocks)
    with path.open("rb") as file:
        try:
            if start:
                file.seek(start)
            if reader is not plain_blocks and not file.peek(1):
                raise EOFError
            for block in reader(file, path):
                show(file.tell())
                yield block
        except EOFError:
            raise Damaged(
                f"{path} ends early, at byte {file.tell()}, before its {kind[1:]} stream does; get or make it again"
            ) from None
        except Exception as error:
            # OSError is also what gzip and bz2 raise for wrong bytes, without a number.
            if not isinstance(error, (OSError, zlib.error, lzma.LZMAError)) and type(error).__name__ != "ZstdError":
                raise
            if isinstance(error, OSError) and error.errno is not None:
                raise Refusal(f"cannot read {path} ({error.strerror})", UNMEASURED) from error
            raise Damaged(
                f"{path} is damaged or no {kind[1:]} file ({error}, by byte {file.tell()}); get or make it again"
            ) from error


def plain_blocks(file: IO[bytes], _: Path) -> Iterator[bytes]:
    while block := file.read(BLOCK_BYTES):
        yield block


def opened_with(open_stream: Callable[[IO[bytes]], Any]) -> Callable[[IO[bytes], Path], Iterator[bytes]]:
    def blocks(file: IO[bytes], path: Path) -> Iterator[bytes]:
        with open_stream(file) as stream:
            yield from plain_blocks(stream, path)

    return blocks


def zstandard_blocks(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """One frame after another. The library's own reader takes half a frame for a whole one, so the ends are watched."""
    unpacker = extra("zstandard", path.name).ZstdDecompressor(max_window_size=1 << 31)
    frame = None
    while packed := file.read(COMPRESSED_AT_ONCE):
        while packed:
            frame = frame or unpacker.decompressobj()
            block = frame.decompress(packed)
            packed, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
            if block:
                yield block
    if frame is not None:
        raise EOFError


READERS: dict[str, Callable[[IO[bytes], Path], Iterator[bytes]]] = {
    ".gz": opened_with(lambda file: gzip.GzipFile(fileobj=file)),
    ".bz2": opened_with(bz2.BZ2File),
    ".xz": opened_with(lzma.LZMAFile),
    ".zst": zstandard_blocks,
}
