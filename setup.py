"""The packages and the compiled modules: each source stands here once, its headers by their names.

All else about the project is in pyproject.toml.
"""

from pathlib import Path
from typing import Any

from setuptools import Extension, find_packages, setup

NATIVE = "variants/native"


def headers(*prefixes: str) -> list[str]:
    """What a module is compiled again for: the headers and declarations whose names begin so."""
    return sorted(
        str(file)
        for prefix in prefixes
        for kind in ("hpp", "pxd", "pxi")
        for file in Path(NATIVE).glob(f"{prefix}*.{kind}")
    )


def module(name: str, source: str, *depends: str, cpp: str = "", **further: Any) -> Extension:
    """A module of variants/native; `cpp` holds the compiler's options where it is C++."""
    if cpp:
        arguments = ["-std=c++17", *cpp.split()]
        further = {"language": "c++", "include_dirs": [NATIVE], "extra_compile_args": arguments, **further}
    return Extension(f"variants.native.{name}", [f"{NATIVE}/{source}"], depends=headers(*depends), **further)


def grid(library: str, options: str = "-O2", **further: Any) -> Extension:
    """The points of the grid over one library: what may be absent is a module of its own, left out where it fails."""
    return module(f"_grid_{library}", f"grid_{library}.cpp", "grid", "job", cpp=options, **further)


REPLAY = Extension(
    "harness.proof.native._replay",
    ["harness/proof/native/_replay.pyx"],
    include_dirs=["harness/proof/native", NATIVE],
    extra_compile_args=["-std=c++17", "-O3"],
    language="c++",
    depends=[*sorted(str(file) for file in Path("harness/proof/native").glob("*.hpp")), f"{NATIVE}/job.hpp"],
)
CARDS = sorted({file.parent.name for file in Path("conf").glob("*/*.yaml")})

setup(
    packages=[
        *find_packages(include=["variants*", "harness*"]),
        "harness.conf",
        *(f"harness.conf.{group}" for group in CARDS),
    ],
    package_dir={"harness.conf": "conf"},
    ext_modules=[
        module("_typed_updates", "_typed_updates.pyx", "_windows"),
        module("_uncopied_updates", "_uncopied_updates.pyx", "_windows", "_uncopied_updates"),
        module("_grown_updates", "_grown_updates.pyx", "_uncopied_updates"),
        module("_loop", "_loop.pyx", "_uncopied_updates"),
        module("_typed", "_typed.pyx", "_containers", "columns", "job", cpp="-O2"),
        module("_flat", "_flat.pyx", "flat", "job", "learned", "columns", cpp="-O3"),
        module("_word_runs", "_word_runs.pyx", "word_runs", cpp="-O2"),
        module("_scanner", "_scanner.pyx", "scanner", "word_runs", cpp="-O2"),
        module("_grid", "_grid.pyx", "grid", "job", "learned", "columns", cpp="-O2"),
        grid("std"),
        grid("dense"),
        grid("openmp", "-O2 -fopenmp", extra_link_args=["-fopenmp"], optional=True),
        grid("boost"),
        grid("absl", libraries=["absl_raw_hash_set", "absl_hash"], optional=True),
        REPLAY,
    ],
)
