"""What on this machine disturbs timing, read from the kernel's files; each finding with what can be done about it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil

from harness.common.comparison import MOST_PRESSURE
from harness.common.units import bytes_text, share_text
from harness.measure import machine
from harness.measure.machine import UNAVAILABLE, content
from harness.measure.process import is_concurrent
from harness.measure.sandbox import touch

GOOD, DISTURBS, UNKNOWN = "good", "disturbs", "unknown"
SECONDS_OF_STEAL = 0.5
BYTES_TO_TOUCH = 256 << 20
TIMES_AS_LONG = 3.0
BUSY_LOAD = 0.25
"""Runnable processes by processors; an idle machine has next to none."""
Facts = dict[str, Any]
Reading = tuple[str, bool] | None
"""What was read, and whether it disturbs timing; None if the machine does not report it."""


@dataclass(frozen=True)
class Finding:
    """One property of the machine: `state` is good, disturbs or unknown; `advice` is empty if it does not disturb."""

    name: str
    state: str
    what: str
    advice: str = ""


def findings() -> list[Finding]:
    """Return every property of the machine that may disturb timing, the most important first."""
    facts, found = machine.machine(), []
    for name, (read, advice) in CHECKS.items():
        what, disturbs = read(facts) or ("cannot be seen here", None)
        state = UNKNOWN if disturbs is None else DISTURBS if disturbs else GOOD
        found.append(Finding(name, state, what, advice if disturbs else ""))
    return found


def load(facts: Facts) -> Reading:
    minute, cores = psutil.getloadavg()[0], facts["cores_usable"]
    return f"{minute:.2f} processes on {cores} processors over the last minute", minute > BUSY_LOAD * cores


def pressure(_: Facts) -> Reading:
    """Return the share of the last minute in which something waited for a processor, memory or a disk."""
    averages = {kind: re.search(r"^some .*?avg60=([\d.]+)", content(f"proc/pressure/{kind}")) for kind in machine.WAITS}
    shares = {kind: float(match[1]) / 100 for kind, match in averages.items() if match}
    what = ", ".join(f"{kind} {share_text(share)}" for kind, share in shares.items()) + " of the last minute"
    return (what, max(shares.values()) > MOST_PRESSURE / 4) if shares else None


def steal(_: Facts) -> Reading:
    """Return the share of the processors' time that the hypervisor gives to others: now, and since the start."""
    since_the_start = psutil.cpu_times()
    if not hasattr(since_the_start, "steal"):
        return None
    ever = since_the_start.steal / sum(since_the_start[:8])
    now = psutil.cpu_times_percent(SECONDS_OF_STEAL).steal / 100
    what = f"{share_text(now)} of the processors' time now, {share_text(ever)} since the start"
    return what, max(now, ever) > 0.01


def other_runs(_: Facts) -> Reading:
    runs = is_concurrent("timing") or is_concurrent()
    return "another run is being timed" if runs else "none is being timed", runs


def is_not(name: str, good: str) -> Callable[[Facts], Reading]:
    """A check of a fact of the machine that has one good value."""
    return lambda facts: None if facts[name] == UNAVAILABLE else (facts[name], facts[name] != good)


def container(facts: Facts) -> Reading:
    """A quota of processor time stops a process in the middle; a limit of memory ends it."""
    quota, memory = facts["container"]["cpu_quota_cores"], facts["container"]["memory_bytes"]
    parts = [f"{quota:g} processors"] if quota is not None else []
    parts += [f"{bytes_text(memory)} of memory"] if memory is not None else []
    return ", ".join(parts) or "none", quota is not None


def free_memory(_: Facts) -> Reading:
    """Memory that a virtual machine has given back to its host takes long to touch for the first time."""
    seconds = []
    for _again in range(2):
        started = time.perf_counter()
        touch(BYTES_TO_TOUCH)
        seconds.append((time.perf_counter() - started) * 1e9 / BYTES_TO_TOUCH)
    what = f"{seconds[0]:.2f} s to touch a gigabyte, {seconds[1]:.2f} s when it has just been freed"
    return what, seconds[0] > TIMES_AS_LONG * seconds[1]


CHECKS: dict[str, tuple[Callable[[Facts], Reading], str]] = {
    "load": (load, "end what else runs, or set measure=careful, which measures thirty blocks"),
    "pressure": (pressure, f"end what else runs; wall times of samples above {share_text(MOST_PRESSURE)} do not count"),
    "steal": (steal, "a machine of one's own, or another hour; compare within blocks only"),
    "other runs": (other_runs, "wait for it; two timed runs at once disturb each other"),
    "clock rate": (is_not("governor", "performance"), "sudo cpupower frequency-set -g performance"),
    "turbo": (
        is_not("turbo", "off"),
        "switch it off: slower, but the same from run to run; see cpufreq/boost or intel_pstate/no_turbo",
    ),
    "hyper-threads": (
        is_not("smt", "off"),
        "echo off | sudo tee /sys/devices/system/cpu/smt/control, or run it under taskset with one of each pair",
    ),
    "virtual machine": (
        is_not("hypervisor", "no sign of one"),
        "neighbours share caches and clock rate unseen; a time of another day is useless",
    ),
    "container's limits": (container, "give the container whole processors: a quota stops it in the middle of a run"),
    "free memory": (free_memory, "the harness touches what a call may need; a clock of your own has to do so as well"),
}
"""By its name: a function that reads it, and what to do if it disturbs."""
