"""What disturbs a measurement from outside: others waiting for the same processor, memory or disk, time stolen."""

from __future__ import annotations

import functools
import os
import re
import time
from pathlib import Path

from variants.contract import Meter

Totals = dict[str, float | None]
"""Seconds since the machine started, taken where a call starts and ends; None for what the system does not say."""
PRESSURES = ("cpu", "memory", "io")
STOLEN_FIELD = 8
COUNTED = ("involuntary_switches", "voluntary_switches", "minor_faults", "major_faults")
SECONDS_OF_A_LOOK = 0.5
QUIET_SHARE = 0.02
"""The share of a look during which some task waited, up to which a machine is called quiet."""
BATCHES, LAPS = 9, 1000


def totals() -> Totals:
    """Return for how long something waited (PSI, `some`), on the machine and in our control group, and stolen time.

    `throttled_seconds` is for how long the control group's processes were held back by its quota of CPU time.
    """
    group = control_group()
    return {
        **{f"psi_{kind}_seconds": pressure(f"/proc/pressure/{kind}") for kind in PRESSURES},
        "steal_seconds": stolen_seconds(),
        **{f"group_psi_{kind}_seconds": pressure(f"{group}/{kind}.pressure") if group else None for kind in PRESSURES},
        "throttled_seconds": throttled_seconds(group),
    }


def difference(before: Totals, after: Totals) -> Totals:
    """
    >>> difference({"a": 1.5, "b": None}, {"a": 2.0, "b": None})
    {'a': 0.5, 'b': None}
    """
    return {
        name: round(later - earlier, 6) if (earlier := before[name]) is not None and later is not None else None
        for name, later in after.items()
    }


def pressure(path: str) -> float | None:
    match = re.search(r"^some .*total=(\d+)", content(path), re.MULTILINE)
    return int(match[1]) / 1e6 if match else None


def stolen_seconds() -> float | None:
    """Return what a hypervisor gave to others while we were ready to run."""
    fields = content("/proc/stat").partition("\n")[0].split()
    return int(fields[STOLEN_FIELD]) / os.sysconf("SC_CLK_TCK") if len(fields) > STOLEN_FIELD else None


def throttled_seconds(group: str | None) -> float | None:
    match = re.search(r"^throttled_(usec|time) (\d+)", content(f"{group}/cpu.stat"), re.MULTILINE) if group else None
    return int(match[2]) / (1e6 if match[1] == "usec" else 1e9) if match else None


@functools.cache
def control_group() -> str | None:
    """Return the folder of our control group, version 2; None for the root group, which says what the machine says."""
    match = re.search(r"^0::(/.*)$", content("/proc/self/cgroup"), re.MULTILINE)
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        # In a container the group's own folder is what is mounted, whatever the path outside.
        for folder in (f"{mount}{match[1]}".rstrip("/"), mount) if match else ():
            if Path(folder, "cpu.stat").is_file() and Path(folder, "cgroup.type").is_file():
                return folder
    return None


def content(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def wait_for_quiet(longest: float) -> bool:
    """Return True as soon as next to nothing waits for a processor, False after `longest` seconds or if unknown."""
    until = time.monotonic() + longest
    while longest:  # with no time to wait nothing is said against the machine
        before = pressure("/proc/pressure/cpu")
        if before is None:
            return False
        time.sleep(SECONDS_OF_A_LOOK)
        if (pressure("/proc/pressure/cpu") or 0.0) - before <= QUIET_SHARE * SECONDS_OF_A_LOOK:
            return True
        if time.monotonic() >= until:
            return False
    return True


@functools.cache
def clock_cost_seconds() -> float:
    """Return the seconds of one lap of a meter, in the fastest of some batches: what disturbs them only adds.

    Times a record's `laps` it is what the clock took of the record's time.
    """
    return round(min(batch_seconds() for _ in range(BATCHES)) / LAPS, 11)


def batch_seconds() -> float:
    meter = Meter()
    started = time.perf_counter()
    for _ in range(LAPS):
        meter.lap("update")
    return time.perf_counter() - started
