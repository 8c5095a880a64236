"""The base of a change: the commit it departs from, checked out beside the working tree, with its compiled modules.

What was compiled from the same sources in the same way is copied from the working tree; anything else is built anew.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.gate.build_inputs import PROJECT, is_compiled, read_by_build, recipe
from harness.gate.card import BaseOfCard
from harness.gate.sides import Side, here, linked_side, package_of
from harness.gate.watched import make_read_only, make_writable
from harness.measure.source_digest import closure


class NoBase(Exception):
    """There is nothing to compare with; the message says why, and what would change that."""


@contextlib.contextmanager
def base_side(targets: Sequence[str], base: BaseOfCard, folder: Path) -> Iterator[Side]:
    """What the targets were where the working tree departs from the base. Raises NoBase if there is no such place.

    Raises Refusal if it cannot be checked out or built.
    """
    packages = sorted({package_of(target) for target in targets})
    places = {package: lies for package in packages if (lies := here(package)) is not None}
    root = repository_of(places)
    commit, described = departure(root, base.against)
    checkout = folder / "checkout"
    git(root, "worktree", "add", "--detach", "--quiet", "--force", str(checkout), commit)
    try:
        provide_compiled(root, checkout, commit, base.build, compiled_for(targets, list(places.values())))
        links = {package: checkout / lies.relative_to(root) for package, lies in places.items()}
        for package, lies in links.items():
            if not lies.exists():
                raise NoBase(f"{described} has no package {package} yet; --no-base says that this is meant")
        beside = tuple(dict.fromkeys(lies.parent for lies in links.values()))
        compile_ahead(list(links.values()))
        make_read_only(checkout)
        yield replace(linked_side("base", described, None, folder, links, beside), frozen=True)
    finally:
        make_writable(checkout)
        with contextlib.suppress(Refusal):
            git(root, "worktree", "remove", "--force", str(checkout))


def compile_ahead(packages: Sequence[Path]) -> None:
    """Leave compiled what Python would compile at the first import; what does not parse fails there and not here."""
    command = [sys.executable, "-I", "-m", "compileall", "-q", *map(str, packages)]
    subprocess.run(command, capture_output=True, check=False)


def repository_of(places: dict[str, Path]) -> Path:
    """The root of the one repository that all packages are files of."""
    roots = set()
    for package, lies in places.items():
        try:
            root = git(lies.parent, "rev-parse", "--show-toplevel")
            if git(Path(root), "ls-files", "--others", "--exclude-standard", str(lies)) and not git(
                Path(root), "ls-files", str(lies)
            ):
                raise NoBase(f"git does not know {package} yet; commit it, or --no-base says that this is meant")
            git(Path(root), "ls-files", "--error-unmatch", str(lies))
        except (Refusal, FileNotFoundError) as error:
            raise NoBase(
                f"{package} is not in a git checkout ({lies.name} is installed); compare two environments: "
                "--base PYTHON --head PYTHON"
            ) from error
        roots.add(Path(root).resolve())
    if len(roots) != 1:
        raise NoBase("what is gated is not of one git checkout; compare two environments: --base PYTHON --head PYTHON")
    return roots.pop()


def departure(root: Path, against: Sequence[str]) -> tuple[str, str]:
    """The merge base with the first of these names there is; of a commit that is there itself, the one before it."""
    head = commit_of(root, "HEAD")
    if head is None:
        raise NoBase("there is no commit yet, so nothing to compare with; --no-base says that this is meant")
    name = next((each for each in against if commit_of(root, each) is not None), None)
    if name is None:
        raise NoBase(
            f"git knows none of {', '.join(against)}; fetch it, use --against COMMIT, or --no-base if there is none yet"
        )
    try:
        commit = git(root, "merge-base", "HEAD", name)
    except Refusal as error:
        raise NoBase(
            f"the history here does not reach where HEAD departs from {name}; git fetch --unshallow gets it"
        ) from error
    if commit != head or git(root, "status", "--porcelain", "--untracked-files=no"):
        return commit, f"{commit[:12]} ({'HEAD' if commit == head else f'where HEAD departs from {name}'})"
    before = commit_of(root, "HEAD^")
    if before is None:
        raise NoBase(
            "HEAD is the first commit there is here; --no-base says that this is meant, a shallow clone gets more with "
            "git fetch --unshallow"
        )
    return before, f"{before[:12]} (the commit before HEAD)"


def commit_of(root: Path, name: str) -> str | None:
    try:
        return git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except Refusal:
        return None


def compiled_for(targets: Sequence[str], packages: Sequence[Path]) -> list[Path]:
    """The compiled modules of the working tree that these targets may import."""
    places = tuple(dict.fromkeys(str(lies.parent) for lies in packages))
    files = {path for target in targets for path in closure(target.partition(":")[0], places).values()}
    return sorted(path for path in files if path.name.endswith(tuple(EXTENSION_SUFFIXES)))


def provide_compiled(root: Path, checkout: Path, commit: str, build: str, modules: Sequence[Path]) -> None:
    """Put the compiled modules that are needed into the checkout, if any are."""
    if not modules:
        return
    check_built(root, modules)
    if built_alike(root, checkout, commit, build):
        for module in modules:
            target = checkout / module.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(module, target)
        return
    command = [part.replace("{python}", sys.executable) for part in shlex.split(build)]
    with bar("building the base", 0, "modules"):
        made = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        last = (made.stderr.strip() or made.stdout.strip() or "it said nothing").splitlines()[-1]
        raise Refusal(f"cannot build the base with base.build={build!r} ({last})", UNMEASURED)


def check_built(root: Path, modules: Sequence[Path]) -> None:
    """Raises Refusal if the source of a module is newer than the module: what runs here is not what stands here."""
    for module in modules:
        source = module.with_name(module.name.partition(".")[0] + ".pyx")
        if source.is_file() and source.stat().st_mtime > module.stat().st_mtime:
            raise Refusal(
                f"{source.relative_to(root)} is newer than what was compiled of it; python -m pip install -e . builds",
                UNMEASURED,
            )


def built_alike(root: Path, checkout: Path, commit: str, build: str = "") -> bool:
    """Whether the base's compiled modules come from the same sources by the same recipe as the working tree's."""
    changed = git(root, "diff", "--name-only", "-z", commit).split("\0")
    scripts = read_by_build(root, build) | read_by_build(checkout, build)
    if any(is_compiled(name) or name in scripts for name in changed if name):
        return False
    return PROJECT not in changed or recipe(root / PROJECT) == recipe(checkout / PROJECT)


def git(folder: Path, *arguments: str) -> str:
    """What git answers. Raises Refusal with its last line if it refuses."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout.strip()
    except FileNotFoundError as error:
        raise Refusal("there is no git here; install it, or compare two environments", UNMEASURED) from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr.strip() or "it said nothing").splitlines()[-1]
        raise Refusal(f"git {arguments[0]} failed ({said})", UNMEASURED) from error
