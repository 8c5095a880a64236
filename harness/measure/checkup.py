"""What on this machine disturbs timing, read from the kernel's files; each finding with what can be done about it.

Nothing is changed, and what cannot be seen is said to be unknown, never guessed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.common.comparison import MOST_PRESSURE
from harness.common.units import bytes_text, share_text
from harness.measure.disturbance import clock_cost_seconds
from harness.measure.environment import usable_cores
from harness.measure.sandbox import touch

GOOD, DISTURBS, UNKNOWN = "good", "disturbs", "unknown"
SECONDS_OF_STEAL = 0.5
BYTES_TO_TOUCH = 256 << 20
TIMES_AS_LONG = 3.0
BUSY_LOAD = 0.25
"""Runnable processes by processors; an idle machine has next to none."""


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `state` is good, disturbs or unknown; `advice` is empty where there is nothing to do."""

    name: str
    state: str
    what: str
    advice: str = ""


@dataclass(frozen=True)
class Machine:
    """Where the kernel's files are; another root than / is for tests."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """A file's content without the blanks around it; None if there is none."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None

    def size(self, path: str, field: str) -> int | None:
        """The bytes that a line such as `SwapTotal: 12 kB` names."""
        found = re.search(rf"^{field}:\s+(\d+) kB$", self.text(path) or "", re.MULTILINE)
        return int(found[1]) * 1024 if found else None

    def cores(self) -> int:
        """The processors that this process may use."""
        return usable_cores()


def findings(machine: Machine) -> list[Finding]:
    """Everything there is to say about the machine, in the order in which it matters."""
    looks = (
        load, pressure, steal, timed_runs, cores, governor, turbo, siblings, hypervisor, container, swap, huge_pages,
        free_memory, clock, performance_counters, callgrind,
    )  # fmt: skip
    return [finding for look in looks for finding in look(machine)]


def load(machine: Machine) -> Iterator[Finding]:
    averages = (machine.text("proc/loadavg") or "").split()
    if not averages:
        yield Finding("load", UNKNOWN, "the kernel does not say")
        return
    minute = float(averages[0])
    busy = minute > BUSY_LOAD * machine.cores()
    what = f"{minute:.2f} processes on {machine.cores()} processors over the last minute"
    advice = "end what else runs, or set measure=careful, which waits for a quiet moment before each cell"
    yield Finding("load", DISTURBS if busy else GOOD, what, advice if busy else "")


def pressure(machine: Machine) -> Iterator[Finding]:
    """The share of the last minute in which something waited for a processor, memory or a disk."""
    told = {kind: machine.text(f"proc/pressure/{kind}") for kind in ("cpu", "memory", "io")}
    if not told["cpu"]:
        advice = "wall times of more than one thread cannot be cleaned of it; add psi=1 to the kernel's command line"
        yield Finding("pressure", UNKNOWN, "this kernel does not account for it", advice)
        return
    shares = {}
    for kind, text in told.items():
        found = re.search(r"^some .*?avg60=([\d.]+)", text or "", re.MULTILINE)
        if found:
            shares[kind] = float(found[1]) / 100
    what = ", ".join(f"{kind} {share_text(share)}" for kind, share in shares.items()) + " of the last minute"
    bad = any(share > MOST_PRESSURE / 4 for share in shares.values())
    advice = f"end what else runs; wall times of samples above {share_text(MOST_PRESSURE)} are not compared"
    yield Finding("pressure", DISTURBS if bad else GOOD, what, advice if bad else "")


def steal(machine: Machine) -> Iterator[Finding]:
    """What the hypervisor gives to others: since the machine started, and now."""
    first = _ticks(machine)
    if first is None:
        yield Finding("steal", UNKNOWN, "the kernel does not say")
        return
    time.sleep(SECONDS_OF_STEAL if machine.root == Path("/") else 0)
    second = _ticks(machine) or first
    ever = first[1] / max(first[0], 1)
    now = (second[1] - first[1]) / max(second[0] - first[0], 1)
    what = f"{share_text(now)} of the processors' time now, {share_text(ever)} since the start"
    bad = max(now, ever) > 0.01
    advice = "a machine of one's own, or another hour; compare within blocks only"
    yield Finding("steal", DISTURBS if bad else GOOD, what, advice if bad else "")


