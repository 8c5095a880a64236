"""The two sides of a comparison: for each an interpreter, and the folder from which it imports what is compared.

Both sides are measured by the same harness; they differ in the packages that the trainers are in. Each side has a
folder of links to its packages, which comes first wherever Python looks. The base of a change is the commit it departs
from, checked out beside the working tree. Its compiled modules are copied from there if nothing that is compiled has
changed, else built. The base is made before anything of head runs, and compared with itself afterwards.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import tomllib

from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.common.registry import VariantCard
from harness.gate.evidence import BASE
from harness.gate.rule import BaseRule
from harness.measure import machine
from harness.measure.process import PACKAGES

OURS = ("harness", "variants")
"""What every measured process imports: the worker, and the contract."""
WHERE = """
import importlib.util, json, sys
spec = importlib.util.find_spec(sys.argv[1])
places = list(spec.submodule_search_locations or []) if spec else []
print(json.dumps([*places, spec.origin if spec else None][0]))
"""
NOT_COMPILED = (
    *("", ".py", ".pyi", ".ipynb", ".md", ".rst", ".txt", ".cff", ".html", ".css", ".js", ".svg", ".png"),
    *(".yaml", ".yml", ".json", ".jsonl", ".csv", ".toml"),
)
BUILD_FILES = ("setup.py", "Cargo.toml")
"""A file with any other suffix, or one of these names, may decide what is compiled."""
PROJECT = "pyproject.toml"
NO_BASE_HINT = "pass --no-base if that is intended"


class NoBase(Exception):
    """There is nothing to compare with; the message says why, and what to do."""


@dataclass(frozen=True)
class Side:
    """One side: `described` is for people, `links` are its packages, `place` is a folder of links to them."""

    name: str
    described: str
    interpreter: str | None
    place: Path
    links: Mapping[str, Path] = field(default_factory=dict)
    watched: tuple[Path, ...] = ()
    """Nothing may be written in these, not even what Python compiles."""

    @property
    def places(self) -> list[str]:
        """Where Python looks: among the links, and in a repository beside the packages for what these import."""
        beside = [] if self.interpreter else [str(path.parent) for path in self.links.values()]
        return [str(self.place), *dict.fromkeys(beside)]

    def digest(self, variant: VariantCard) -> str | None:
        """The digest of the code behind a variant on this side; None if it cannot be read."""
        return machine.source_sha256(variant.target, variant.params, self.places)


def linked(folder: Path, links: dict[str, Path]) -> Path:
    """A folder of links to these packages, and to ours unless they are among them."""
    folder.mkdir(parents=True)
    for package, path in ({package: Path(PACKAGES, package) for package in OURS} | links).items():
        suffix = "" if path.is_dir() else "".join(path.suffixes)
        (folder / f"{package}{suffix}").symlink_to(path)
    return folder


def package_of(target: str) -> str:
    """
    >>> package_of("my_package.my_module:train")
    'my_package'
    """
    return target.partition(":")[0].partition(".")[0]


def located_here(targets: Sequence[str]) -> dict[str, Path]:
    """Where the current folder or this process has the packages or modules of these targets."""
    places = (os.getcwd(), *sys.path, PACKAGES)  # noqa: PTH109
    paths = {}
    for package in sorted(set(map(package_of, targets))):
        spec = machine.located(package, places, {})
        if spec is not None:
            paths[package] = Path([*(spec.submodule_search_locations or []), str(spec.origin)][0]).resolve()
    return paths


def working_side(targets: Sequence[str], folder: Path) -> Side:
    """What is imported in the current folder."""
    links = located_here(targets)
    return Side("head", "the working tree", None, linked(folder / "head", links), links)


def installed_side(name: str, interpreter: str, targets: Sequence[str], folder: Path) -> Side:
    """What an environment has installed, by its own interpreter. Raises Refusal if it lacks a package."""
    links = {package: installed_at(interpreter, package) for package in sorted(set(map(package_of, targets)))}
    described = f"the environment of {Path(interpreter).name}"
    watched = tuple(links.values()) if name == BASE else ()
    return Side(name, described, interpreter, linked(folder / name, links), links, watched)


def installed_at(interpreter: str, package: str) -> Path:
    """Where a package is for an interpreter that looks into its own environment only."""
    try:
        answer = subprocess.run([interpreter, "-I", "-c", WHERE, package], capture_output=True, text=True, check=True)
        path = json.loads(answer.stdout)
    except OSError as error:
        raise Refusal(f"cannot start {interpreter} ({error.strerror}); pass the Python of an environment") from error
    except (subprocess.CalledProcessError, ValueError) as error:
        raise Refusal(f"{interpreter} did not say where {package} is ({error})", UNMEASURED) from error
    if path is None:
        raise Refusal(f"{package} is not installed for {interpreter}; run {interpreter} -m pip install ...")
    return Path(path)


# The base of a change


@contextlib.contextmanager
def base_side(targets: Sequence[str], base: BaseRule, folder: Path) -> Iterator[Side]:
    """The targets' code where the working tree departs from the base.

    Raises NoBase if the commit does not exist, and Refusal if it cannot be checked out or built.
    """
    places = located_here(targets)
    root = repository_of(places)
    commit, described = departure(root, base.against)
    checkout = folder / "checkout"
    git(root, "worktree", "prune")  # a gate that was killed left an entry
    git(root, "worktree", "add", "--detach", "--quiet", "--force", str(checkout), commit)
    try:
        provide_compiled(root, checkout, commit, base.build, compiled_modules(targets, places))
        links = {package: checkout / path.relative_to(root) for package, path in places.items()}
        if missing := [package for package, path in links.items() if not path.exists()]:
            raise NoBase(f"{described} has no package {missing[0]} yet; {NO_BASE_HINT}")
        # What does not parse fails at its import and not here.
        compile_all = [sys.executable, "-I", "-m", "compileall", "-q", *map(str, links.values())]
        subprocess.run(compile_all, capture_output=True, check=False)
        yield Side(BASE, described, None, linked(folder / BASE, links), links, (checkout,))
    finally:
        with contextlib.suppress(Refusal):
            git(root, "worktree", "remove", "--force", str(checkout))


def repository_of(packages: Mapping[str, Path]) -> Path:
    """The root of the one repository that has all packages. Raises NoBase if there is none."""
    paths = list(map(str, packages.values()))
    try:
        root = git(Path(paths[0]).parent, "rev-parse", "--show-toplevel")
        git(Path(root), "ls-files", "--error-unmatch", *paths)
    except (Refusal, FileNotFoundError) as error:
        instead = f"commit it, compare two environments (--base PYTHON --head PYTHON), or {NO_BASE_HINT}"
        raise NoBase(f"git has no repository with {' and '.join(paths)}; {instead}") from error
    return Path(root).resolve()


def departure(root: Path, against: Sequence[str]) -> tuple[str, str]:
    """The merge base with the first of these names that git has; the commit before HEAD if that is HEAD itself."""
    name = next((name for name in against if commit_of(root, name)), None)
    if name is None:
        raise NoBase(f"git has none of {', '.join(against)}; fetch it, use --against COMMIT, or {NO_BASE_HINT}")
    try:
        commit = git(root, "merge-base", "HEAD", name)
    except Refusal as error:
        raise NoBase(f"HEAD and {name} have no common commit in this clone; run git fetch --unshallow") from error
    if commit != commit_of(root, "HEAD"):
        return commit, f"{commit[:12]} (where HEAD departs from {name})"
    if git(root, "status", "--porcelain", "--untracked-files=no"):
        return commit, f"{commit[:12]} (HEAD)"
    if before := commit_of(root, "HEAD^"):
        return before, f"{before[:12]} (the commit before HEAD)"
    raise NoBase(f"HEAD is the first commit here; {NO_BASE_HINT}, or run git fetch --unshallow in a shallow clone")


def commit_of(root: Path, name: str) -> str:
    """The commit of this name; empty if git has none."""
    with contextlib.suppress(Refusal):
        return git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return ""


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


def last_line(output: str) -> str:
    return output.strip().rpartition("\n")[2] or "without a message"


# Compiled modules


def compiled_modules(targets: Sequence[str], packages: Mapping[str, Path]) -> list[Path]:
    """The compiled modules of the working tree that these targets may import."""
    folders = tuple({str(path.parent) for path in packages.values()})
    files = {path for target in targets for path in machine.closure(target.partition(":")[0], folders).values()}
    return sorted(path for path in files if path.name.endswith(tuple(EXTENSION_SUFFIXES)))


def provide_compiled(root: Path, checkout: Path, commit: str, build: str, modules: Sequence[Path]) -> None:
    """Copy the compiled modules into the checkout if nothing that is compiled has changed, else build them there."""
    for module in modules:
        source = module.with_name(module.name.partition(".")[0] + ".pyx")
        if source.is_file() and source.stat().st_mtime > module.stat().st_mtime:
            raise Refusal(
                f"{source.name} is newer than its compiled module; run python -m pip install -e .", UNMEASURED
            )
    if modules and not is_built_alike(root, checkout, commit):
        build_base(checkout, build)
        return
    for module in modules:
        target = checkout / module.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(module, target)


def build_base(checkout: Path, build: str) -> None:
    """Build what is compiled. Raises Refusal with the reason, and with what the build needs if a module is missing."""
    command = [part.replace("{python}", sys.executable) for part in shlex.split(build)]
    with bar("building the base", 0, "modules"):
        built = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if built.returncode == 0:
        return
    reason = last_line(built.stderr or built.stdout)
    requirements = project_of(checkout).get("build-system", {}).get("requires", [])
    if "No module named" in reason and requirements:
        packages = " ".join(f"'{requirement}'" for requirement in requirements)
        raise Refusal(f"building the base: {reason}; run {sys.executable} -m pip install {packages}", UNMEASURED)
    raise Refusal(f"cannot build the base with base.build={build!r} ({reason})", UNMEASURED)


def is_built_alike(root: Path, checkout: Path, commit: str) -> bool:
    """Whether no file that may be compiled, nor how it is compiled, differs between base and the working tree."""
    changed = map(Path, git(root, "diff", "--name-only", "-z", commit).split("\0"))
    if any(path.name in BUILD_FILES or path.suffix not in NOT_COMPILED for path in changed):
        return False
    here, there = (
        (project.get("build-system"), project.get("tool", {}).get("setuptools"))
        for project in map(project_of, (root, checkout))
    )
    return here == there


def project_of(root: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((root / PROJECT).read_text())
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def file_states(top: Path) -> dict[str, int]:
    """When every file below a folder changed last, by the kernel's time, which cannot be set back."""
    paths = [top, *top.rglob("*")] if top.exists() else []
    return {str(path.relative_to(top.parent)): path.lstat().st_ctime_ns for path in paths}
