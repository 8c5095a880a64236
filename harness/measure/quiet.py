"""A quiet machine for a timed call: one timed run at a time, memory that was just freed, and what
disturbs otherwise.

Two timed runs would measure each other, so a run locks `timing` while it measures times, and
another one waits for it. A run with concurrent=true neither waits nor locks. The kernel drops a
lock with the process that holds it, however that ends. The variable BPE_HARNESS_LOCKS names another
folder for the lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import mmap
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from harness.common.comparison import MOST_PRESSURE
from harness.common.errors import UNMEASURED, Refusal, reason
from harness.common.files import open_safely
from harness.common.printing import print_stderr
from harness.common.units import bytes_text, seconds_text, share_text
from harness.measure.machine import UNAVAILABLE, available_memory, content, machine
from harness.worker.exchange import Job

VARIABLE = "BPE_HARNESS_LOCKS"
WAITING = "another benchmark is running here; waiting (concurrent=true runs anyway)"
LEAST_TOUCHED, TOUCHED_FOR_A_BYTE, MOST_TOUCHED = 64 << 20, 48, 1 << 30
SHARE_OF_ROOM = 0.25
SECONDS_OF_STEAL = 0.5
BYTES_TO_TOUCH = 256 << 20
TIMES_AS_LONG = 3.0
BUSY_LOAD = 0.25  # runnable processes by CPUs; an idle machine has next to none
Facts = dict[str, Any]
Reading = tuple[str, bool] | None
"""What was read, and whether it disturbs timing; None if the machine does not report it."""


def timing() -> io.FileIO:
    """Hold the machine for timed measurements until the lock is closed; wait while another run
    holds it. Raises Refusal for a lock that cannot be opened.
    """
    held = open_lock()
    try:
        if not lock(held):
            print_stderr(WAITING)
            fcntl.flock(held, fcntl.LOCK_EX)
    except BaseException:
        held.close()
        raise
    return held


def lock(file: io.FileIO) -> bool:
    """Lock a file unless another process has."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_file() -> Path:
    """Return the path of the lock, the same for every user of the machine."""
    return Path(os.environ.get(VARIABLE) or "/tmp", "bpe-harness-timing.lock")


def open_lock() -> io.FileIO:
    """Open the lock, created if missing; reading is enough to lock it, so other users can. Raises
    Refusal if it cannot be opened.
    """
    path = lock_file()
    try:
        if not os.path.lexists(path):
            with contextlib.suppress(FileExistsError):
                os.close(open_safely(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL))
                path.chmod(0o644)  # whatever the umask
        return io.FileIO(open_safely(path, os.O_RDONLY, of_anybody=True))
    except OSError as error:
        raise Refusal(
            f"cannot lock {path} ({reason(error)}); set {VARIABLE} to a folder", UNMEASURED
        ) from error


# Memory. A virtual machine gives free memory back to its host seconds after it was freed, and the
# next touch waits for the host: 2.4 s for a gigabyte on one such machine, 0.1 s if the same memory
# had just been freed.


def touch_memory(job: Job) -> None:
    """Touch and free as much memory as a call on such a job may take, so that it does not wait for
    the host.
    """
    room = int(SHARE_OF_ROOM * available_memory())  # other processes keep enough memory
    path, size = Path(job.words if job.corpus is None else job.corpus.path), 0
    with contextlib.suppress(OSError):
        files = path.iterdir() if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files)
    touch(min(LEAST_TOUCHED + TOUCHED_FOR_A_BYTE * size, MOST_TOUCHED, room))


