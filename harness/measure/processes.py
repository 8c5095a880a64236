"""The processes of one job: the worker's session, what descends from it, and what bears its mark wherever it went.

A look at them is cheap enough for ten a second: a process that is not of the job is looked at once, and shares of
memory, which the kernel has to walk through every page for, are asked for seldom where a process is large.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.measure.control_group import ControlGroup

MARK = "BPE_HARNESS_JOB"
"""In the environment of a measured process, and so of everything it starts."""
SECONDS_TO_END = 3.0
LOOKS_BEFORE_STRANGERS_ARE_MET_AGAIN = 50
# Asking for shares may take this part of the time: while the kernel answers, the process cannot map memory.
SHARE_OF_TIME_FOR_SHARES = 0.02
ENDED = (b"Z", b"X")


class Seen(NamedTuple):
    """A process in /proc/PID/stat; `started` tells it from a later one of the same number."""

    state: bytes
    parent: int
    session: int
    cpu_ticks: int
    children_cpu_ticks: int
    started: int


@dataclass
class Account:
    """What the kernel says that a job's processes have used; None where this system does not tell."""

    cpu_seconds: float | None
    """Of the leader, and of those of its children that have ended."""
    own_cpu_seconds: float
    """Of the leader alone."""
    others_cpu_seconds: float
    """Of the members that nobody has waited for yet, the leader apart, and of orphans that ended."""
    seen_cpu_seconds: float
    """What each member but the leader was seen to have used itself, whatever became of it."""
    group_cpu_seconds: float | None
    """Of everything that was ever started for the job, where the kernel adds it up."""
    waited: float | None
    """For how long the leader, and who asks, have been ready to run without running."""


@dataclass
class JobProcesses:
    """Those of the worker `leader`, whose environment has `mark`; and the most memory they were seen to hold."""

    leader: int
    mark: str
    guard: int | None = None
    """The leader's parent, and of all that its ancestors have let go of; it is ours, and no member."""
    group: ControlGroup | None = None
    members: dict[int, Seen] = field(default_factory=dict)
    peak_bytes: int = 0
    several: bool = False
    _spent: dict[tuple[int, int], int] = field(default_factory=dict)
    """The ticks that each member but the leader was last seen to have used itself, by its number and its start."""
    _strangers: set[int] = field(default_factory=set)
    _looks: int = 0
    _shares_again_at: float = 0.0

    def look(self) -> None:
        """See which processes there are now."""
        self._looks += 1
        if self._looks % LOOKS_BEFORE_STRANGERS_ARE_MET_AGAIN == 0:
            self._strangers.clear()  # numbers are used again
        ours = {os.getpid(), self.guard}
        seen_now = ((number, self._see(number)) for number in all_processes() if number not in ours)
        there = {number: seen for number, seen in seen_now if seen is not None}
        known = {number for number, seen in there.items() if self._was_member(number, seen)}
        known |= {number for number, seen in there.items() if self.leader in (number, seen.session)}
        known |= {number for number, seen in there.items() if seen.parent == self.guard}
        if self.group is not None:
            known |= self.group.processes() & there.keys()
        unknown = there.keys() - known
        while children := {number for number in unknown if there[number].parent in known}:
            known |= children
            unknown -= children
        sought = f"{MARK}={self.mark}".encode()
        marked = {number for number in unknown if sought in environment_of(number)}
        self._strangers |= unknown - marked
        self.members = {number: there[number] for number in known | marked}
        for number, seen in self.members.items():
            if number != self.leader:
                self._spent[number, seen.started] = seen.cpu_ticks

    def alive(self) -> list[int]:
        return [number for number, seen in self.members.items() if seen.state not in ENDED]

    def account(self) -> Account:
        """See which processes there are now, and what they have used."""
        self.look()
        cpu_seconds, of_children = cpu_seconds_of(self.leader)
        living = [seen for number, seen in self.members.items() if number != self.leader]
        orphans = seen_process(self.guard) if self.guard is not None else None
        ticks = sum(seen.cpu_ticks + seen.children_cpu_ticks for seen in living)
        return Account(
            cpu_seconds=cpu_seconds,
            own_cpu_seconds=(cpu_seconds or 0.0) - of_children,
            others_cpu_seconds=seconds_of_ticks(ticks + (orphans.children_cpu_ticks if orphans is not None else 0)),
            seen_cpu_seconds=seconds_of_ticks(sum(self._spent.values())),
            group_cpu_seconds=self.group.cpu_seconds() if self.group is not None else None,
            waited=waited_seconds(self.leader),
        )

    def weigh(self, limit: int | None) -> bool:
        """Note the memory they hold together; whether that is over the limit.

        Pages that several processes share are divided among them. Counting them for each is quicker, and no less than
        that: it will do as long as it is within the limit and shares have been asked for of late.
        """
        alive = self.alive()
        held = sum(map(resident_bytes, alive))
        if len(alive) > 1:
            self.several = True
            now = time.perf_counter()
            if now < self._shares_again_at and (limit is None or held <= limit):
                return False
            held = sum(map(shared_out_bytes, alive))
            took = time.perf_counter() - now
            self._shares_again_at = now + took / SHARE_OF_TIME_FOR_SHARES
        self.peak_bytes = max(self.peak_bytes, held)
        return limit is not None and held > limit

    def end(self) -> None:
        """End whatever is left of them. They are halted first, for one that forks can outrun who only kills."""
        self._strangers.clear()
        halted: set[int] = set()
        give_up = time.perf_counter() + SECONDS_TO_END
        self.look()
        while (fresh := set(self.alive()) - halted) and time.perf_counter() < give_up:
            send(signal.SIGSTOP, fresh)
            halted |= fresh
            self.look()
        send(signal.SIGKILL, halted & self.members.keys())
        while self.alive() and time.perf_counter() < give_up:
            time.sleep(0.001)
            self.look()

    def _see(self, number: int) -> Seen | None:
        return None if number in self._strangers else seen_process(number)

    def _was_member(self, number: int, seen: Seen) -> bool:
        return number in self.members and self.members[number].started == seen.started


