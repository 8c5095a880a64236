"""The two sides of a comparison: for each an interpreter, and the folder from which it imports what is compared.

Both sides are measured by the same harness; they differ in the packages that the trainers are in. Each side has a
folder of links to its packages, which comes first wherever Python looks. The base of a change is the commit it departs
from, checked out beside the working tree. Its compiled modules are copied from there if nothing that is compiled has
changed, else built. The base is made before anything of head runs, and is read-only.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import tomllib

from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.common.registry import VariantCard, not_importable
from harness.gate.rule import BaseRule
from harness.measure import source_digest
from harness.measure.process import PACKAGES

OURS = ("harness", "variants")
"""What every measured process imports: the worker, and the contract."""
WHERE = """
import importlib.util, json, sys
spec = importlib.util.find_spec(sys.argv[1])
places = list(spec.submodule_search_locations or []) if spec else []
print(json.dumps({"folder": places[0] if places else None, "file": spec.origin if spec else None}))
"""
NOT_COMPILED = (
    *(".py", ".pyi", ".ipynb", ".md", ".rst", ".txt", ".cff", ".html", ".css", ".js", ".svg", ".png"),
    *(".yaml", ".yml", ".json", ".jsonl", ".csv"),
)
"""A file with any other suffix may be compiled into a module."""
PROJECT, SCRIPT = "pyproject.toml", "setup.py"
NO_BASE_HINT = "pass --no-base if that is intended"
ENVIRONMENTS = "environments (--base PYTHON --head PYTHON)"


class NoBase(Exception):
    """There is nothing to compare with; the message says why, and what to do."""


@dataclass(frozen=True)
class Side:
    """`described` is for people; `beside` are folders with what the packages in `place` import."""

    name: str
    described: str
    interpreter: str | None
    place: Path
    beside: tuple[Path, ...] = ()
    frozen: bool = False
    """Nothing may be written in it, not even what Python compiles."""

    @property
    def places(self) -> list[str]:
        return [str(self.place), *map(str, self.beside)]

    def digest(self, variant: VariantCard) -> str | None:
        """The digest of the code behind a variant on this side; None if it cannot be read."""
        return source_digest.digest_at(variant.target, variant.params, tuple(self.places))

    def frozen_folders(self) -> list[Path]:
        """The folders of a frozen side, without the harness's own packages, which this process may compile."""
        packages = [link.resolve() for link in self.place.iterdir()]
        others = [package for package in packages if Path(PACKAGES) not in package.parents]
        return [self.place, *self.beside, *others] if self.frozen else []


def linked_side(
    name: str,
    described: str,
    interpreter: str | None,
    folder: Path,
    links: dict[str, Path],
    beside: tuple[Path, ...] = (),
) -> Side:
    """A side with links to these packages, and to ours unless they are among them."""
    place = folder / name
    place.mkdir(parents=True)
    for package, path in ({package: Path(PACKAGES, package) for package in OURS} | links).items():
        suffix = "" if path.is_dir() else "".join(path.suffixes)
        (place / f"{package}{suffix}").symlink_to(path)
    return Side(name, described, interpreter, place, beside)


def package_of(target: str) -> str:
    """
    >>> package_of("my_package.my_module:train")
    'my_package'
    """
    return target.partition(":")[0].partition(".")[0]


def located_here(package: str) -> Path | None:
    """Where the current folder or this process has a top-level package or module; None if nowhere."""
    spec = source_digest.located(package, (os.getcwd(), *sys.path, PACKAGES), {})  # noqa: PTH109
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or [])
    return Path(folders[0] if folders else str(spec.origin)).resolve()


def working_side(name: str, packages: set[str], folder: Path) -> Side:
    """What is imported in the current folder."""
    links = {package: path for package in sorted(packages) if (path := located_here(package)) is not None}
    beside = tuple(dict.fromkeys(path.parent for path in links.values()))
    return linked_side(name, "the working tree", None, folder, links, beside)


def installed_side(name: str, interpreter: str, packages: set[str], folder: Path) -> Side:
    """What an environment has installed, by its own interpreter. Raises Refusal if it lacks a package."""
    links = {package: installed_at(interpreter, package) for package in sorted(packages)}
    return linked_side(name, f"the environment of {Path(interpreter).name}", interpreter, folder, links)


