"""The compiled parts and the one way to them: what is not built is not available, and nothing runs
instead.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from variants.contract import Unavailable

FOLDER = Path(__file__).parent
BUILD_GRID = "BPE_HARNESS_GRID=1 python -m pip install -e ."
# What the grid was built without.
LIBRARIES = {
    "_grid_absl": f"Abseil was not here when this was built; apt-get install libabsl-dev, then {BUILD_GRID} builds it",
    "_grid_boost": (
        "Boost 1.81 or later was not here when this was built; apt-get install libboost1.81-dev (or pip install "
        f"boost-headers, and CPLUS_INCLUDE_PATH naming its headers), then {BUILD_GRID} builds it"
    ),
    "_grid_openmp": (
        f"the compiler had no OpenMP when this was built; with g++ and its libgomp, {BUILD_GRID} builds it"
    ),
}


def built(module: str) -> Any:
    """The compiled module of that name. Raises Unavailable, with what would bring it, where it is
    missing.
    """
    try:
        return importlib.import_module(f"variants.native.{module}")
    except ImportError as error:
        raise Unavailable(why_missing(module)) from error


def loading(*modules: str, optional: Iterable[str] = ()) -> Callable[[], None]:
    """A variant's `before_the_clock()`: loads the compiled modules that it calls, which is not work
    on a corpus.

    Those that are `optional`, by their whole names, may be missing until they are called.
    """

    def load() -> None:
        for module in modules:
            built(module)
        for name in optional:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    return load


def why_missing(module: str) -> str:
    """Why a compiled module cannot be had: it was built for another interpreter than this one, or
    not at all.
    """
    builds = sorted(path.name.split(".")[1] for path in FOLDER.glob(f"{module}.*.so"))
    this = str(sys.implementation.cache_tag)
    if builds and not any(build.startswith(f"{this}-") for build in builds):
        known = ", ".join(builds)
        return f"the compiled part is built for {known} and this is {this}; only Python stages run under others"
    if module.startswith("_grid"):
        with contextlib.suppress(ImportError, KeyError):
            importlib.import_module("variants.native._grid_std")
            return LIBRARIES[module]
        return f"the C++ grid is not built; {BUILD_GRID} builds it"
    return "the compiled part is not built; python -m pip install -e . builds it"
