"""The machine and software of a record, what interferes with a call, and which interpreters run
trainers.

Facts are read, never guessed: what the system does not report is "unavailable", or None if it is a
number. Of the environment's variables only the hash seed goes into a record, and neither the host's
name nor any path.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from harness.common import cache
from harness.common.errors import UNMEASURED, Refusal

UNAVAILABLE = "unavailable"
ROOT = Path("/")
CPU = "sys/devices/system/cpu"
SWITCH = {"1": "on", "0": "off"}
COMPILER = re.compile(rb"GCC: \([^)\0]{0,80}\) [\w.+-]{1,40}|clang version [^\0\n(]{1,60}")
"""What a compiler leaves in what it makes."""
COMPOSERS = ("Cython", "omegaconf", "antlr4-python3-runtime")
"""What the required packages bring with them that compiles or composes."""
CHECKOUT = Path(__file__).resolve().parents[2]
MEASURED = ("variants", "harness", "conf", "pyproject.toml")
"""A change in any of these is a change of what is measured."""
OLDEST = (3, 9)  # the oldest Python that the worker and the Python stages run under
SECONDS_TO_ANSWER = 60
NOT_TAKEN = 3
TAKES_PROGRAM = f"""
import sys
target, name, *folders = sys.argv[1:]
sys.path += folders
from harness.worker.calling import arguments_for, parameters_of, resolve
from variants.contract import Meter
taken = arguments_for(parameters_of(resolve(target)), [], Meter(), {{name: None}}, {{}})[1]
sys.exit({NOT_TAKEN} if name not in taken else 0)
"""
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


def host() -> str:
    """Return a short digest: equal for two records that were made on machines of one kind."""
    facts = machine()
    parts = [
        facts[name]
        for name in ("cpu", "cores", "cores_usable", "memory_bytes", "kernel", "architecture")
    ]
    return cache.key_of(*parts)[:8]


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
                names.add(match[0].decode(errors="replace").strip())
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
    waited = re.search(r"^some .*total=(\d+)", content("proc/pressure/cpu"), re.MULTILINE)
    return {
        "psi_cpu_seconds": int(waited[1]) / 1e6 if waited else None,
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


# Interpreters


class Interpreter(NamedTuple):
    """An interpreter by its label in records, and why it is `missing`; empty if it is there."""

    label: str
    missing: str = ""


@functools.cache
def interpreter(path: str | None) -> Interpreter:
    """Return the interpreter of a name or path, which is run once; None means this one. Raises
    Refusal for something else than a Python that can run trainers.
    """
    if path is None:
        return Interpreter(python())
    label = "/".join(Path(path).parts[-3:]).lstrip("/")
    if shutil.which(path) is None:
        how = f"apt-get install {path}, or set interpreter=PATH"
        if "/" in path:
            how = "give another path"
        return Interpreter(label, f"interpreter {label!r} not found; {how}")

    try:
        command = [path, "-c", VERSION_PROGRAM]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER)
        name, number = ended.stdout.split()
        age = tuple(map(int, number.split(".")[:2]))
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        what = f"{label!r} is not a Python"
        raise Refusal(f"{what}; set interpreter=NAME, such as pypy3") from error
    if age < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise Refusal(f"{label!r} is {name} {number}; trainers run under {oldest} or later")
    # Builds of one version are distinguished by where they are.
    return Interpreter(f"{name} {number} ({label})" if "/" in path else f"{name} {number}")


def import_from() -> list[str]:
    """Return where a module of the user's own is looked for first: as here, and in the current
    folder.
    """
    return [os.path.abspath(path) for path in sys.path[:1]] + [os.getcwd()]  # noqa: PTH100, PTH109


@functools.cache
def takes(name: str, target: str, interpreter: str | None) -> bool:
    """Return whether a run gives a counter or trainer a parameter of this name; true also if it
    cannot be imported, which is done in a process of its own.
    """
    command = [interpreter or sys.executable, "-c", TAKES_PROGRAM, target, name, *import_from()]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    ended = subprocess.run(command, env=environment, capture_output=True, check=False)
    return ended.returncode != NOT_TAKEN


class WorkerLimits(NamedTuple):
    """What one measured process may take: seconds of wall time, bytes of memory of its whole group.
    None: no limit.
    """

    wall_seconds: float | None = None
    memory_bytes: int | None = None
