"""A digest of the code behind a target: its module and what that imports of its own package, read and never run.

Two measurements belong together only if the code did not change between them. Compiled modules count by their files.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import BYTECODE_SUFFIXES, SOURCE_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.measure.sandbox import PACKAGES

MODULE_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
CYTHON_IMPORT = re.compile(r"^\s*(?:from|import|cimport)\s+([A-Za-z_][\w.]*)", re.MULTILINE)


def source_sha256(target: str, params: Mapping[str, Any] = MappingProxyType({})) -> str | None:
    """Return the digest of the code behind `package.module:function`; None if its module cannot be found.

    A program that a parameter names, such as the `./train` of a command, belongs to the code.
    """
    return digest_at(target, params, (*sys.path, os.getcwd(), PACKAGES))  # noqa: PTH109


def digest_at(target: str, params: Mapping[str, Any], places: tuple[str, ...]) -> str | None:
    """Return the digest of the code behind a target that is looked for in these places."""
    module = target.partition(":")[0]
    files = closure(module, places)
    if module not in files:
        return None
    lines = "".join(f"{name} {hashlib.sha256(files[name].read_bytes()).hexdigest()}\n" for name in sorted(files))
    digest = hashlib.sha256(lines.encode()).hexdigest()
    programs = [path for value in params.values() if isinstance(value, str) for path in programs_in(value)]
    if programs:
        return hashlib.sha256(b"".join([digest.encode(), *(path.read_bytes() for path in programs)])).hexdigest()
    return digest


def programs_in(command: str) -> list[Path]:
    """Return the files that a command names by a path, or by a name with a suffix."""
    try:
        named = [Path(word) for word in shlex.split(command) if "/" in word or "." in word]
    except ValueError:  # a quotation that does not end
        return []
    return [path for path in named if path.is_file()]


def closure(module: str, places: tuple[str, ...]) -> dict[str, Path]:
    """Return the files of a module, of its packages, and of all they import of the same top-level package, by name."""
    package = module.partition(".")[0]
    found: dict[str, Path] = {}
    cache: dict[str, ModuleSpec | None] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] != package:
            continue
        spec = located(name, places, cache)
        if spec is None or spec.origin is None or not Path(spec.origin).is_file():
            continue
        found[name] = Path(spec.origin)
        if "." in name:
            waiting.append(name.rpartition(".")[0])
        if found[name].suffix in SOURCE_SUFFIXES:
            imports, texts = names_in(found[name].read_bytes())
            modules = set(imported(imports, name, spec.submodule_search_locations is not None))
            waiting += modules
            # By a name in a string, below a package that is imported from, a source file may import too.
            bases = [base for base in modules if base.partition(".")[0] == package]
            waiting += [*texts, *(f"{base}.{text}" for base in bases for text in texts)]
        else:
            source = found[name].with_name(f"{name.rpartition('.')[2]}.pyx")
            waiting += CYTHON_IMPORT.findall(source.read_text(errors="replace")) if source.is_file() else []
    return found


def located(name: str, places: tuple[str, ...], cache: dict[str, ModuleSpec | None]) -> ModuleSpec | None:
    """Return where a module is, found package by package, so none of them is run for it."""
    if name not in cache:
        cache[name] = None
        above, _, _ = name.rpartition(".")
        package = located(above, places, cache) if above else None
        search = list(places) if not above else package.submodule_search_locations if package else None
        spec = PathFinder.find_spec(name, search) if search is not None else None
        if spec is not None and not (spec.origin or "").endswith(tuple(BYTECODE_SUFFIXES)):
            cache[name] = spec
    return cache[name]


@functools.cache
def names_in(content: bytes) -> tuple[list[ast.Import | ast.ImportFrom], set[str]]:
    """Return the imports of a source file, and its texts that may name a module; none if it does not parse."""
    try:
        syntax = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):
        return [], set()
    texts = {node.value for node in syntax if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    imports = [node for node in syntax if isinstance(node, ast.Import | ast.ImportFrom)]
    return imports, {text for text in texts if MODULE_NAME.fullmatch(text)}


def imported(imports: Iterable[ast.Import | ast.ImportFrom], name: str, is_package: bool) -> Iterator[str]:
    """Yield every module that a source file may import; `from a import b` may mean the module `a.b`."""
    for node in imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            above = name.split(".")[: -node.level + is_package or None] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
