"""The machine and the software a record was made with; what cannot be known is recorded as unavailable.

No environment variables, no host name and no path go into a record. `host` is a digest of what makes two machines
comparable: processor, cores, memory, kernel.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

UNAVAILABLE = "unavailable"
PACKAGES = ("regex", "numpy", "Cython", "hydra-core", "omegaconf", "pandas")
CHECKOUT = Path(__file__).resolve().parent.parent


def environment() -> dict[str, Any]:
    """Everything about this machine and software that a comparison may want to know."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": memory_bytes("MemTotal"),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip() or UNAVAILABLE,
        "hypervisor": "yes" if "hypervisor" in cpu_flags() else "no sign of one",
        "governor": first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "transparent_huge_pages": first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_compiler": platform.python_compiler(),
        "python_flags": " ".join(
            flag for flag in (sysconfig.get_config_var("CONFIG_ARGS") or "").replace("'", "").split() if "/" not in flag
        ),
        "hash_seed": "random" if sys.flags.hash_randomization else "fixed",
        "packages": {name: version(name) for name in PACKAGES},
        **checkout_state(),
    }


def host(known: dict[str, Any]) -> str:
    """A short digest: equal for two records that were made on machines of one kind."""
    parts = [known[name] for name in ("cpu", "cores", "cores_usable", "memory_bytes", "kernel", "architecture")]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]


def cpu_model() -> str:
    for line in read_lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or UNAVAILABLE


def cpu_flags() -> list[str]:
    for line in read_lines("/proc/cpuinfo"):
        if line.startswith(("flags", "Features")):
            return line.partition(":")[2].split()
    return []


def memory_bytes(field: str) -> int | None:
    """A line of the kernel's account of the machine's memory, such as MemTotal or MemAvailable."""
    for line in read_lines("/proc/meminfo"):
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) * 1024
    return None


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
        return {"commit": commit, "dirty": bool(git("status", "--porcelain", "--", "variants", "harness", "conf"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": UNAVAILABLE, "dirty": UNAVAILABLE}


def git(*arguments: str) -> str:
    command = ["git", "-C", str(CHECKOUT), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def first_line(path: str) -> str:
    return next(iter(read_lines(path)), UNAVAILABLE)


def read_lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
