"""The machine and software of a record, what interferes with a call, and which interpreters run
trainers.

Facts are read, never guessed: what the system does not report is "unavailable", or None if it is a
number. Of the environment's variables only the hash seed goes into a record, and neither the host's
name nor any path.

Measurements belong together only if the code did not change between them. The digest of the code
behind a target is of its module and of what that imports of its own package, read and never run;
compiled modules count by their files.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ModuleSpec,
    PathFinder,
)
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import psutil

from harness.common.errors import UNMEASURED, Refusal

UNAVAILABLE = "unavailable"
ROOT = Path("/")
CPU = "sys/devices/system/cpu"
SWITCH = {"1": "on", "0": "off"}
COMPILER = re.compile(
    rb"(GCC: \([^)\0]{0,80}\) [\w.+-]{1,40}|(?:[\w ]{0,20})clang version [^\0\n(]{1,60})"
)
"""What a compiler leaves in what it makes."""
COMPOSERS = ("Cython", "omegaconf", "antlr4-python3-runtime")
"""What the required packages bring with them that compiles or composes."""
CHECKOUT = Path(__file__).resolve().parents[2]
MEASURED = ("variants", "harness", "conf", "pyproject.toml")
"""A change in any of these is a change of what is measured."""
WAITS = ("cpu", "memory", "io")
OLDEST = (3, 9)  # the oldest Python that the worker and the Python stages run under
SECONDS_TO_ANSWER = 60
MODULE_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
CYTHON_IMPORT = re.compile(r"^\s*(?:from|import|cimport)\s+([A-Za-z_][\w.]*)", re.MULTILINE)
VERSION_PROGRAM = (
    "import platform; print(platform.python_implementation() + ' ' + platform.python_version())"
)


def environment() -> dict[str, Any]:
    """Return everything about this machine and software that a comparison may need."""
    return {
        **machine(),
        "python": python(),
        "compilers": compilers(CHECKOUT / "variants"),
        "hash_seed": os.environ.get("PYTHONHASHSEED") or "random",
        "packages": packages(),
        **checkout_state(),
    }


def machine() -> dict[str, Any]:
    """Return everything about this machine that a comparison may need."""
    flags = cpu_field("flags").split()
    hypervisor = "yes" if "hypervisor" in flags else "no sign of one"
    no_turbo = {"1": "off", "0": "on"}.get(first_line(f"{CPU}/intel_pstate/no_turbo"))

    return {
        "cpu": cpu_field("model name") or platform.processor() or UNAVAILABLE,
        "cores": os.cpu_count(),
        "cores_usable": usable_cores(),
        "smt": SWITCH.get(first_line(f"{CPU}/smt/active"), UNAVAILABLE),
        "turbo": no_turbo or SWITCH.get(first_line(f"{CPU}/cpufreq/boost"), UNAVAILABLE),
        "governor": first_line(f"{CPU}/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "hypervisor": hypervisor if flags else UNAVAILABLE,
        "transparent_huge_pages": first_line("sys/kernel/mm/transparent_hugepage/enabled"),
        "container": container(),
    }


def host(facts: dict[str, Any]) -> str:
    """Return a short digest: equal for two records that were made on machines of one kind."""
    parts = [
        facts[name]
        for name in ("cpu", "cores", "cores_usable", "memory_bytes", "kernel", "architecture")
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def usable_cores() -> int:
    """Return the number of CPUs that this process may use."""
    return (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    ) or 1


def available_memory() -> int:
    """Return the bytes that a process may still take, by the machine's and its container's
    account.
    """
    limit = container()["memory_bytes"]
    available = psutil.virtual_memory().available
    return int(available if limit is None else min(available, limit))


def cpu_field(name: str) -> str:
    found = re.search(rf"^{name}\s*:(.*)$", content("proc/cpuinfo"), re.MULTILINE)
    return found[1].strip() if found else ""


def container() -> dict[str, Any]:
    """Return what control groups leave of the machine: cores' worth of time, and bytes of memory.

    A limit holds for all groups inside the one that it is set on, so the tightest from ours upwards
    counts.
    """
    cores: list[float] = []
    memory: list[int] = []
    for folder in cgroups():
        quota = content(folder / "cpu.max").split()
        if len(quota) == 2 and quota[0].isdigit():
            cores.append(int(quota[0]) / int(quota[1]))
        limit = content(folder / "memory.max")
        if limit.isdigit():
            memory.append(int(limit))
    return {"cpu_quota_cores": min(cores, default=None), "memory_bytes": min(memory, default=None)}


def cgroups() -> list[Path]:
    """Return the folders of our control group (version 2) and of those above it, innermost
    first.
    """
    match = re.search(r"^0::/(.*)$", content("proc/self/cgroup"), re.MULTILINE)
    if match is None:
        return []

    inner = Path(match[1])
    for mount in (ROOT / "sys/fs/cgroup/unified", ROOT / "sys/fs/cgroup"):
        if mount.is_dir():
            # in a container our own group is what is mounted, and its path outside does not exist
            folders = dict.fromkeys(mount / above for above in (inner, *inner.parents))
            return [folder for folder in folders if folder.is_dir()]
    return []


def first_line(path: str) -> str:
    return content(path).partition("\n")[0] or UNAVAILABLE


def content(path: str | Path) -> str:
    """Return what a file of the kernel holds; empty if it cannot be read."""
    try:
        return (ROOT / path).read_text().strip()
    except (OSError, ValueError):
        return ""


@functools.cache
def compilers(folder: Path) -> list[str]:
    """Return the compilers that the compiled modules below a folder name as their own."""
    names = set()
    for path in folder.rglob("*"):
        if path.name.endswith(tuple(EXTENSION_SUFFIXES)):
            match = COMPILER.search(path.read_bytes())
            if match is not None:
                names.add(match[1].decode(errors="replace").strip())
    return sorted(names)


def packages() -> dict[str, str]:
    """Return the versions of what the project requires and of outside trainers."""
    required: list[str] = []
    if version("bpe-harness") != UNAVAILABLE:
        required = importlib.metadata.requires("bpe-harness") or []

    names = set(COMPOSERS)
    for line in required:
        name = re.match(r"[\w.-]+", line)
        if name and ("extra ==" not in line or re.search("""extra == ['"]peers['"]""", line)):
            names.add(name[0])
    return {name: version(name) for name in sorted(names, key=str.casefold)}


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return UNAVAILABLE