def send(what: signal.Signals, numbers: set[int]) -> None:
    for number in numbers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(number, what)


def seen_process(number: int) -> Seen | None:
    """What /proc says of a process; None if it is gone."""
    try:
        with open(f"/proc/{number}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Seen(
        state=fields[0],
        parent=int(fields[1]),
        session=int(fields[3]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        children_cpu_ticks=int(fields[13]) + int(fields[14]),
        started=int(fields[19]),
    )


def cpu_seconds_of(process: int) -> tuple[float | None, float]:
    """The kernel's account of a living process, to the nanosecond, and of its children that ended, in ticks.

    The first includes the second.
    """
    seen = seen_process(process)
    if seen is None:
        return None, 0.0
    of_children = seconds_of_ticks(seen.children_cpu_ticks)
    try:
        # The number that Linux gives the clock of another process's CPU time.
        return time.clock_gettime((~process << 3) | 2) + of_children, of_children
    except OSError:
        return None, of_children


def waited_seconds(process: int) -> float | None:
    """For how long a process and who watches it have been ready to run without running."""
    waited = 0
    for who in (process, "thread-self"):
        try:
            with open(f"/proc/{who}/schedstat", "rb") as file:  # noqa: PTH123
                waited += int(file.read().split()[1])
        except (OSError, IndexError):
            return None
    return waited / 1e9


def seconds_of_ticks(ticks: int) -> float:
    return ticks / os.sysconf("SC_CLK_TCK")


def all_processes() -> list[int]:
    if not os.path.isdir("/proc/self"):  # noqa: PTH112
        return []
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def environment_of(number: int) -> list[bytes]:
    try:
        with open(f"/proc/{number}/environ", "rb") as file:  # noqa: PTH123
            return file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []  # gone, or not ours


def resident_bytes(number: int) -> int:
    try:
        with open(f"/proc/{number}/statm") as file:  # noqa: PTH123
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0  # it ended while being looked at


def shared_out_bytes(number: int) -> int:
    """The pages of a process, those it shares with others divided by their number."""
    try:
        with open(f"/proc/{number}/smaps_rollup") as file:  # noqa: PTH123
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return 0
