"""The two sides of a comparison: for each the folders from which Python imports what is compared.

Both sides are measured by the same harness; they differ in the packages that the trainers are in.
Each side has a folder of links to its packages, which comes first wherever Python looks. The base
of a change is the commit it departs from, checked out beside the working tree. Its compiled modules
are reused from there if no compiled source changed, otherwise built. The base is made before
anything of head runs, and compared with itself afterwards.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from harness.common.errors import Refusal
from harness.gate.compiled import DOCUMENTS, provide_compiled
from harness.gate.evidence import BASE
from harness.measure.machine import git
from harness.measure.process import PACKAGES
from harness.runs.cells import Side

UNCOMMITTED = ("not a git repository", "did not match any file")
"""What git says of code that no repository has."""
OURS = ("harness", "variants")  # what every measured process imports: the worker, and the contract
MAIN_BRANCHES = ("origin/main", "main", "origin/master", "master")
"""The base is where HEAD departs from the first of these that git has."""
NO_BASE_HINT = "pass --no-base if that is intended"
DYNAMIC = r"import \*|__getattr__|globals\(|setattr\("
"""In a module whose functions may have names that it does not spell."""


class NoBase(Exception):
    """There is nothing to compare with; the message says why, and what to do."""


def side_of(
    name: str, described: str, links: Mapping[str, Path], folder: Path, checkout: Path | None = None
) -> Side:
    """Return a side with links to these packages, to ours unless they are among them, and to what
    lies beside these.
    """
    folder = folder / name
    folder.mkdir(parents=True)
    for package, path in {
        **{package: Path(PACKAGES, package) for package in OURS},
        **links,
    }.items():
        suffix = "" if path.is_dir() else "".join(path.suffixes)
        (folder / f"{package}{suffix}").symlink_to(path)
    import_folders = (str(folder), *dict.fromkeys(str(path.parent) for path in links.values()))
    # Nothing may be written into a checkout, not even what Python compiles; that was compiled when
    # it was made.
    prefix = "" if checkout else str(folder.with_name("compiled"))
    variables = (
        ("PYTHONPYCACHEPREFIX", prefix),
        ("PYTHONDONTWRITEBYTECODE", "1" if checkout else ""),
    )
    return Side(name, described, import_folders, variables)


def located_here(targets: Sequence[str]) -> dict[str, Path]:
    """Return where the current folder or this process has the packages or modules of these
    targets.
    """
    paths = located_in([os.getcwd(), *sys.path, PACKAGES], targets)  # noqa: PTH109
    for package in packages_of(targets):
        if package not in paths and (spec := importlib.util.find_spec(package)) is not None:
            paths[package] = path_of(spec)
    return paths


def packages_of(targets: Sequence[str]) -> list[str]:
    """Return the packages or modules of these targets, in order."""
    return sorted({target.partition(":")[0].partition(".")[0] for target in targets})


def located_in(folders: Iterable[str | Path], targets: Sequence[str]) -> dict[str, Path]:
    """Return where the packages or modules of these targets are in some folders, without those
    that are in none: a change may rename them.
    """
    paths = {}
    places = tuple(dict.fromkeys(map(str, folders)))
    for package in packages_of(targets):
        spec = located(package, places)
        if spec is not None:
            paths[package] = path_of(spec)
    return paths


def located(module: str, folders: Sequence[str]) -> ModuleSpec | None:
    """Return where a module is, found package by package, so none of them is run for it."""
    spec, name = None, ""
    places: Sequence[str] | None = folders
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        spec = None if places is None else PathFinder.find_spec(name, list(places))
        if spec is None:
            return None
        places = spec.submodule_search_locations
    return spec


def path_of(spec: ModuleSpec) -> Path:
    """Return the folder of a package, or the file of a module."""
    return Path([*(spec.submodule_search_locations or []), str(spec.origin)][0]).resolve()


def has_trainer(side: Side, target: str) -> bool:
    """Whether a side has the module of a trainer, and its function by the name."""
    module, _, function = target.partition(":")
    spec = located(module, side.import_folders)
    if spec is None or spec.origin is None:
        return False
    source = Path(spec.origin)
    is_named = re.compile(rf"\b{re.escape(function.partition('.')[0])}\b|{DYNAMIC}")
    return source.suffix != ".py" or bool(is_named.search(source.read_text(errors="replace")))


@contextlib.contextmanager
def base_side(
    targets: Sequence[str], against: Sequence[str], build: str, folder: Path, output: Path
) -> Iterator[Side]:
    """Yield the targets' code where the working tree departs from the base; `output` is where the
    gate itself writes.

    Raises NoBase if the commit does not exist, and Refusal if it cannot be checked out or built.
    """
    packages = located_here(targets)
    root = repository_of(packages)
    packages = {**packages_beside(root), **packages}
    commit, described = departure(root, against)
    checkout = folder / "checkout"
    git(root, "worktree", "prune")  # a gate that was killed left an entry
    git(root, "worktree", "add", "--detach", "--quiet", "--force", str(checkout), commit)

    try:
        changed = tuple(changed_files(root, commit, output))
        provide_compiled(root, checkout, changed, build, list(packages.values()))
        links = {}
        for package, path in packages.items():
            of_base = checkout / path.relative_to(root)
            if of_base.exists():
                links[package] = of_base
        folders = [(checkout / path.relative_to(root)).parent for path in packages.values()]
        links = {**located_in(folders, targets), **links}
        # What does not parse fails at its import and not here.
        compile_all = [sys.executable, "-I", "-m", "compileall", "-q", *map(str, links.values())]
        subprocess.run(compile_all, capture_output=True, check=False)
        side = side_of(BASE, described, links, folder, checkout)
        yield replace(side, commit=commit, forbidden=str(root), changed=changed)
    finally:
        with contextlib.suppress(Refusal):
            git(root, "worktree", "remove", "--force", str(checkout))


def changed_files(root: Path, commit: str, output: Path) -> list[str]:
    """Return the files of the working tree that differ from a commit, new ones among them, but no
    documents and nothing in `output`.
    """
    changed = git(root, "diff", "--name-only", "-z", commit).split("\0")
    changed += git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    ours = output.resolve()
    code = [name for name in changed if name and not name.endswith(DOCUMENTS)]
    return [name for name in code if not (root / name).is_relative_to(ours)]


def changed_lines(root: Path, commit: str, paths: Sequence[Path]) -> str:
    """Return how files of a repository differ from a commit: the lines that were taken away and
    added.
    """
    ours = [str(path.resolve()) for path in paths if path.resolve().is_relative_to(root)]
    lines = git(root, "diff", "-U0", commit, "--", *ours).splitlines() if ours else []
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return " ".join(" ".join(changed).split())


def repository_of(packages: Mapping[str, Path]) -> Path:
    """Return the root of the one repository that has all packages. Raises NoBase if there is
    none.
    """
    paths = list(map(str, packages.values()))
    try:
        root = git(Path(paths[0]).parent, "rev-parse", "--show-toplevel")
        git(Path(root), "ls-files", "--error-unmatch", *paths)
    except FileNotFoundError as error:
        raise NoBase(f"git is not installed; install it, or {NO_BASE_HINT}") from error
    except Refusal as error:
        if not any(words in str(error) for words in UNCOMMITTED):
            raise NoBase(str(error)) from error
        raise NoBase(
            f"git has no repository with {' and '.join(paths)}; commit it, or {NO_BASE_HINT}"
        ) from error
    return Path(root).resolve()


def packages_beside(root: Path) -> dict[str, Path]:
    """Return the packages and modules of a repository that this process would import from there,
    an editable install among them; never our harness, which measures both sides.
    """
    files = [Path(name) for name in git(root, "ls-files", "-z", "*.py").split("\0") if name]
    packages = {file.parent for file in files if file.name == "__init__.py"}
    tops = {package.name for package in packages if package.parent not in packages}
    tops |= {file.stem for file in files if file.parent not in packages}

    found = {}
    for name in tops - {"harness", "setup", "conftest"}:
        with contextlib.suppress(ImportError, ValueError):
            spec = importlib.util.find_spec(name)
            if spec is not None and path_of(spec).is_relative_to(root):
                found[name] = path_of(spec)
    return found


def departure(root: Path, against: Sequence[str]) -> tuple[str, str]:
    """Return the merge base with the first of these names that git has, or the commit before HEAD
    if that is HEAD.
    """
    name = next((name for name in against if commit_of(root, name)), None)
    if name is None:
        raise NoBase(
            f"git has none of {', '.join(against)}; fetch it, use --against COMMIT, or {NO_BASE_HINT}"
        )

    try:
        commit = git(root, "merge-base", "HEAD", name)
    except Refusal as error:
        raise NoBase(
            f"HEAD and {name} have no common commit in this clone; run git fetch --unshallow"
        ) from error

    if commit != commit_of(root, "HEAD"):
        return commit, f"{commit[:12]} (where HEAD departs from {name})"
    if git(root, "status", "--porcelain", "--untracked-files=no"):
        return commit, f"{commit[:12]} (HEAD)"
    if before := commit_of(root, "HEAD^"):
        return before, f"{before[:12]} (the commit before HEAD)"
    raise NoBase(
        f"HEAD is the first commit here; {NO_BASE_HINT}, or run git fetch --unshallow in a shallow clone"
    )


def commit_of(root: Path, name: str) -> str:
    """Return the commit of this name; empty if git has none."""
    with contextlib.suppress(Refusal):
        return git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return ""


def file_states(top: Path) -> dict[str, int]:
    """Return when every file below a folder changed last, by the kernel's time, which cannot be set
    back.
    """
    return {str(path.relative_to(top)): path.lstat().st_ctime_ns for path in top.rglob("*")}
