"""The folder where corpora, their digests, their counts and their references are kept between runs.

One variable moves it: BPE_HARNESS_CACHE. Everything in it can be made again; deleting it costs time only. Files and
folders appear in it whole, by being renamed, so that concurrent runs do not meet half of one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.errors import UNMEASURED, Refusal

VARIABLE = "BPE_HARNESS_CACHE"


def folder(*parts: str) -> Path:
    """A folder below the cache, made if need be."""
    base = os.environ.get(VARIABLE) or os.path.join(  # noqa: PTH118
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),  # noqa: PTH111
        "bpe-harness",
    )
    path = Path(base).joinpath(*parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(path, error) from error
    return path


def unusable(path: Path, error: OSError) -> Refusal:
    why = error.strerror
    return Refusal(
        f"cannot use the cache {path} ({why}); set {VARIABLE} to a folder that can be written and has room", UNMEASURED
    )


@contextlib.contextmanager
def placing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it when the block ends well and removed when it does not."""
    try:
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=path.parent)) / path.name
    except OSError as error:
        raise unusable(path.parent, error) from error
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if path.is_dir():  # another run has placed the same folder in the meantime
            return
        raise unusable(path, error) from error
    finally:
        shutil.rmtree(temporary.parent)
