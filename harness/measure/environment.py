"""The machine and the software that a record was made with, read and never guessed: unknown is "unavailable".

No environment variables but the hash seed, no host name and no path go into a record. `host` is a digest of what makes
two machines comparable.
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
COMPILER = re.compile(rb"(GCC: \([^)\0]{0,80}\) [\w.+-]{1,40}|(?:[\w ]{0,20})clang version [^\0\n(]{1,60})")
FLAGS = re.compile(rb"GNU C(?:\+\+)?\d* [\d.]+ (-[^\0\n]{1,2000})")
"""What a compiler leaves in what it makes: its version, and with debug information its flags."""
FURTHER_PACKAGES = ("Cython", "omegaconf", "antlr4-python3-runtime")
"""What the required packages bring with them that composes or compiles."""
CHECKOUT = Path(__file__).resolve().parent.parent.parent
MEASURED = ("variants", "harness", "conf", "pyproject.toml")
"""A change in any of these is a change of what is measured."""


def environment() -> dict[str, Any]:
    """Return everything about this machine and software that a comparison may need."""
    configured = sysconfig.get_config_var("CONFIG_ARGS") or ""
    return {
        **machine(),
        "python": python(),
        "python_compiler": platform.python_compiler(),
        "python_flags": without_places(configured.replace("'", "")),
        "python_build": {
            "cflags": without_places(sysconfig.get_config_var("CFLAGS") or "") or UNAVAILABLE,
            "optimized": "--enable-optimizations" in configured,
            "lto": bool(sysconfig.get_config_var("LTOFLAGS")) or "--with-lto" in configured,
            "debug": bool(sysconfig.get_config_var("Py_DEBUG")),
            "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        },
        "native": builds(CHECKOUT / "variants"),
        "hash_seed": hash_seed(),
        "packages": packages(),
        **checkout_state(),
    }


def machine() -> dict[str, Any]:
    """Return everything about this machine that a comparison may need."""
    flags = cpu_flags()
    return {
        "cpu": cpu_field("model name") or platform.processor() or UNAVAILABLE,
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


def host(facts: dict[str, Any]) -> str:
    """Return a short digest: equal for two records that were made on machines of one kind."""
    parts = [facts[name] for name in ("cpu", "cores", "cores_usable", "memory_bytes", "kernel", "architecture")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def timed_on(facts: dict[str, Any]) -> str:
    """Return what a time was measured on: another version of Python is another speed."""
    return f"{host(facts)}-{python().replace(' ', '-')}"


def python() -> str:
    return f"{platform.python_implementation()} {platform.python_version()}"


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()) or 1


def cpu_flags() -> list[str]:
    return (cpu_field("flags") or cpu_field("Features") or "").split()


def cpu_field(name: str) -> str | None:
    lines = (line for line in read_lines("proc/cpuinfo") if line.startswith(name))
    return next((line.partition(":")[2].strip() for line in lines), None)


def memory_bytes(field: str) -> int | None:
    """Return a figure of the kernel's account of memory, such as MemTotal or MemAvailable, in bytes."""
    lines = (line for line in read_lines("proc/meminfo") if line.startswith(f"{field}:"))
    return next((int(line.split()[1]) * 1024 for line in lines), None)


def on_or_off(switch: str) -> str:
    """
    >>> on_or_off("1"), on_or_off("0"), on_or_off("unavailable")
    ('on', 'off', 'unavailable')
    """
    return {"1": "on", "0": "off"}.get(switch, UNAVAILABLE)


def turbo() -> str:
    """Return whether the clock may rise above its base rate, as Intel's or the other drivers say it."""
    forbidden = on_or_off(first_line("sys/devices/system/cpu/intel_pstate/no_turbo"))
    boost = on_or_off(first_line("sys/devices/system/cpu/cpufreq/boost"))
    return {"on": "off", "off": "on"}.get(forbidden, boost)


def address_randomization() -> str:
    """Return what the kernel does for all (0 to 2), unless this process was started without (as by setarch -R)."""
    personality = first_line("proc/self/personality")
    if personality != UNAVAILABLE and int(personality, 16) & ADDRESSES_NOT_RANDOM:
        return "off for this process"
    return first_line("proc/sys/kernel/randomize_va_space")


