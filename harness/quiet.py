"""Waiting until nothing else wants the processors, by the kernel's own account of tasks that had to wait for one."""

from __future__ import annotations

import re
import time
from pathlib import Path

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