def checkout_state() -> dict[str, Any]:
    """Return the commit of the code and whether it was changed since; unavailable outside a
    checkout.
    """
    with contextlib.suppress(OSError, Refusal):
        if os.path.samefile(git(CHECKOUT, "rev-parse", "--show-toplevel"), CHECKOUT):  # noqa: PTH121 - not of a project around
            commit = git(CHECKOUT, "rev-parse", "--short=12", "HEAD")
            return {
                "commit": commit,
                "dirty": bool(git(CHECKOUT, "status", "--porcelain", "--", *MEASURED)),
            }
    return {"commit": UNAVAILABLE, "dirty": UNAVAILABLE}


def git(folder: Path, *arguments: str) -> str:
    """Return the output of git. Raises Refusal with all that git says if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        return subprocess.run(
            command, capture_output=True, check=True, text=True, env=environment
        ).stdout.strip()
    except subprocess.CalledProcessError as error:
        message = " ".join(error.stderr.split()) or "without a message"
        raise Refusal(f"git {arguments[0]} failed: {message}", UNMEASURED) from error


# Interference


Totals = dict[str, float | None]
"""Seconds since the machine started; None for what the system does not report."""


def interference() -> Totals:
    """Return for how long something on the machine waited (PSI, `some`), and what the hypervisor
    gave to others.
    """
    return {
        **{f"psi_{kind}_seconds": pressure(kind) for kind in WAITS},
        "steal_seconds": getattr(psutil.cpu_times(), "steal", None),
    }


def interference_between(before: Totals, after: Totals) -> Totals:
    """
    >>> interference_between({"a": 1.5, "b": None}, {"a": 2.0, "b": None})
    {'a': 0.5, 'b': None}
    """
    return {
        name: round(later - earlier, 6)
        if (earlier := before[name]) is not None and later is not None
        else None
        for name, later in after.items()
    }


def pressure(kind: str) -> float | None:
    match = re.search(r"^some .*total=(\d+)", content(f"proc/pressure/{kind}"), re.MULTILINE)
    return int(match[1]) / 1e6 if match else None


# Interpreters


class Interpreter(NamedTuple):
    """An interpreter by its label in records; `status` and `reason` say why it runs nothing, empty
    if it does.
    """

    label: str
    status: str = ""
    reason: str = ""


@functools.cache
def interpreter(path: str | None) -> Interpreter:
    """Return the interpreter of a name or path, which is run once; None means this one."""
    if path is None:
        return Interpreter(python())
    label = "/".join(Path(path).parts[-3:]).lstrip("/")
    if shutil.which(path) is None:
        how = (
            "give another path"
            if "/" in path
            else f"apt-get install {path}, or set interpreter=PATH"
        )
        return Interpreter(label, "skipped", f"interpreter {label!r} not found; {how}")
    try:
        command = [path, "-c", VERSION_PROGRAM]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER)
        name, number = ended.stdout.split()
        age = tuple(map(int, number.split(".")[:2]))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return Interpreter(
            label, "error", f"{label!r} is not a Python; set interpreter=NAME, such as pypy3"
        )
    if age < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return Interpreter(
            label, "error", f"{label!r} is {name} {number}; trainers run under {oldest} or later"
        )
    # Builds of one version are distinguished by where they are.
    return Interpreter(f"{name} {number} ({label})" if "/" in path else f"{name} {number}")


# Digests of code


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