def installed_at(interpreter: str, package: str) -> Path:
    """Where a package is for an interpreter that looks into its own environment only."""
    command = [interpreter, "-I", "-c", WHERE, package]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
        spec: dict[str, Any] = json.loads(answer.stdout)
    except OSError as error:
        raise Refusal(f"cannot start {interpreter} ({error.strerror}); pass the Python of an environment") from error
    except (subprocess.CalledProcessError, ValueError) as error:
        raise Refusal(f"{interpreter} did not say where {package} is ({error})", UNMEASURED) from error
    path = spec["folder"] or spec["file"]
    if path is None:
        raise Refusal(f"{package} is not installed for {interpreter}; run {interpreter} -m pip install ...")
    return Path(path)


def require_importable(card: VariantCard, side: Side) -> None:
    """Raise Refusal if a side certainly has no such module or function; only an import could tell for the others."""
    module, _, path = card.target.partition(":")
    spec = source_digest.located(module, tuple(side.places), {})
    if spec is None and side.interpreter is None:
        with contextlib.suppress(ImportError, ValueError):  # a finder of an installed package may know it
            parent = importlib.util.find_spec(package_of(module))
            spec = source_digest.located(module, (), {package_of(module): parent})
    if spec is None:
        raise not_importable(card.target, f"there is no module {module}")
    name = path.partition(".")[0]
    source = Path(spec.origin).read_text(errors="replace") if spec.origin and spec.origin.endswith(".py") else name
    if not re.search(rf"\b{re.escape(name)}\b|import +\*|__getattr__|globals\(|setattr\(|exec\(", source):
        raise not_importable(card.target, f"{module} has no {name}")


# The base of a change


@contextlib.contextmanager
def base_side(targets: Sequence[str], base: BaseRule, folder: Path) -> Iterator[Side]:
    """The targets' code where the working tree departs from the base.

    Raises NoBase if there is no such commit, and Refusal if it cannot be checked out or built.
    """
    packages = sorted({package_of(target) for target in targets})
    places = {package: path for package in packages if (path := located_here(package)) is not None}
    root = repository_of(places)
    commit, described = departure(root, base.against)
    checkout = folder / "checkout"
    git(root, "worktree", "prune")  # a gate that was killed left an entry
    git(root, "worktree", "add", "--detach", "--quiet", "--force", str(checkout), commit)
    try:
        provide_compiled(root, checkout, commit, base.build, compiled_modules(targets, list(places.values())))
        links = {package: checkout / path.relative_to(root) for package, path in places.items()}
        for package, path in links.items():
            if not path.exists():
                raise NoBase(f"{described} has no package {package} yet; {NO_BASE_HINT}")
        # What does not parse fails at its import and not here.
        compile_all = [sys.executable, "-I", "-m", "compileall", "-q", *map(str, links.values())]
        subprocess.run(compile_all, capture_output=True, check=False)
        set_writable(checkout, False)
        beside = tuple(dict.fromkeys(path.parent for path in links.values()))
        yield replace(linked_side("base", described, None, folder, links, beside), frozen=True)
    finally:
        set_writable(checkout, True)
        with contextlib.suppress(Refusal):
            git(root, "worktree", "remove", "--force", str(checkout))


def repository_of(places: dict[str, Path]) -> Path:
    """The root of the one repository that has all packages. Raises NoBase if there is none."""
    roots = set()
    for path in places.values():
        try:
            root = Path(git(path.parent, "rev-parse", "--show-toplevel"))
            git(root, "ls-files", "--error-unmatch", str(path))
        except (Refusal, FileNotFoundError) as error:
            raise NoBase(f"git has no {path}; commit it, compare two {ENVIRONMENTS}, or {NO_BASE_HINT}") from error
        roots.add(root.resolve())
    if len(roots) != 1:
        raise NoBase(f"the packages are not in one git checkout; compare two {ENVIRONMENTS}")
    return roots.pop()


def departure(root: Path, against: Sequence[str]) -> tuple[str, str]:
    """The merge base with the first of these names that git has; the commit before HEAD if that is HEAD itself."""
    head = commit_of(root, "HEAD")
    if head is None:
        raise NoBase(f"there is no commit yet; {NO_BASE_HINT}")
    name = next((name for name in against if commit_of(root, name) is not None), None)
    if name is None:
        raise NoBase(f"git has none of {', '.join(against)}; fetch it, use --against COMMIT, or {NO_BASE_HINT}")
    try:
        commit = git(root, "merge-base", "HEAD", name)
    except Refusal as error:
        raise NoBase(f"HEAD and {name} have no common commit in this clone; run git fetch --unshallow") from error
    if commit != head or git(root, "status", "--porcelain", "--untracked-files=no"):
        return commit, f"{commit[:12]} ({'HEAD' if commit == head else f'where HEAD departs from {name}'})"
    before = commit_of(root, "HEAD^")
    if before is None:
        raise NoBase(f"HEAD is the first commit here; {NO_BASE_HINT}, or run git fetch --unshallow in a shallow clone")
    return before, f"{before[:12]} (the commit before HEAD)"


