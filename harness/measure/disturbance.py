"""What disturbed a measurement from outside: others waiting for the same processor, memory or disk, time stolen.

Totals since the machine started, in seconds, read where a call begins and ends; what the system does not say is None.
"""

from __future__ import annotations

import functools
import os
import re
import time
from pathlib import Path

from variants.contract import Meter

Totals = dict[str, float | None]

PRESSURES = ("cpu", "memory", "io")
STOLEN_FIELD = 8
COUNTED = ("involuntary_switches", "voluntary_switches", "minor_faults", "major_faults")


def totals() -> Totals:
    """Seconds for which something waited (PSI, `some`), of the machine and of our control group, and stolen seconds.

    `throttled_seconds` is for how long the control group's processes were held back by its quota of CPU time.
    """
    found: Totals = {f"psi_{kind}_seconds": pressure(f"/proc/pressure/{kind}") for kind in PRESSURES}
    found["steal_seconds"] = stolen_seconds()
    group = control_group()
    for kind in PRESSURES:
        found[f"group_psi_{kind}_seconds"] = pressure(f"{group}/{kind}.pressure") if group else None
    found["throttled_seconds"] = throttled_seconds(group)
    return found


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
    found = re.search(r"^some .*total=(\d+)", content(path), re.MULTILINE)
    return int(found[1]) / 1e6 if found else None


def stolen_seconds() -> float | None:
    """What a hypervisor gave to others while we were ready to run."""
    fields = content("/proc/stat").partition("\n")[0].split()
    return int(fields[STOLEN_FIELD]) / os.sysconf("SC_CLK_TCK") if len(fields) > STOLEN_FIELD else None


def throttled_seconds(group: str | None) -> float | None:
    """
    >>> throttled_seconds(None) is None
    True
    """
    found = re.search(r"^throttled_(usec|time) (\d+)", content(f"{group}/cpu.stat"), re.MULTILINE) if group else None
    return int(found[2]) / (1e6 if found[1] == "usec" else 1e9) if found else None


@functools.cache
def control_group() -> str | None:
    """The folder of our control group, version 2; None for the root group, which says what the machine says."""
    found = re.search(r"^0::(/.*)$", content("/proc/self/cgroup"), re.MULTILINE)
    for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        # In a container the group's own folder is what is mounted, whatever the path outside.
        for folder in (f"{mount}{found[1]}".rstrip("/"), mount) if found else ():
            if Path(folder, "cpu.stat").is_file() and Path(folder, "cgroup.type").is_file():
                return folder
    return None


def content(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


# Waiting until nothing else wants the processors, by the kernel's own account of tasks that had to wait for one.

PRESSURE = Path("/proc/pressure/cpu")
SECONDS_OF_A_LOOK = 0.5
QUIET_SHARE = 0.02
"""The share of a look during which some task waited, up to which a machine is called quiet."""


def wait_for_quiet(longest: float) -> bool:
    """Return True as soon as the machine is quiet, False if it was not within `longest` seconds or cannot be told.

    With no time to wait it is not looked at, and nothing is said against it.
    """
    until = time.monotonic() + longest
    while longest:
        before = waited_seconds()
        if before is None:
            return False
        time.sleep(SECONDS_OF_A_LOOK)
        if (waited_seconds() or 0.0) - before <= QUIET_SHARE * SECONDS_OF_A_LOOK:
            return True
        if time.monotonic() >= until:
            return False
    return True


def waited_seconds() -> float | None:
    """For how long some task has had to wait for a processor since the machine started; None where nobody knows."""
    try:
        found = re.search(r"^some .*total=(\d+)", PRESSURE.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) / 1e6 if found else None


# What measuring itself costs: the time of one lap of a meter, taken once for each command.

BATCHES = 9
LAPS = 1000


@functools.cache
def clock_cost_seconds() -> float:
    """The seconds of one lap, in the fastest of some batches: what disturbs them only adds.

    Times a record's `laps` it is what the clock took of the record's time.
    """
    return round(min(batch_seconds() for _ in range(BATCHES)) / LAPS, 11)


def batch_seconds() -> float:
    meter = Meter()
    started = time.perf_counter()
    for _ in range(LAPS):
        meter.lap("update")
    return time.perf_counter() - started