def _ticks(machine: Machine) -> tuple[int, int] | None:
    """All ticks of all processors, and those that were stolen."""
    found = re.match(r"cpu +([\d ]+)", machine.text("proc/stat") or "")
    fields = [int(field) for field in found[1].split()] if found else []
    return (sum(fields[:8]), fields[7]) if len(fields) > 7 else None


def timed_runs(machine: Machine) -> Iterator[Finding]:
    """Other measurements on this machine."""
    running = [
        path.parent.name
        for path in (machine.root / "proc").glob("[0-9]*/cmdline")
        if is_measured(_bytes(path).split(b"\0")) and path.parent.name != str(os.getpid())
    ]
    what = f"measured processes: {', '.join(running)}" if running else "no other measured process"
    advice = "wait for them; two timed runs at once disturb each other"
    yield Finding("other runs", DISTURBS if running else GOOD, what, advice if running else "")


def is_measured(command: list[bytes]) -> bool:
    """Whether a command is that of a measured process; that of its guard ends with the same words."""
    return b"harness.worker" in command and not any(word.endswith(b"guard.py") for word in command)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it has ended


def cores(machine: Machine) -> Iterator[Finding]:
    usable, there = machine.cores(), os.cpu_count() or 1
    what = f"{usable} of {there} may be used" if usable < there else f"{there}"
    few = usable < 4
    advice = "the harness and the system need one besides the measured; threads above that share a processor"
    yield Finding("processors", DISTURBS if few else GOOD, what, advice if few else "")


def governor(machine: Machine) -> Iterator[Finding]:
    told = machine.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if told is None:
        advice = "compare within blocks, where both have the same clock rate"
        yield Finding("clock rate", UNKNOWN, "its governor cannot be seen, as in most virtual machines", advice)
        return
    advice = "sudo cpupower frequency-set -g performance"
    good = told == "performance"
    yield Finding("clock rate", GOOD if good else DISTURBS, f"governor {told}", "" if good else advice)


def turbo(machine: Machine) -> Iterator[Finding]:
    boost = machine.text("sys/devices/system/cpu/cpufreq/boost")
    no_turbo = machine.text("sys/devices/system/cpu/intel_pstate/no_turbo")
    if boost is None and no_turbo is None:
        yield Finding("turbo", UNKNOWN, "cannot be seen")
        return
    on = boost == "1" or no_turbo == "0"
    path, off = ("cpufreq/boost", "0") if boost is not None else ("intel_pstate/no_turbo", "1")
    advice = f"echo {off} | sudo tee /sys/devices/system/cpu/{path}: slower, but the same from run to run"
    yield Finding("turbo", DISTURBS if on else GOOD, "on" if on else "off", advice if on else "")


def siblings(machine: Machine) -> Iterator[Finding]:
    active = machine.text("sys/devices/system/cpu/smt/active")
    if active is None:
        yield Finding("hyper-threads", UNKNOWN, "cannot be seen")
        return
    on = active == "1"
    advice = "echo off | sudo tee /sys/devices/system/cpu/smt/control, or affinity=[...] with one of each pair"
    yield Finding("hyper-threads", DISTURBS if on else GOOD, "on" if on else "off", advice if on else "")


def hypervisor(machine: Machine) -> Iterator[Finding]:
    cpuinfo = machine.text("proc/cpuinfo")
    if cpuinfo is None:
        yield Finding("virtual machine", UNKNOWN, "the kernel does not say")
        return
    virtual = re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) is not None
    advice = "neighbours share caches and clock rate unseen; a time of another day is no baseline here"
    yield Finding(
        "virtual machine", DISTURBS if virtual else GOOD, "yes" if virtual else "no", advice if virtual else ""
    )


