"""A control group for one measured process and all it starts, where one may be made: the whole tree's CPU time.

The kernel adds up there what every process used, also those that nobody waited for. Both forms of Linux's groups are
known: the unified one, and the older with an account of its own. Where none may be made, what is seen is accounted.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from pathlib import Path

NAME = "bpe-harness"
NUMBERS = itertools.count()
ROOT = Path("/sys/fs/cgroup")


class ControlGroup:
    """A context; `members` is the file by which a process joins, None where there is no group."""

    path: Path | None = None

    def __enter__(self) -> ControlGroup:
        for folder in own_groups():
            made = folder / f"{NAME}-{os.getpid()}-{next(NUMBERS)}"
            with contextlib.suppress(OSError):
                remove_abandoned(folder)
                made.mkdir()
                self.path = made
                if self.cpu_seconds() is not None:
                    return self
                made.rmdir()
            self.path = None
        return self

    def __exit__(self, *error: object) -> None:
        if self.path is not None:
            with contextlib.suppress(OSError):  # something in it will not end; the next one removes it
                self.path.rmdir()

    @property
    def members(self) -> str | None:
        return str(self.path / "cgroup.procs") if self.path is not None else None

    def processes(self) -> set[int]:
        """The numbers of the processes in it."""
        if self.path is None:
            return set()
        with contextlib.suppress(OSError):
            return {int(number) for number in (self.path / "cgroup.procs").read_text().split()}
        return set()

    def cpu_seconds(self) -> float | None:
        """What its processes have used, those that have ended included; None where there is no group."""
        if self.path is None:
            return None
        with contextlib.suppress(OSError):
            return int((self.path / "cpuacct.usage").read_text()) / 1e9
        with contextlib.suppress(OSError):
            found = re.search(r"^usage_usec (\d+)$", (self.path / "cpu.stat").read_text(), re.MULTILINE)
            return int(found[1]) / 1e6 if found else None
        return None


def own_groups() -> list[Path]:
    """The folders of the groups that this process is in and that have an account of CPU time, and nothing else.

    A group that also shares out time or memory would change what is measured.
    """
    folders = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                folders += [ROOT / path.lstrip("/"), ROOT / "unified" / path.lstrip("/")]
            elif controllers == "cpuacct":
                folders.append(ROOT / "cpuacct" / path.lstrip("/"))
    return [folder for folder in folders if is_in(folder)]


def is_in(folder: Path) -> bool:
    """Whether this process is in the group of a folder: in a container, the path may be another one's."""
    with contextlib.suppress(OSError):
        return str(os.getpid()) in (folder / "cgroup.procs").read_text().split()
    return False


def remove_abandoned(folder: Path) -> None:
    """Remove the groups of a harness that was killed; one with processes in it stays."""
    for left in folder.glob(f"{NAME}-*-*"):
        owner = left.name.split("-")[2]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                left.rmdir()