def commit_of(root: Path, name: str) -> str | None:
    try:
        return git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except Refusal:
        return None


def git(folder: Path, *arguments: str) -> str:
    """The output of git. Raises Refusal with its last line if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True, env=environment).stdout.strip()
    except FileNotFoundError as error:
        raise Refusal("git is not installed; install it, or compare two environments", UNMEASURED) from error
    except subprocess.CalledProcessError as error:
        raise Refusal(f"git {arguments[0]} failed ({last_line(error.stderr)})", UNMEASURED) from error


def last_line(*outputs: str) -> str:
    return next((output.strip().splitlines()[-1] for output in outputs if output.strip()), "without a message")


# Compiled modules


def compiled_modules(targets: Sequence[str], packages: Sequence[Path]) -> list[Path]:
    """The compiled modules of the working tree that these targets may import."""
    places = tuple(dict.fromkeys(str(path.parent) for path in packages))
    files = {path for target in targets for path in source_digest.closure(target.partition(":")[0], places).values()}
    return sorted(path for path in files if path.name.endswith(tuple(EXTENSION_SUFFIXES)))


def provide_compiled(root: Path, checkout: Path, commit: str, build: str, modules: Sequence[Path]) -> None:
    """Copy the compiled modules into the checkout if nothing that is compiled has changed, else build them there."""
    for module in modules:
        source = module.with_name(module.name.partition(".")[0] + ".pyx")
        if source.is_file() and source.stat().st_mtime > module.stat().st_mtime:
            name = source.relative_to(root)
            raise Refusal(f"{name} is newer than its compiled module; run python -m pip install -e .", UNMEASURED)
    if not modules or is_built_alike(root, checkout, commit):
        for module in modules:
            target = checkout / module.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(module, target)
        return
    if missing := missing_requirements(checkout):
        quoted = " ".join(f"'{requirement}'" for requirement in missing)
        raise Refusal(f"building the base needs more; run {sys.executable} -m pip install {quoted}", UNMEASURED)
    command = [part.replace("{python}", sys.executable) for part in shlex.split(build)]
    with bar("building the base", 0, "modules"):
        built = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if built.returncode != 0:
        reason = last_line(built.stderr, built.stdout)
        raise Refusal(f"cannot build the base with base.build={build!r} ({reason})", UNMEASURED)


def is_built_alike(root: Path, checkout: Path, commit: str) -> bool:
    """Whether no file that may be compiled, nor how it is compiled, differs between base and the working tree."""
    changed = [name for name in git(root, "diff", "--name-only", "-z", commit).split("\0") if name]
    if any(may_be_compiled(name) for name in changed):
        return False
    return PROJECT not in changed or build_settings(root) == build_settings(checkout)


def may_be_compiled(name: str) -> bool:
    path = Path(name)
    return path.name == SCRIPT or (path.suffix not in ("", *NOT_COMPILED) and path.name != PROJECT)


def build_settings(root: Path) -> Any:
    """What pyproject.toml says of the build."""
    project = project_of(root)
    return project.get("build-system"), project.get("tool", {}).get("setuptools")


def missing_requirements(checkout: Path) -> list[str]:
    """The build requirements of a checkout that are not installed here; those with a marker may not apply."""
    installed = {normalized(distribution.name) for distribution in importlib.metadata.distributions()}
    requirements = project_of(checkout).get("build-system", {}).get("requires", [])
    unconditional = [requirement for requirement in requirements if ";" not in requirement]
    return [requirement for requirement in unconditional if normalized(requirement) not in installed]


def normalized(requirement: str) -> str:
    """The name in a requirement, as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def project_of(root: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((root / PROJECT).read_text())
    except (OSError, tomllib.TOMLDecodeError):
        return {}


# A base that nothing changes


def set_writable(top: Path, writable: bool) -> None:
    """Give or take the right to write below a folder; the owner could take it back, and root needs none."""
    for folder, _, files in os.walk(top):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if not path.is_symlink():
                mode = stat.S_IMODE(path.lstat().st_mode)
                path.chmod(mode | 0o200 if writable else mode & ~0o222)


def file_states(top: Path) -> dict[str, tuple[int, ...]]:
    """The state of every file below a folder; the kernel's time of the last change cannot be set back."""
    states: dict[str, tuple[int, ...]] = {}
    for path in [top, *top.rglob("*")] if top.exists() else []:
        state = path.lstat()
        states[str(path.relative_to(top.parent))] = (state.st_ino, state.st_mode, state.st_size, state.st_ctime_ns)
    return states
