"""What a build reads: by its suffix where only that is known, and the Python files that the build's own script names.

Of a build it is known only which script begins it. What that imports, or names in a string, is read by it as far as
anyone can tell without running it; a file too many costs a build, one too few a base that is not what it says.
"""

from __future__ import annotations

import ast
import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomllib

from harness.measure.source_digest import imported

# Of other files only a suffix is known, so whatever is not on this list may go into a compiled module.
NOT_COMPILED = (
    *(".py", ".pyi", ".ipynb", ".md", ".rst", ".txt", ".cff", ".html", ".css", ".js", ".svg", ".png"),
    *(".yaml", ".yml", ".json", ".jsonl", ".csv"),
)
NOT_OF_A_BUILD = ("ruff", "mypy", "pytest", "black", "isort", "coverage", "pyright")
PROJECT = "pyproject.toml"
SCRIPT = "setup.py"
LONGEST_NAME = 200


def is_compiled(name: str) -> bool:
    """Whether a file may go into a compiled module; pyproject.toml is looked into, not at."""
    return name == SCRIPT or not (name.endswith(NOT_COMPILED) or name == PROJECT or Path(name).suffix == "")


def read_by_build(root: Path, build: str) -> set[str]:
    """The files below `root` that its build begins with, imports or names, each by its name from there."""
    found: set[Path] = set()
    root = Path(os.path.normpath(root))
    waiting = [root / SCRIPT, *(root / word for word in words(build)), *backend_files(root)]
    while waiting:
        file = waiting.pop()
        file = Path(os.path.normpath(file))
        if file in found or not file.is_relative_to(root) or not file.is_file():
            continue
        found.add(file)
        if file.suffix == ".py":
            waiting += named_in(file, root)
    return {str(file.relative_to(root)) for file in found}


def words(build: str) -> list[str]:
    try:
        return shlex.split(build)
    except ValueError:  # a quotation that does not end, of which the build itself will complain
        return []


def backend_files(root: Path) -> list[Path]:
    """The Python files of a build backend that lies in the tree itself."""
    system = project(root / PROJECT).get("build-system", {})
    return [file for place in system.get("backend-path", []) for file in (root / place).rglob("*.py")]


def named_in(file: Path, root: Path) -> Iterator[Path]:
    """The files that a script may read: modules that it imports, and what its strings name, also by a pattern."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError):  # no build will read it either
        return
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = list(imported(imports, file.stem, file.stem == "__init__"))
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(text, str) or not _may_name_a_file(text):
            continue
        modules.append(text)
        for place in (root, file.parent):
            if "*" in text and ".." not in text:
                with contextlib.suppress(ValueError):  # no pattern after all
                    yield from list(place.glob(text))
            else:
                yield place / text
    for module in modules:
        parts = module.split(".")
        if all(part.isidentifier() for part in parts):
            for place in (root, file.parent):
                for length in range(1, len(parts) + 1):
                    stem = place.joinpath(*parts[:length])
                    yield from (stem.with_suffix(".py"), stem / "__init__.py")


def _may_name_a_file(text: str) -> bool:
    """Whether a file below a folder can have this name: a part of a path has at most 255 bytes."""
    return 0 < len(text.encode(errors="replace")) < LONGEST_NAME and "\0" not in text and not text.startswith("/")


def recipe(path: Path) -> Any:
    """What of pyproject.toml decides how modules are compiled; None where there is none."""
    content = project(path)
    if not content:
        return None
    tools = {name: said for name, said in content.get("tool", {}).items() if name not in NOT_OF_A_BUILD}
    setuptools = tools.get("setuptools")
    if isinstance(setuptools, dict):
        tools["setuptools"] = setuptools.get("ext-modules")
    return content.get("build-system"), tools


def project(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError):
        return {}