def touch(size: int) -> None:
    """Write one byte of each page of so much new memory, and free it."""
    if size >= mmap.PAGESIZE:
        with (
            contextlib.suppress(OSError, ValueError),
            mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE) as memory,
        ):
            if hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # a kernel without them
                    memory.madvise(mmap.MADV_HUGEPAGE)
            memory[:: mmap.PAGESIZE] = bytes(-(-size // mmap.PAGESIZE))


# What disturbs timing on this machine, read from the kernel's files, each with what can be done
# about it


class Condition(NamedTuple):
    """One property of the machine; `disturbs` is None if it cannot be seen, and only what disturbs
    has advice.
    """

    name: str
    what: str
    disturbs: bool | None
    advice: str = ""


def conditions() -> list[Condition]:
    """Return every property of the machine that may disturb timing, the most important first."""
    facts, found = machine(), []
    for name, (read, advice) in CHECKS.items():
        what, disturbs = read(facts) or ("cannot be seen here", None)
        found.append(Condition(name, what, disturbs, advice if disturbs else ""))
    return found


def recent_load(facts: Facts) -> Reading:
    minute, cores = psutil.getloadavg()[0], facts["cores_usable"]
    return (
        f"{minute:.2f} processes on {cores} CPUs over the last minute",
        minute > BUSY_LOAD * cores,
    )


def recent_pressure(_: Facts) -> Reading:
    """Return the share of the last minute in which something waited for a CPU, memory or a
    disk.
    """
    parts, highest = [], 0.0
    for kind in ("cpu", "memory", "io"):
        average = re.search(r"^some .*?avg60=([\d.]+)", content(f"proc/pressure/{kind}"))
        if average is not None:
            share = float(average[1]) / 100
            parts.append(f"{kind} {share_text(share)}")
            highest = max(highest, share)
    if not parts:
        return None
    return f"{', '.join(parts)} of the last minute", highest > MOST_PRESSURE / 4


def steal(_: Facts) -> Reading:
    """Return the share of the CPUs' time that the hypervisor gives to others: now, and since
    the start.
    """
    since_the_start = psutil.cpu_times()
    if not hasattr(since_the_start, "steal"):
        return None
    ever = since_the_start.steal / sum(since_the_start[:8])
    now = psutil.cpu_times_percent(SECONDS_OF_STEAL).steal / 100
    what = f"{share_text(now)} of the CPUs' time now, {share_text(ever)} since the start"
    return what, max(now, ever) > 0.01


def other_runs(_: Facts) -> Reading:
    with open_lock() as held:
        is_busy = not lock(held)
    return "another run is being timed" if is_busy else "none is being timed", is_busy


def is_not(name: str, good: str) -> Callable[[Facts], Reading]:
    """A check of a fact of the machine that has one good value."""
    return lambda facts: None if facts[name] == UNAVAILABLE else (facts[name], facts[name] != good)


def container_limits(facts: Facts) -> Reading:
    """A quota of CPU time stops a process in the middle; a limit of memory ends it."""
    quota, memory = facts["container"]["cpu_quota_cores"], facts["container"]["memory_bytes"]
    parts = [f"{quota:g} CPUs"] if quota is not None else []
    parts += [f"{bytes_text(memory)} of memory"] if memory is not None else []
    return ", ".join(parts) or "none", quota is not None


def free_memory(_: Facts) -> Reading:
    """Memory that a virtual machine has given back to its host takes long to touch for the first
    time.
    """
    seconds = []
    for _again in range(2):
        started = time.perf_counter()
        touch(BYTES_TO_TOUCH)
        seconds.append((time.perf_counter() - started) * 1e9 / BYTES_TO_TOUCH)
    first, again = map(seconds_text, seconds)
    what = f"{first} to touch a gigabyte, {again} when it has just been freed"
    return what, seconds[0] > TIMES_AS_LONG * seconds[1]


CHECKS: dict[str, tuple[Callable[[Facts], Reading], str]] = {
    "load": (
        recent_load,
        "end what else runs, or set measure=careful, which measures thirty blocks",
    ),
    "pressure": (
        recent_pressure,
        f"end what else runs; wall times of samples above {share_text(MOST_PRESSURE)} do not count",
    ),
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
    "container's limits": (
        container_limits,
        "give the container whole CPUs: a quota stops it in the middle of a run",
    ),
    "free memory": (
        free_memory,
        "the harness touches what a call may need; a clock of your own has to do so as well",
    ),
}
"""By its name: a function that reads it, and what to do if it disturbs."""
