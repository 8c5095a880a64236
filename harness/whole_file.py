"""A file that is written whole or not at all: what stood there before stays until all of the new one is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import USAGE, Refusal

ELSEWHERE = "choose another place with --output"


def write_whole(path: Path, content: bytes, instead: str = ELSEWHERE, exit_code: int = USAGE) -> None:
    """Write a file and the folders it lies in. Raises Refusal, with what to do instead, if that is not possible."""
    with whole_file(path, instead, exit_code) as part:
        part.write_bytes(content)


@contextlib.contextmanager
def whole_file(path: Path, instead: str = ELSEWHERE, exit_code: int = USAGE) -> Iterator[Path]:
    """Where to write what will stand at `path` once the block has ended well. Raises Refusal as `write_whole` does."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Refusal(f"cannot write {path} ({error.strerror or error}); {instead}", exit_code) from error