def container(machine: Machine) -> Iterator[Finding]:
    """A quota of processor time stops a process in the middle; a limit of memory ends it."""
    quota = None
    second = (machine.text("sys/fs/cgroup/cpu.max") or "").split()
    if len(second) == 2 and second[0].isdigit():
        quota = int(second[0]) / int(second[1])
    first, period = (machine.text(f"sys/fs/cgroup/cpu/cpu.cfs_{name}_us") for name in ("quota", "period"))
    if first and period and int(first) > 0:
        quota = int(first) / int(period)
    throttled = re.search(r"^nr_throttled (\d+)$", machine.text("sys/fs/cgroup/cpu.stat") or "", re.MULTILINE)
    memory = machine.text("sys/fs/cgroup/memory.max") or machine.text("sys/fs/cgroup/memory/memory.limit_in_bytes")
    limited = memory is not None and memory.isdigit() and int(memory) < 1 << 50
    parts = [f"{quota:g} processors"] if quota is not None else []
    parts += [f"{bytes_text(int(memory))} of memory"] if limited and memory is not None else []
    parts += [f"stopped {throttled[1]} times" if throttled and int(throttled[1]) else ""]
    what = ", ".join(filter(None, parts))
    advice = "give the container whole processors (a set of them, no quota): a quota stops it in the middle of a run"
    yield Finding(
        "container's limits",
        DISTURBS if quota is not None else GOOD,
        what or "none",
        advice if quota is not None else "",
    )


def swap(machine: Machine) -> Iterator[Finding]:
    total, free = (machine.size("proc/meminfo", field) for field in ("SwapTotal", "SwapFree"))
    if total is None or free is None:
        yield Finding("swap", UNKNOWN, "the kernel does not say")
        return
    used = total - free
    what = f"{bytes_text(used)} of {bytes_text(total)} used" if total else "none"
    advice = "sudo swapoff -a, or free memory: a page that comes back from disk takes as long as a million steps"
    yield Finding("swap", DISTURBS if used else GOOD, what, advice if used else "")


def huge_pages(machine: Machine) -> Iterator[Finding]:
    told = machine.text("sys/kernel/mm/transparent_hugepage/enabled")
    chosen = re.search(r"\[(\w+)\]", told or "")
    if chosen is None:
        yield Finding("huge pages", UNKNOWN, "cannot be seen")
        return
    always = chosen[1] == "always"
    advice = "whether a large one is free is luck: echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
    yield Finding("huge pages", DISTURBS if always else GOOD, chosen[1], advice if always else "")


def free_memory(machine: Machine) -> Iterator[Finding]:
    """What a virtual machine has given back to its host takes long to touch for the first time."""
    if machine.root != Path("/"):
        yield Finding("free memory", UNKNOWN, "cannot be tried")
        return
    found, again = seconds_to_touch(), seconds_to_touch()
    per_gigabyte = [seconds * 1e9 / BYTES_TO_TOUCH for seconds in (found, again)]
    what = f"{per_gigabyte[0]:.2f} s to touch a gigabyte, {per_gigabyte[1]:.2f} s when it has just been freed"
    slow = found > TIMES_AS_LONG * again
    advice = "the harness makes ready what a call may need; a clock of your own has to do so as well"
    yield Finding("free memory", DISTURBS if slow else GOOD, what, advice if slow else "")


def seconds_to_touch() -> float:
    started = time.perf_counter()
    touch(BYTES_TO_TOUCH)
    return time.perf_counter() - started


def clock(machine: Machine) -> Iterator[Finding]:
    source = machine.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source is None:
        yield Finding("clock", UNKNOWN, "its source cannot be seen")
        return
    slow = source in ("hpet", "acpi_pm")
    advice = "reading it takes microseconds; clocksource=tsc on the kernel's command line"
    told = f"{source}; a lap of the meter costs {clock_cost_seconds() * 1e9:.0f} ns"
    yield Finding("clock", DISTURBS if slow else GOOD, told, advice if slow else "")


def performance_counters(machine: Machine) -> Iterator[Finding]:
    """Not needed, but whoever wants to know why a time is what it is will ask for them."""
    advice = "tallies and measure=instructions need none"
    if machine.root != Path("/") or shutil.which("perf") is None:
        yield Finding("perf", UNKNOWN, "not installed", advice)
        return
    command = ["perf", "stat", "-x,", "-e", "instructions:u", "true"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = re.search(r"^\d+,", ended.stderr, re.MULTILINE) is not None
    what = (
        "hardware counters work" if counts else "installed, but the processor's counters are not given to this machine"
    )
    yield Finding("perf", GOOD if counts else UNKNOWN, what, "" if counts else advice)


def callgrind(_: Machine) -> Iterator[Finding]:
    found = shutil.which("valgrind") is not None
    advice = "apt-get install valgrind, for measure=instructions, which no load disturbs"
    yield Finding(
        "valgrind", GOOD if found else UNKNOWN, "installed" if found else "not installed", "" if found else advice
    )
