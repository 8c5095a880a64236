"""Whether compiled modules in a checkout are older than what they are made of, as after `git pull`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDERS = ("variants/native", "harness/proof/native")
SOURCES = (".pyx", ".pxd", ".pxi", ".hpp")
REMEDY = "the compiled part is older than its sources; python -m pip install -e . builds it again"


def is_outdated(root: Path = CHECKOUT) -> bool:
    """Whether some source of a folder is newer than a module in it; installed packages have nothing to compare."""
    files = [path for folder in FOLDERS for path in (root / folder).glob("*")]
    modules = [path for path in files if path.suffix == ".so"]
    sources = [path for path in files if path.suffix in SOURCES]
    return bool(modules and sources) and _newest(sources) > min(path.stat().st_mtime for path in modules)


def _newest(paths: Iterable[Path]) -> float:
    return max(path.stat().st_mtime for path in paths)
