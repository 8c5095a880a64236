"""The two sides of a comparison: for each the folders from which Python imports what is compared.

Both sides are measured by the same harness; they differ in the packages that the trainers are in.
Each side has a folder of links to its packages, which comes first wherever Python looks. The base
of a change is the commit it departs from, checked out beside the working tree. Its compiled modules
are copied from there if nothing that they are built from changed, otherwise built. The base is made
before anything of head runs, and compared with itself afterwards.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.progress import bar
from harness.common.units import one_line
from harness.common.values import may_define
from harness.gate.rule import text_of
from harness.measure.machine import git
from harness.measure.process import PACKAGES
from harness.runs.cells import Side
from harness.runs.resume import WrongCode

OURS = ("harness", "variants")  # what every measured process imports: the worker, and the contract
NOT_IMPORTED = {"harness", "setup", "conftest", "__init__", "__main__"}
"""From a repository: our own harness measures both sides."""
MAIN_BRANCHES = ("origin/main", "main", "origin/master", "master")
"""The base is where HEAD departs from the first of these that git has."""
UNSHALLOW = "git fetch --unshallow"
DOCUMENTS = (".md", ".rst", "results/accepted.txt")
COMPILED = tuple(EXTENSION_SUFFIXES)
NAMING = re.compile(
    r"(?m)^\s*(?:from\s+\S+\s+)?import\b[^(\n]*(?:\([^)]*\))?|\b\w+\.py\b|-m\W+[\w.]+"
)
"""Where Python code names what it imports or runs."""
CHECKS = re.compile(r"(?ms)^\[+tool\.(?:cibuildwheel|coverage|mypy|pytest|ruff)\b.*?(?=^\[|\Z)")
"""Tables of pyproject.toml that no build reads."""


def side_of(name: str, described: str, links: Mapping[str, Path], folder: Path) -> Side:
    """Return a side with links to these packages, to ours unless they are among them, and to what
    lies beside these.
    """
    folder = folder / name
    folder.mkdir(parents=True)
    ours = {package: Path(PACKAGES, package) for package in OURS}
    for package, path in {**ours, **links}.items():
        suffix = "" if path.is_dir() else "".join(path.suffixes)
        (folder / f"{package}{suffix}").symlink_to(path)
    import_folders = (str(folder), *dict.fromkeys(str(path.parent) for path in links.values()))

    # Nothing may be written into the checkout of the base, not even what Python compiles; that was
    # compiled when it was made.
    is_base = name == "base"
    variables = (
        ("PYTHONPYCACHEPREFIX", "" if is_base else str(folder.with_name("compiled"))),
        ("PYTHONDONTWRITEBYTECODE", "1" if is_base else ""),
    )
    return Side(name, described, import_folders, variables)


# Where packages are


def located(module: str, folders: Sequence[str]) -> ModuleSpec | None:
    """Return where a module is, found package by package, so none of them is run for it."""
    if parent := module.rpartition(".")[0]:
        package = located(parent, folders)
        folders = (package and package.submodule_search_locations) or []
    return PathFinder.find_spec(module, list(folders))


def packages_of(targets: Sequence[str]) -> set[str]:
    """Return the packages or modules of these targets."""
    return {re.split("[:.]", target)[0] for target in targets}


def located_here(targets: Sequence[str]) -> dict[str, Path]:
    """Return where the current folder or this process has the packages of these targets."""
    folders = [os.getcwd(), *sys.path, PACKAGES]  # noqa: PTH109
    return found_paths(packages_of(targets), lambda name: located(name, folders) or find_spec(name))


def found_paths(
    packages: Iterable[str], find: Callable[[str], ModuleSpec | None]
) -> dict[str, Path]:
    """Return the folders of packages and the files of modules, without those that are nowhere."""
    paths = {}
    for package in sorted(packages):
        with contextlib.suppress(ImportError, ValueError):
            if spec := find(package):
                places = [*(spec.submodule_search_locations or []), str(spec.origin)]
                paths[package] = Path(places[0]).resolve()
    return paths


def packages_beside(root: Path) -> dict[str, Path]:
    """Return the packages and modules of a repository, new ones among them, that this process would
    import from there.
    """
    places = set[Path]()
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py")
    for file in (root / name for name in listed.split("\0") if name):
        places |= {file, file.parent}
    found = found_paths({place.stem for place in places} - NOT_IMPORTED, find_spec)
    return {name: path for name, path in found.items() if path in places - {root}}


def has_trainer(side: Side, target: str) -> bool:
    """Whether a side has the module of a trainer, and its function by the name."""
    spec = located(target.partition(":")[0], side.import_folders)
    return bool(spec and spec.origin and may_define(Path(spec.origin), target))


# The base


@contextlib.contextmanager
def base_side(
    targets: Sequence[str], against: str | None, build: str, output: Path
) -> Iterator[Side]:
    """Yield the targets' code where the working tree departs from the base; `output` is where the
    gate itself writes.

    Raises Refusal if there is none or it cannot be built, and WrongCode if it was changed
    meanwhile.
    """
    packages = located_here(targets)
    root = repository_of(packages)
    packages = {**packages_beside(root), **packages}
    commit, described = departure(root, against)

    with temporary_folder() as folder:
        checkout = folder / "checkout"
        git(root, "worktree", "prune")  # a gate that was killed left an entry
        git(root, "worktree", "add", "--detach", "--quiet", "--force", str(checkout), commit)
        try:
            changed = tuple(changed_files(root, commit, output))
            provide_compiled(root, checkout, changed, build, list(packages.values()))

            folders = [
                str((checkout / path.relative_to(root)).parent) for path in packages.values()
            ]
            names = {*packages, *packages_of(targets)}  # a change may rename them
            links = found_paths(names, lambda name: located(name, folders))
            # What does not parse fails at its import and not here.
            command = [sys.executable, "-I", "-m", "compileall", "-q", *map(str, links.values())]
            subprocess.run(command, capture_output=True, check=False)

            side = side_of("base", described, links, folder)
            before = file_states(folder)
            yield replace(side, commit=commit, forbidden=str(root), changed=changed)
            altered = dict(before.items() ^ file_states(folder).items())
            if altered:
                files = ", ".join(sorted(altered)[:3])
                raise WrongCode(
                    f"{files}, of the base, changed while head ran; read what head does"
                )
        finally:
            with contextlib.suppress(Refusal):
                git(root, "worktree", "remove", "--force", str(checkout))


def file_states(top: Path) -> dict[str, int]:
    """Return when every file below a folder changed last, by the kernel's time, which cannot be set
    back.
    """
    return {str(path.relative_to(top)): path.lstat().st_ctime_ns for path in top.rglob("*")}


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
    diff = git(root, "diff", "-U0", commit, "--", *ours) if ours else ""
    return one_line(" ".join(re.findall(r"(?m)^[-+](?!--|\+\+).*", diff)))


def repository_of(packages: Mapping[str, Path]) -> Path:
    """Return the root of the one repository that has all packages. Raises Refusal if there is
    none.
    """
    paths = list(map(str, packages.values()))
    try:
        root = git(Path(paths[0]).parent, "rev-parse", "--show-toplevel")
        git(Path(root), "ls-files", "--error-unmatch", *paths)
    except Refusal as error:
        raise no_base(f"no commit has {' and '.join(paths)} ({error}); commit it") from error
    return Path(root).resolve()


def departure(root: Path, against: str | None = None) -> tuple[str, str]:
    """Return the merge base with a commit, else with the first of the main branches that git has, or
    the commit before HEAD if that is HEAD.
    """
    names = [against] if against else MAIN_BRANCHES
    name = next((name for name in names if commit_of(root, name)), None)
    if name is None:
        raise no_base(f"git has none of {', '.join(names)}; fetch it, use --against COMMIT")
    try:
        commit = git(root, "merge-base", "HEAD", name)
    except Refusal as error:
        raise no_base(f"HEAD and {name} have no common commit; run {UNSHALLOW}") from error

    if commit != commit_of(root, "HEAD"):
        return commit, f"{commit[:12]} (where HEAD departs from {name})"
    if git(root, "status", "--porcelain", "--untracked-files=no"):
        return commit, f"{commit[:12]} (HEAD)"
    if before := commit_of(root, "HEAD^"):
        return before, f"{before[:12]} (the commit before HEAD)"
    raise no_base(f"HEAD is the first commit here; in a shallow clone run {UNSHALLOW}")


def commit_of(root: Path, name: str) -> str:
    """Return the commit of this name; empty if git has none."""
    with contextlib.suppress(Refusal):
        return git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    return ""


def no_base(reason: str) -> Refusal:
    return Refusal(f"{reason}, or pass --no-base to compare nothing", UNMEASURED)


# Its compiled modules


def provide_compiled(
    root: Path, checkout: Path, changed: Sequence[str], build: str, packages: Sequence[Path]
) -> None:
    """Copy the compiled modules of these packages into the checkout; build them there if any changed
    file but tests and plain Python of the packages, which no build reads, may have changed them.
    """
    files = [file for path in packages for file in (path, *path.rglob("*"))]
    modules = [file for file in files if file.name.endswith(COMPILED)]
    for module in modules:
        source = module.with_name(module.name.partition(".")[0] + ".pyx")
        if source.is_file() and source.stat().st_mtime > module.stat().st_mtime:
            raise Refusal(
                f"{source.name} is newer than its compiled module; run pip install -e .", UNMEASURED
            )

    named, plain = read_by_build(root), set[Path]()
    for file in files:
        module = file.parent if file.stem == "__init__" else file
        if file.name.endswith((".py", *COMPILED)) and module.stem not in named:
            plain.add(file)
    read = {root / name for name in changed if not Path(name).name.startswith("test_")}
    if modules and read - plain:
        build_base(checkout, build)
        return

    for module in modules:
        target = checkout / module.relative_to(root)
        if not target.exists():  # else it is committed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(module, target)


def read_by_build(root: Path) -> set[str]:
    """Return the names that pyproject.toml has, and those that setup.py and scripts beside it that
    either names import or run.
    """
    settings = CHECKS.sub("", text_of(root / "pyproject.toml"))
    names = set(re.findall(r"\w+", settings))
    for script in {"setup", *names, *re.findall(r"\w+", text_of(root / "setup.py"))}:
        for naming in NAMING.findall(text_of(root / f"{script}.py")):
            names.update(re.findall(r"\w+", naming))
    return names


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
