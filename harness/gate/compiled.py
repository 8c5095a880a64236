"""The compiled modules of the base: copied from the working tree, or built."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar

DOCUMENTS = (".md", ".rst")
BUILD_FILES = ("setup.py", "pyproject.toml")


def provide_compiled(
    root: Path, checkout: Path, changed: Sequence[str], build: str, packages: Sequence[Path]
) -> None:
    """Copy the compiled modules of these packages into the checkout; build them there if any changed
    file but plain Python of the packages may have changed them.
    """
    folders = [path for path in packages if path.is_dir()]
    modules = [file for folder in folders for file in folder.rglob("*") if is_compiled(file)]
    modules += [path for path in packages if is_compiled(path)]
    for module in modules:
        source = module.with_name(module.name.partition(".")[0] + ".pyx")
        if source.is_file() and source.stat().st_mtime > module.stat().st_mtime:
            raise Refusal(
                f"{source.name} is newer than its compiled module; run pip install -e .", UNMEASURED
            )

    projects = {project_of(root, module) for module in modules}
    others = {root / name for name in changed} - set(modules)
    for path in others if modules else ():
        in_package = any(path.is_relative_to(package) for package in packages)
        if not in_package or path.suffix != ".py" or is_built_by(projects, path):
            for project in sorted(projects):
                build_base(checkout / project.relative_to(root), build)
            return

    for module in modules:
        target = checkout / module.relative_to(root)
        if not target.exists():  # else it is committed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(module, target)


def is_compiled(path: Path) -> bool:
    return path.name.endswith(tuple(EXTENSION_SUFFIXES))


def project_of(root: Path, module: Path) -> Path:
    """Return the innermost folder above a module that has a build file; else the root."""
    for folder in module.parents:
        if folder == root or any((folder / name).is_file() for name in BUILD_FILES):
            return folder
    return root


def is_built_by(projects: Iterable[Path], path: Path) -> bool:
    """Whether a build file names a module, and so may run it."""
    name = path.parent.name if path.stem == "__init__" else path.stem
    files = [project / file for project in projects for file in BUILD_FILES]
    texts = [file.read_text() for file in files if file.is_file()]
    return any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)


def build_base(checkout: Path, build: str) -> None:
    """Build what is compiled. Raises Refusal with the last line of what failed."""
    command = [part.replace("{python}", sys.executable) for part in shlex.split(build)]
    with bar("building the base", 0, "modules"):
        built = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)

    if built.returncode != 0:
        output = (built.stderr or built.stdout).strip()
        reason = output.rpartition("\n")[2] or "without a message"
        raise Refusal(
            f"cannot build the base with build={build!r} ({reason}); "
            f"run {sys.executable} -m pip install for what its pyproject.toml requires",
            UNMEASURED,
        )
