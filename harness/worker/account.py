"""What the kernel says of the process that asks: CPU time, switches, page faults, memory.

Standard library only, and Python 3.9's: it runs in the measured process.
"""

from __future__ import annotations

import resource
from typing import Union

Account = dict[str, Union[int, float]]

COUNTED = {
    "involuntary_switches": "ru_nivcsw",
    "voluntary_switches": "ru_nvcsw",
    "minor_faults": "ru_minflt",
    "major_faults": "ru_majflt",
}


def account() -> Account:
    """CPU seconds, context switches and page faults of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    counted: Account = {name: sum(getattr(usage, field) for usage in usages) for name, field in COUNTED.items()}
    counted["cpu_seconds"] = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return counted


def since(before: Account) -> Account:
    """What has been added to the account."""
    return {name: number - before[name] for name, number in account().items()}


def memory_status() -> dict[str, int]:
    """The kernel's account of this process in bytes: VmHWM, the peak, and RssAnon, what is not mapped from files."""
    figures = {"VmHWM": 0, "RssAnon": 0}
    try:
        with open("/proc/self/status") as status:  # noqa: PTH123
            for line in status:
                name, _, rest = line.partition(":")
                if name in figures:
                    figures[name] = int(rest.split()[0]) * 1024
    except FileNotFoundError:  # not Linux: getrusage's peak is right where no fork came before
        figures["VmHWM"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return figures
