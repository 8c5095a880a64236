"""The machine under a measurement: processor, memory, how the kernel runs it, and what a container leaves of it.

Read from /proc and /sys, never guessed: what is not said there is recorded as unavailable.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import mmap
import os
import platform
import re
import subprocess
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

UNAVAILABLE = "unavailable"
ROOT = Path("/")
ADDRESSES_NOT_RANDOM = 0x0040000


def machine() -> dict[str, Any]:
    """Everything about this machine that a comparison may want to know."""
    flags = cpu_flags()
    return {
        "cpu": cpu_model(),
        "cpu_flags": " ".join(flags) or UNAVAILABLE,
        "cores": os.cpu_count(),
        "cores_usable": usable_cores(),
        "smt": on_or_off(first_line("sys/devices/system/cpu/smt/active")),
        "turbo": turbo(),
        "governor": first_line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": memory_bytes("MemTotal"),
        "swap_bytes": memory_bytes("SwapTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip() or UNAVAILABLE,
        "hypervisor": "yes" if "hypervisor" in flags else "no sign of one",
        "machine_vendor": first_line("sys/class/dmi/id/sys_vendor"),
        "transparent_huge_pages": first_line("sys/kernel/mm/transparent_hugepage/enabled"),
        "address_randomization": address_randomization(),
        "container": container(),
    }


def usable_cores() -> int:
    """The processors that this process may use."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()) or 1


def cpu_model() -> str:
    for line in read_lines("proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or UNAVAILABLE


def cpu_flags() -> list[str]:
    for line in read_lines("proc/cpuinfo"):
        if line.startswith(("flags", "Features")):
            return line.partition(":")[2].split()
    return []


def memory_bytes(field: str) -> int | None:
    """A line of the kernel's account of the machine's memory, such as MemTotal or MemAvailable."""
    for line in read_lines("proc/meminfo"):
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) * 1024
    return None


def on_or_off(switch: str) -> str:
    """
    >>> on_or_off("1"), on_or_off("0"), on_or_off("unavailable")
    ('on', 'off', 'unavailable')
    """
    return {"1": "on", "0": "off"}.get(switch, UNAVAILABLE)


def turbo() -> str:
    """Whether the clock may rise above its base rate, as Intel's and the other drivers say it."""
    forbidden = on_or_off(first_line("sys/devices/system/cpu/intel_pstate/no_turbo"))
    if forbidden != UNAVAILABLE:
        return "off" if forbidden == "on" else "on"
    return on_or_off(first_line("sys/devices/system/cpu/cpufreq/boost"))


def address_randomization() -> str:
    """What the kernel does for all (0 to 2), unless this process was started without (as by setarch -R)."""
    personality = first_line("proc/self/personality")
    if personality != UNAVAILABLE and int(personality, 16) & ADDRESSES_NOT_RANDOM:
        return "off for this process"
    return first_line("proc/sys/kernel/randomize_va_space")


def container() -> dict[str, Any]:
    """What control groups, of either version, leave of the machine: cores' worth of time, bytes, a set of cores.

    A limit holds for all groups inside of the one it is set on, so the tightest one from ours upwards is it.
    """
    quotas = [quota for folder in groups("cpu") if (quota := cpu_quota(folder)) is not None]
    memory = [limit for folder in groups("memory") if (limit := memory_limit(folder)) is not None]
    total = memory_bytes("MemTotal")
    return {
        "cpu_quota_cores": min(quotas, default=None),
        "memory_bytes": min((limit for limit in memory if total is None or limit < total), default=None),
        "cpuset": next((cores for folder in groups("cpuset") if (cores := cpu_set(folder))), UNAVAILABLE),
    }


