"""What on this machine disturbs timing, read from the kernel's files; each finding with what can be done about it."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from harness.common.comparison import MOST_PRESSURE
from harness.common.units import bytes_text, share_text
from harness.measure import machine
from harness.measure.machine import UNAVAILABLE, content, first_line, usable_cores
from harness.measure.sandbox import touch

GOOD, DISTURBS, UNKNOWN = "good", "disturbs", "unknown"
SECONDS_OF_STEAL = 0.5
BYTES_TO_TOUCH = 256 << 20
TIMES_AS_LONG = 3.0
BUSY_LOAD = 0.25
"""Runnable processes by processors; an idle machine has next to none."""
CPU = "sys/devices/system/cpu"
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
    return [finding(name, read(), advice) for name, (read, advice) in CHECKS.items()]


def finding(name: str, reading: Reading, advice: str) -> Finding:
    if reading is None:
        return Finding(name, UNKNOWN, "cannot be seen here")
    what, disturbs = reading
    return Finding(name, DISTURBS if disturbs else GOOD, what, advice if disturbs else "")


def load() -> Reading:
    minute, cores = first_line("proc/loadavg").split()[0], usable_cores()
    what = f"{minute} processes on {cores} processors over the last minute"
    return None if minute == UNAVAILABLE else (what, float(minute) > BUSY_LOAD * cores)


def pressure() -> Reading:
    """Return the share of the last minute in which something waited for a processor, memory or a disk."""
    averages = {
        kind: re.search(r"^some .*?avg60=([\d.]+)", content(f"proc/pressure/{kind}")) for kind in machine.PRESSURES
    }
    shares = {kind: float(match[1]) / 100 for kind, match in averages.items() if match}
    what = ", ".join(f"{kind} {share_text(share)}" for kind, share in shares.items()) + " of the last minute"
    return (what, max(shares.values()) > MOST_PRESSURE / 4) if shares else None


def steal() -> Reading:
    """Return the share of the processors' time that the hypervisor gives to others: now, and since the start."""
    first = ticks()
    time.sleep(SECONDS_OF_STEAL if first else 0)
    second = ticks()
    if not first or not second:
        return None
    ever = first[1] / max(first[0], 1)
    now = (second[1] - first[1]) / max(second[0] - first[0], 1)
    what = f"{share_text(now)} of the processors' time now, {share_text(ever)} since the start"
    return what, max(now, ever) > 0.01


def ticks() -> tuple[int, int] | None:
    """Return all ticks of all processors, and those that were stolen."""
    fields = [int(field) for field in first_line("proc/stat").split()[1:]]
    return (sum(fields[:8]), fields[7]) if len(fields) > 7 else None


def timed_runs() -> Reading:
    commands = ((process.pid, process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"]))
    running = [
        str(number)
        for number, command in commands
        if "harness.worker" in command and not any(word.endswith("guard.py") for word in command)
    ]
    return f"measured processes: {', '.join(running)}" if running else "no other measured process", bool(running)


def cores() -> Reading:
    usable, total = usable_cores(), os.cpu_count() or 1
    return f"{usable} of {total} may be used" if usable < total else f"{total}", usable < 4


def state_of(state: str, good: str) -> Reading:
    return None if state == UNAVAILABLE else (state, state != good)


def hypervisor() -> Reading:
    flags = machine.cpu_field("flags").split()
    return ("yes" if "hypervisor" in flags else "no", "hypervisor" in flags) if flags else None


def container() -> Reading:
    """A quota of processor time stops a process in the middle; a limit of memory ends it."""
    limits = machine.container()
    quota, memory = limits["cpu_quota_cores"], limits["memory_bytes"]
    parts = [f"{quota:g} processors"] if quota is not None else []
    parts += [f"{bytes_text(memory)} of memory"] if memory is not None else []
    return ", ".join(parts) or "none", quota is not None


def swap() -> Reading:
    memory = psutil.swap_memory()
    what = f"{bytes_text(memory.used)} of {bytes_text(memory.total)} used" if memory.total else "none"
    return what, memory.used > 0


def huge_pages() -> Reading:
    match = re.search(r"\[(\w+)\]", first_line("sys/kernel/mm/transparent_hugepage/enabled"))
    return (match[1], match[1] == "always") if match else None


def free_memory() -> Reading:
    """Memory that a virtual machine has given back to its host takes long to touch for the first time."""
    seconds = []
    for _ in range(2):
        started = time.perf_counter()
        touch(BYTES_TO_TOUCH)
        seconds.append((time.perf_counter() - started) * 1e9 / BYTES_TO_TOUCH)
    what = f"{seconds[0]:.2f} s to touch a gigabyte, {seconds[1]:.2f} s when it has just been freed"
    return what, seconds[0] > TIMES_AS_LONG * seconds[1]


def clock() -> Reading:
    source = first_line("sys/devices/system/clocksource/clocksource0/current_clocksource")
    what = f"{source}; a lap of the meter costs {machine.clock_cost_seconds() * 1e9:.0f} ns"
    return None if source == UNAVAILABLE else (what, source in ("hpet", "acpi_pm"))


def valgrind() -> Reading:
    missing = shutil.which("valgrind") is None
    return "not installed" if missing else "installed", missing


CHECKS: dict[str, tuple[Callable[[], Reading], str]] = {
    "load": (load, "end what else runs, or set measure=careful, which waits for a quiet moment before each cell"),
    "pressure": (pressure, f"end what else runs; wall times of samples above {share_text(MOST_PRESSURE)} do not count"),
    "steal": (steal, "a machine of one's own, or another hour; compare within blocks only"),
    "other runs": (timed_runs, "wait for them; two timed runs at once disturb each other"),
    "processors": (cores, "the harness and the system need one besides the measured; threads above that share one"),
    "clock rate": (
        lambda: state_of(first_line(f"{CPU}/cpu0/cpufreq/scaling_governor"), "performance"),
        "sudo cpupower frequency-set -g performance",
    ),
    "turbo": (
        lambda: state_of(machine.turbo(), "off"),
        "switch it off: slower, but the same from run to run; see cpufreq/boost or intel_pstate/no_turbo",
    ),
    "hyper-threads": (
        lambda: state_of(machine.switch(f"{CPU}/smt/active"), "off"),
        "echo off | sudo tee /sys/devices/system/cpu/smt/control, or affinity=[...] with one of each pair",
    ),
    "virtual machine": (hypervisor, "neighbours share caches and clock rate unseen; a time of another day is useless"),
    "container's limits": (container, "give the container whole processors: a quota stops it in the middle of a run"),
    "swap": (swap, "sudo swapoff -a, or free memory: a page that comes back from disk takes a million steps"),
    "huge pages": (huge_pages, "set transparent_hugepage/enabled to madvise: whether a large one is free is luck"),
    "free memory": (free_memory, "the harness touches what a call may need; a clock of your own has to do so as well"),
    "clock": (clock, "reading it takes microseconds; set clocksource=tsc on the kernel's command line"),
    "valgrind": (valgrind, "apt-get install valgrind, for measure=instructions, which no load disturbs"),
}
"""By its name: a function that reads it, and what to do if it disturbs."""
