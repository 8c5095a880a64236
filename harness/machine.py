"""The machine under a measurement: processor, memory, how the kernel runs it, and what a container leaves of it.

Read from /proc and /sys, never guessed: what is not said there is recorded as unavailable.
"""

from __future__ import annotations

import os
import platform
import re
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
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
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


def on_or_off(said: str) -> str:
    """
    >>> on_or_off("1"), on_or_off("0"), on_or_off("unavailable")
    ('on', 'off', 'unavailable')
    """
    return {"1": "on", "0": "off"}.get(said, UNAVAILABLE)


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