def groups(controller: str) -> list[Path]:
    """Our control group of a controller and those above it, innermost first, in whichever version there is."""
    found = []
    for line in read_lines("proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts = [ROOT / "sys/fs/cgroup", ROOT / "sys/fs/cgroup/unified"]
        elif controller in controllers.split(","):
            mounts = [ROOT / "sys/fs/cgroup" / controllers, ROOT / "sys/fs/cgroup" / controller]
        else:
            continue
        inner = Path(path.lstrip("/"))
        for mount in mounts:
            # In a container our own group is what is mounted, and its path outside does not exist.
            found += [folder for folder in (mount / above for above in (inner, *inner.parents)) if folder.is_dir()]
    return list(dict.fromkeys(found))


def cpu_quota(folder: Path) -> float | None:
    """The cores' worth of time that a group may use."""
    quota, _, period = text(folder / "cpu.max").partition(" ")
    if not period:
        quota, period = text(folder / "cpu.cfs_quota_us"), text(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def memory_limit(folder: Path) -> int | None:
    limit = text(folder / "memory.max") or text(folder / "memory.limit_in_bytes")
    return int(limit) if limit.isdigit() else None


def cpu_set(folder: Path) -> str:
    """The cores that a group may use, as the kernel writes it: 0-3,8."""
    said = text(folder / "cpuset.cpus.effective") or text(folder / "cpuset.effective_cpus")
    said = said or text(folder / "cpuset.cpus")
    return said if re.fullmatch(r"[\d,-]+", said) else ""


def first_line(path: str) -> str:
    return next(iter(read_lines(path)), UNAVAILABLE)


def read_lines(path: str) -> list[str]:
    return text(ROOT / path).splitlines()


def text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


# How the compiled modules were built: each is asked itself, for a build may be older than the files that describe it.
#
# A compiler leaves its version in what it makes, and with debug information its flags as well.

COMPILER = re.compile(rb"(GCC: \([^)\0]{0,80}\) [\w.+-]{1,40}|(?:[\w ]{0,20})clang version [^\0\n(]{1,60})")
FLAGS = re.compile(rb"GNU C(?:\+\+)?\d* [\d.]+ (-[^\0\n]{1,2000})")


@functools.cache
def builds(packages: Path) -> list[dict[str, Any]]:
    """The compiled modules below a folder by the compiler and the flags that made them."""
    by_build: dict[tuple[str, str], list[str]] = {}
    for path in sorted(packages.rglob("*")):
        if path.name.endswith(tuple(EXTENSION_SUFFIXES)):
            by_build.setdefault(build(path), []).append(path.name.partition(".")[0])
    return [
        {"compiler": compiler, "flags": flags, "modules": sorted(modules)}
        for (compiler, flags), modules in by_build.items()
    ]


def build(module: Path) -> tuple[str, str]:
    """The compiler and the flags of one module; flags that name a place are left out, they change no code."""
    with module.open("rb") as file:
        if module.stat().st_size == 0:
            return UNAVAILABLE, UNAVAILABLE
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            compiler, flags = COMPILER.search(content), FLAGS.search(content)
            return (
                compiler[1].decode(errors="replace").strip() if compiler else UNAVAILABLE,
                " ".join(flag for flag in flags[1].decode(errors="replace").split() if "/" not in flag)
                if flags
                else UNAVAILABLE,
            )


# The machine and the software a record was made with; what cannot be known is recorded as unavailable.
#
# No environment variables but the hash seed, no host name and no path go into a record. `host` is a digest of what
# makes two machines comparable: processor, cores, memory, kernel.

# What the project's own metadata names, and what those bring with them that counts, composes or computes.
FURTHER_PACKAGES = ("Cython", "omegaconf", "antlr4-python3-runtime")
CHECKOUT = Path(__file__).resolve().parent.parent.parent
# A change in any of these is a change of what is measured.
MEASURED = ("variants", "harness", "conf", "pyproject.toml")


def environment() -> dict[str, Any]:
    """Everything about this machine and software that a comparison may want to know."""
    return {
        **machine(),
        "python": python(),
        "python_compiler": platform.python_compiler(),
        "python_flags": python_flags(),
        "python_build": python_build(),
        "native": builds(CHECKOUT / "variants"),
        "hash_seed": hash_seed(),
        "packages": packages(),
        **checkout_state(),
    }


def python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def timed_on(facts: dict[str, Any]) -> str:
    """What a kept time was measured on, by the facts of the machine: another version of Python is another speed."""
    return f"{host(facts)}-{python().replace(' ', '-')}"


def host(facts: dict[str, Any]) -> str:
    """A short digest: equal for two records that were made on machines of one kind."""
    parts = [facts[name] for name in ("cpu", "cores", "cores_usable", "memory_bytes", "kernel", "architecture")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def python_flags() -> str:
    """What Python itself was configured with, places left out."""
    return without_places((sysconfig.get_config_var("CONFIG_ARGS") or "").replace("'", ""))


def python_build() -> dict[str, Any]:
    """How Python itself was compiled: optimised by profile and at link time or not, for debugging, without its lock."""
    configured = sysconfig.get_config_var("CONFIG_ARGS") or ""
    return {
        "cflags": without_places(sysconfig.get_config_var("CFLAGS") or "") or UNAVAILABLE,
        "optimized": "--enable-optimizations" in configured,
        "lto": bool(sysconfig.get_config_var("LTOFLAGS")) or "--with-lto" in configured,
        "debug": bool(sysconfig.get_config_var("Py_DEBUG")),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    }


def without_places(flags: str) -> str:
    """
    >>> without_places("-O3  -I/somewhere/include -Wall")
    '-O3 -Wall'
    """
    return " ".join(flag for flag in flags.split() if "/" not in flag)


def hash_seed() -> str:
    """What the hashes of texts begin with: random, or the number that PYTHONHASHSEED fixes for every process."""
    said = os.environ.get("PYTHONHASHSEED", "")
    return said if said.isdigit() and not sys.flags.ignore_environment else "random"


def packages() -> dict[str, str]:
    """The versions of what the project is declared to need and of outside trainers; of what is absent, that it is."""
    return {name: version(name) for name in sorted({*declared(), *FURTHER_PACKAGES}, key=str.casefold)}


def declared() -> list[str]:
    """The names of the project's own requirements, of its extras only the one with outside trainers."""
    try:
        required = importlib.metadata.requires("bpe-harness") or []
    except importlib.metadata.PackageNotFoundError:
        required = ["regex", "hydra-core", "numpy", "pandas"]
    plain = [line for line in required if "extra ==" not in line or re.search("""extra == ['"]peers['"]""", line)]
    return [name[0] for line in plain if (name := re.match(r"[\w.-]+", line))]


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return UNAVAILABLE


def checkout_state() -> dict[str, Any]:
    """The commit the code is at and whether it was changed since; unavailable outside a checkout."""
    try:
        if not os.path.samefile(git("rev-parse", "--show-toplevel"), CHECKOUT):  # noqa: PTH121
            return {"commit": UNAVAILABLE, "dirty": UNAVAILABLE}  # installed somewhere inside another project's
        commit = git("rev-parse", "--short=12", "HEAD")
        return {"commit": commit, "dirty": bool(git("status", "--porcelain", "--", *MEASURED))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": UNAVAILABLE, "dirty": UNAVAILABLE}


def git(*arguments: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
