"""The digest of the code behind a target.

Measurements belong together only if the code did not change between them. The digest is of the
target's module and of what that imports of its own package, read and never run; compiled modules
count by their files.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    SOURCE_SUFFIXES,
    ModuleSpec,
    PathFinder,
)
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.measure.machine import CHECKOUT

MODULE_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
CYTHON_IMPORT = re.compile(r"^\s*(?:from|import|cimport)\s+([A-Za-z_][\w.]*)", re.MULTILINE)


def source_sha256(
    target: str,
    params: Mapping[str, Any] = MappingProxyType({}),
    import_folders: Iterable[str] = (),
) -> str | None:
    """Return the digest of the code behind `package.module:function`; None if its module cannot be
    found.

    It is looked for in these folders, else where this process would. A program that a parameter
    names, such as the `./train` of a command, belongs to the code.
    """
    module = target.partition(":")[0]
    files = closure(module, tuple(import_folders) or (*sys.path, os.getcwd(), str(CHECKOUT)))  # noqa: PTH109
    if module not in files:
        return None

    lines = ""
    for name in sorted(files):
        lines += f"{name} {hashlib.sha256(files[name].read_bytes()).hexdigest()}\n"
    digest = hashlib.sha256(lines.encode())

    programs: list[Path] = []
    for value in params.values():
        if isinstance(value, str):
            programs += programs_in(value)
    if programs:
        digest = hashlib.sha256(
            b"".join([digest.hexdigest().encode(), *(path.read_bytes() for path in programs)])
        )
    return digest.hexdigest()


def programs_in(command: str) -> list[Path]:
    """Return the files that a command names by a path, or by a name with a suffix."""
    try:
        named = [Path(word) for word in shlex.split(command) if "/" in word or "." in word]
    except ValueError:  # a quotation that does not end
        return []
    return [path for path in named if path.is_file()]


def closure(module: str, import_folders: tuple[str, ...]) -> dict[str, Path]:
    """Return the files of a module, of its packages, and of all they import of the same top-level
    package, by name.
    """
    package = module.partition(".")[0]
    found: dict[str, Path] = {}
    cache: dict[str, ModuleSpec | None] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        spec = (
            located(name, import_folders, cache)
            if name not in found and name.partition(".")[0] == package
            else None
        )
        if spec is None or spec.origin is None or not Path(spec.origin).is_file():
            continue
        found[name] = file = Path(spec.origin)
        waiting += [name.rpartition(".")[0]] if "." in name else []
        if file.suffix in SOURCE_SUFFIXES:
            modules, texts = names_in(
                file.read_bytes(), name, spec.submodule_search_locations is not None
            )
            # By a name in a string, below a package that is imported from, a source file may import
            # too.
            bases = [base for base in modules if base.partition(".")[0] == package]
            waiting += [*modules, *texts, *(f"{base}.{text}" for base in bases for text in texts)]
        else:
            source = file.with_name(f"{name.rpartition('.')[2]}.pyx")
            waiting += (
                CYTHON_IMPORT.findall(source.read_text(errors="replace"))
                if source.is_file()
                else []
            )
    return found


def located(
    name: str, import_folders: tuple[str, ...], cache: dict[str, ModuleSpec | None]
) -> ModuleSpec | None:
    """Return where a module is, found package by package, so none of them is run for it."""
    if name in cache:
        return cache[name]

    cache[name] = None
    folders: Sequence[str] | None = import_folders
    above, _, _ = name.rpartition(".")
    if above:
        package = located(above, import_folders, cache)
        folders = package.submodule_search_locations if package else None
    if folders is None:
        return None

    spec = PathFinder.find_spec(name, list(folders))
    if spec is not None and not (spec.origin or "").endswith(tuple(BYTECODE_SUFFIXES)):
        cache[name] = spec
    return cache[name]


@functools.cache
def names_in(content: bytes, name: str, is_package: bool) -> tuple[set[str], set[str]]:
    """Return every module that a source file may import, and its texts that may name one; none if
    it does not parse.

    `from a import b` may mean the module `a.b`.
    """
    modules, texts = set(), set()

    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = name.split(".")[: -node.level + is_package or None] if node.level else []
                base = ".".join([*above, *filter(None, [node.module])])
                modules |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and MODULE_NAME.fullmatch(node.value)
            ):
                texts.add(node.value)

    return modules, texts