def container() -> dict[str, Any]:
    """Return what control groups, of either version, leave of the machine: cores' worth of time, bytes, cores.

    A limit holds for all groups inside of the one it is set on, so the tightest one from ours upwards counts.
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
    """Return our control group of a controller and those above it, innermost first, in whichever version there is."""
    found = []
    for line in read_lines("proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts = ["unified", "."]
        elif controller in controllers.split(","):
            mounts = [controllers, controller]
        else:
            continue
        inner = Path(path.lstrip("/"))
        for mount in mounts:
            # In a container our own group is what is mounted, and its path outside does not exist.
            folders = (ROOT / "sys/fs/cgroup" / mount / above for above in (inner, *inner.parents))
            found += [folder for folder in folders if folder.is_dir()]
    return list(dict.fromkeys(found))


def cpu_quota(folder: Path) -> float | None:
    """Return the cores' worth of time that a group may use."""
    quota, _, period = text(folder / "cpu.max").partition(" ")
    if not period:
        quota, period = text(folder / "cpu.cfs_quota_us"), text(folder / "cpu.cfs_period_us")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def memory_limit(folder: Path) -> int | None:
    limit = text(folder / "memory.max") or text(folder / "memory.limit_in_bytes")
    return int(limit) if limit.isdigit() else None


def cpu_set(folder: Path) -> str:
    """Return the cores that a group may use, as the kernel writes it: 0-3,8."""
    files = ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus")
    cores = next((cores for name in files if (cores := text(folder / name))), "")
    return cores if re.fullmatch(r"[\d,-]+", cores) else ""


def first_line(path: str) -> str:
    return next(iter(read_lines(path)), UNAVAILABLE)


def read_lines(path: str) -> list[str]:
    return text(ROOT / path).splitlines()


def text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""


@functools.cache
def builds(packages: Path) -> list[dict[str, Any]]:
    """Return the compiled modules below a folder by the compiler and the flags that each names itself."""
    by_build: dict[tuple[str, str], list[str]] = {}
    for path in sorted(packages.rglob("*")):
        if path.name.endswith(tuple(EXTENSION_SUFFIXES)):
            by_build.setdefault(build(path), []).append(path.name.partition(".")[0])
    return [
        {"compiler": compiler, "flags": flags, "modules": sorted(modules)}
        for (compiler, flags), modules in by_build.items()
    ]


def build(module: Path) -> tuple[str, str]:
    """Return the compiler and the flags of one module."""
    if module.stat().st_size == 0:
        return UNAVAILABLE, UNAVAILABLE
    with module.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        compiler, flags = COMPILER.search(content), FLAGS.search(content)
        return (
            compiler[1].decode(errors="replace").strip() if compiler else UNAVAILABLE,
            without_places(flags[1].decode(errors="replace")) if flags else UNAVAILABLE,
        )


def without_places(flags: str) -> str:
    """Leave out flags that name a place: they change no code.

    >>> without_places("-O3  -I/somewhere/include -Wall")
    '-O3 -Wall'
    """
    return " ".join(flag for flag in flags.split() if "/" not in flag)


def hash_seed() -> str:
    """Return what the hashes of texts start with: random, or the number that PYTHONHASHSEED fixes for all processes."""
    seed = os.environ.get("PYTHONHASHSEED", "")
    return seed if seed.isdigit() and not sys.flags.ignore_environment else "random"


def packages() -> dict[str, str]:
    """Return the versions of what the project requires and of outside trainers."""
    return {name: version(name) for name in sorted({*declared(), *FURTHER_PACKAGES}, key=str.casefold)}


def declared() -> list[str]:
    """Return the names of the project's own requirements, of its extras only the one with outside trainers."""
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
    """Return the commit of the code and whether it was changed since; unavailable outside a checkout."""
    try:
        if os.path.samefile(git("rev-parse", "--show-toplevel"), CHECKOUT):  # noqa: PTH121
            commit = git("rev-parse", "--short=12", "HEAD")
            return {"commit": commit, "dirty": bool(git("status", "--porcelain", "--", *MEASURED))}
    except (OSError, subprocess.CalledProcessError):
        pass
    return {"commit": UNAVAILABLE, "dirty": UNAVAILABLE}  # or installed somewhere inside another project's


def git(*arguments: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
