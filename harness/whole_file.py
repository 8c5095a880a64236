"""A file that is written whole or not at all: what stood there before stays until all of the new one is there."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import Refusal


def write_whole(path: Path, content: bytes, instead: str = "choose another place with --output") -> None:
    """Write a file and the folders it lies in. Raises Refusal, with what to do instead, if that is not possible."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Refusal(f"cannot write {path} ({error.strerror}); {instead}") from error
