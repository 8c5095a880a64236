"""How the compiled modules were built: each is asked itself, for a build may be older than the files that describe it.

A compiler leaves its version in what it makes, and with debug information its flags as well.
"""

from __future__ import annotations

import functools
import mmap
import re
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

UNAVAILABLE = "unavailable"
COMPILER = re.compile(rb"(GCC: \([^)\0]{0,80}\) [\w.+-]{1,40}|(?:[\w ]{0,20})clang version [^\0\n(]{1,60})")
FLAGS = re.compile(rb"GNU C(?:\+\+)?\d* [\d.]+ (-[^\0\n]{1,2000})")


@functools.cache
def builds(packages: Path) -> list[dict[str, Any]]:
    """The compiled modules below a folder by the compiler and the flags that made them."""
    by_build: dict[tuple[str, str], list[str]] = {}
    for path in sorted(packages.rglob("*")):
        if path.name.endswith(tuple(EXTENSION_SUFFIXES)):
            by_build.setdefault(build(path), []).append(path.name.partition(".")[0])
    return [
        {"compiler": compiler, "flags": flags, "modules": sorted(modules)}
        for (compiler, flags), modules in by_build.items()
    ]


def build(module: Path) -> tuple[str, str]:
    """The compiler and the flags of one module; flags that name a place are left out, they change no code."""
    with module.open("rb") as file:
        if module.stat().st_size == 0:
            return UNAVAILABLE, UNAVAILABLE
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            compiler, flags = COMPILER.search(content), FLAGS.search(content)
            return (
                compiler[1].decode(errors="replace").strip() if compiler else UNAVAILABLE,
                " ".join(flag for flag in flags[1].decode(errors="replace").split() if "/" not in flag)
                if flags
                else UNAVAILABLE,
            )
