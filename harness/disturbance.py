"""What disturbed a measurement from outside: others waiting for the same processor, memory or disk, time stolen.

Totals since the machine started, in seconds, read where a call begins and ends; what the system does not say is None.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

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
