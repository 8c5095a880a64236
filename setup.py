"""The packages and the compiled modules: each source stands here once, its headers by their names.

All else about the project is in pyproject.toml.
"""

import os
import shlex
import shutil
import sysconfig
from pathlib import Path
from threading import Lock
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

NATIVE = "variants/native"
SHARED = "variants.native._shared"


def headers(*beginnings: str) -> list[str]:
    """What a module is compiled again for: the headers and declarations whose paths begin so."""
    kinds = ("hpp", "pxd", "pxi")
    return sorted(
        str(file)
        for begins in beginnings
        for kind in kinds
        for file in Path().glob(f"{begins}*.{kind}")
    )


def module(
    name: str, source: str, *depends: str, cpp: str = "", folder: str = NATIVE, **options: Any
) -> Extension:
    """A module with headers of its folder and of NATIVE; `cpp` holds the compiler's options if it
    is C++.
    """
    folders = list(dict.fromkeys([folder, NATIVE]))
    # What debuggers want names folders: without it a module is the same, byte for byte, wherever
    # its sources are.
    arguments = ["-g0", *(["-std=c++17", *cpp.split()] if cpp else [])]
    if cpp:
        options = {"language": "c++", "include_dirs": folders, **options}
        depends = (*depends, "interpreter", "job", "training", "parallel")
    beginnings = [f"{place}/{begins}" for place in folders for begins in depends]
    name = f"{folder.replace('/', '.')}.{name}"
    return Extension(
        name,
        [f"{folder}/{source}"],
        depends=headers(*beginnings),
        extra_compile_args=arguments,
        **options,
    )


def grid(library: str, cpp: str = "-O2", **options: Any) -> Extension:
    """The points of the grid over one library: what may be absent is a module of its own, left out
    where it fails.
    """
    return module(f"_grid_{library}", f"grid_{library}.cpp", "grid", cpp=cpp, **options)


class Build(build_ext):
    """Check for a compiler first, then compile as many modules at once as there are cores.

    What Cython's modules have in common is compiled once, as SHARED. An editable install leaves
    the grid out unless it is asked for it or an earlier build made it: the first command
    does not need it.
    """

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = True
        self.one_cython = Lock()

    def run(self) -> None:
        named = os.environ.get("CXX") or sysconfig.get_config_var("CXX")
        if named and shutil.which(shlex.split(named)[0]) is None:
            advice = "install one, such as with apt-get install g++, or set CXX"
            raise SystemExit(
                f"bpe-harness needs a C++ compiler, and {named} was not found; {advice}"
            )
        grid_built = any(Path(NATIVE).glob("_grid*.so"))
        if self.editable_mode and not grid_built and not os.environ.get("BPE_HARNESS_GRID"):
            self.extensions = [ext for ext in self.extensions if "._grid" not in ext.name]
        super().run()

    def build_extension(self, ext: Extension) -> None:
        with self.one_cython:  # Cython's options are global
            [made] = cythonize(
                ext,
                force=self.force,
                include_path=ext.include_dirs,
                shared_utility_qualified_name=SHARED,
            )
        ext.sources = made.sources
        super().build_extension(ext)


CARDS = sorted({file.parent.name for file in Path("conf").glob("*/*.yaml")})

setup(
    packages=[
        *find_packages(include=["variants*", "harness*"]),
        "harness.conf",
        "harness.proof.outside",  # not a package: a program to copy
        *(f"harness.conf.{group}" for group in CARDS),
    ],
    cmdclass={"build_ext": Build},
    package_dir={"harness.conf": "conf"},
    ext_modules=[
        # Those that take longest come first, so that no core waits at the end.
        module("_flat", "_flat.pyx", "flat", "memory", "scanner_classes", cpp="-O3"),
        module("_encoder", "_encoder.pyx", "encoder", "scanner", "flat", "memory", cpp="-O3"),
        module("_scanner", "_scanner.pyx", "scanner", "memory", "word_runs", cpp="-O2"),
        module("_replay", "_replay.pyx", "replay", cpp="-O3", folder="harness/proof/native"),
        grid("dense"),
        grid("absl", libraries=["absl_raw_hash_set", "absl_hash"], optional=True),
        grid("boost", optional=True),
        module("_grid", "_grid.pyx", "grid", cpp="-O2"),
        grid("openmp", "-O2 -fopenmp", extra_link_args=["-fopenmp"], optional=True),
        grid("std"),
        module("_typed", "_typed.pyx", "grid.", "grid_containers", cpp="-O2"),
        module("_updates", "_updates.pyx"),
        Extension(SHARED, [f"{NATIVE}/_shared.c"], extra_compile_args=["-g0", "-O1"]),
        module("_word_runs", "_word_runs.pyx", "word_runs", cpp="-O2"),
    ],
)
