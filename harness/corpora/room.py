"""Whether a disk has room, asked before anything is written."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness import cache
from harness.errors import UNMEASURED, Refusal
from harness.units import bytes_text


def check_room(folder: Path, needed: int, what: str) -> None:
    """Raises Refusal if `folder` has fewer than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Refusal(
            f"{what} needs {bytes_text(needed)} in {folder}, and {bytes_text(free)} are free; make room, or set "
            f"{cache.VARIABLE} to a folder that has it",
            UNMEASURED,
        )
