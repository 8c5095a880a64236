"""The compiled modules of the base: copied from the working tree, or built."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.measure.machine import git
from harness.measure.sources import closure

DOCUMENTS = (".md", ".rst")
PAGES = (".txt", ".cff", ".html", ".css", ".js", ".svg", ".png")
DATA = (".yaml", ".yml", ".json", ".jsonl", ".csv")
NOT_COMPILED = ("", ".py", ".pyi", ".ipynb", *DOCUMENTS, *PAGES, *DATA)
BUILD_FILE = "setup.py"  # it may decide what is compiled, and so may a file with any other suffix


def compiled_modules(targets: Sequence[str], packages: Mapping[str, Path]) -> list[Path]:
    """Return the compiled modules of the working tree that these targets may import."""
    folders = tuple({str(path.parent) for path in packages.values()})
    files = {
        path for target in targets for path in closure(target.partition(":")[0], folders).values()
    }
    return sorted(path for path in files if path.name.endswith(tuple(EXTENSION_SUFFIXES)))


def provide_compiled(
    root: Path, checkout: Path, commit: str, build: str, modules: Sequence[Path]
) -> None:
    """Copy the compiled modules into the checkout if no compiled source changed, otherwise
    build them there.
    """
    for module in modules:
        source = module.with_name(module.name.partition(".")[0] + ".pyx")
        if source.is_file() and source.stat().st_mtime > module.stat().st_mtime:
            raise Refusal(
                f"{source.name} is newer than its compiled module; run pip install -e .", UNMEASURED
            )

    changed = map(Path, git(root, "diff", "--name-only", "-z", commit).split("\0"))
    if modules and any(
        path.name == BUILD_FILE or path.suffix not in NOT_COMPILED for path in changed
    ):
        build_base(checkout, build)
        return

    for module in modules:
        target = checkout / module.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(module, target)


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
