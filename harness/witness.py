"""The two witnesses of a call: the parent's clock and the kernel's account, read where the call begins and ends.

The measured process tells both moments and waits while they are noted. What it later says of itself must fit: neither
more nor less time than passed, neither more nor less CPU time than the kernel gave it, and none spent behind the clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from harness import disturbance
from harness.processes import JobProcesses, seconds_of_ticks, seen_process

# The worker's clock is the parent's, and runs inside of what the parent sees.
CLOCK_TOLERANCE_SECONDS = 0.005
# The kernel counts some CPU time in ticks.
CPU_TOLERANCE_SECONDS = 0.05
# From the moment that the one says something until the other has noted it, on a machine that has nothing else to do.
SECONDS_TO_NOTICE = 0.03
WITHOUT_AN_ACCOUNT_OF_WAITING = 0.25
SHARE_THAT_MAY_DIFFER = 0.02
# Packing and writing the answer.
CPU_SECONDS_TO_ANSWER = 0.5
CPU_SECONDS_TO_ANSWER_FOR_EACH = 25e-6


@dataclass
class Moment:
    """What the witnesses say at one moment; None where this system does not tell."""

    at: float
    cpu_seconds: float | None
    living_cpu_seconds: float
    waited: float | None
    disturbance: disturbance.Totals


class Witness:
    """Watches one process from its start to its end."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.started = time.perf_counter()
        self.begun: Moment | None = None
        self.ended: Moment | None = None
        self.closed = self.started
        self.whole_cpu_seconds = 0.0

    def begin(self, processes: JobProcesses) -> None:
        """The call begins; only the first time counts, for a trainer can say so as well."""
        if self.begun is None:
            processes.look()
            self.begun = self.moment(processes)

    def end(self, processes: JobProcesses) -> None:
        """The call has ended; the last time counts."""
        at = time.perf_counter()
        processes.look()
        self.ended = self.moment(processes)
        self.ended.at = at

    def close(self, cpu_seconds: float) -> None:
        """The process is gone, the kernel's account of it complete."""
        self.whole_cpu_seconds = cpu_seconds
        self.closed = time.perf_counter()

    def moment(self, processes: JobProcesses) -> Moment:
        return Moment(
            disturbance=disturbance.totals(),
            living_cpu_seconds=processes.children_cpu_seconds(),
            cpu_seconds=cpu_seconds_of(self.process),
            waited=waited_seconds(self.process),
            at=time.perf_counter(),
        )

    def record(self) -> dict[str, Any]:
        """The keys `witness` and `disturbance` of an answer."""
        if self.begun is None or self.ended is None:
            lasted = self.closed - (self.begun.at if self.begun else self.started)
            return {"witness": {"wall_seconds": lasted, "cpu_seconds": self.whole_cpu_seconds, "whole_process": True}}
        cpu = self.cpu_of_call()
        living = max(0.0, self.ended.living_cpu_seconds - self.begun.living_cpu_seconds)
        return {
            "witness": {
                "wall_seconds": self.ended.at - self.begun.at,
                "cpu_seconds": cpu + living if cpu is not None else self.whole_cpu_seconds,
                "whole_process": cpu is None,
            },
            "disturbance": disturbance.difference(self.begun.disturbance, self.ended.disturbance),
        }

    def cpu_of_call(self) -> float | None:
        """What the kernel gave the process, and those of its children that have ended, between the two moments."""
        moments = (self.begun, self.ended)
        first, last = (moment.cpu_seconds if moment is not None else None for moment in moments)
        return last - first if first is not None and last is not None else None

    def disagreement(self, answer: dict[str, Any]) -> str | None:
        """What speaks against an answer with a total; None if nothing does."""
        if self.begun is None:
            return None if answer["status"] == "timeout" else "its parent has not heard that its call began"
        said = self.record()["witness"]
        return (
            disagreement_of_phases(answer)
            or disagreement_of_clocks(answer["total"], said["wall_seconds"], self.unsure_seconds())
            or disagreement_of_accounts(answer["cpu_seconds"], said["cpu_seconds"], self.cpu_of_call())
            # A call that was stopped has not returned: it goes on while its answer is written.
            or (None if answer["status"] == "timeout" else self.work_behind_the_clock(answer))
        )

    def unsure_seconds(self) -> float:
        """How much longer than the call the parent may have seen it last, when both had to wait for a processor."""
        if self.begun is None or self.ended is None:
            return CPU_SECONDS_TO_ANSWER
        waits = [self.begun.waited, self.ended.waited]
        if waits[0] is None or waits[1] is None:
            return WITHOUT_AN_ACCOUNT_OF_WAITING
        stolen = disturbance.difference(self.begun.disturbance, self.ended.disturbance)["steal_seconds"]
        return SECONDS_TO_NOTICE + waits[1] - waits[0] + (stolen or 0.0)

    def work_behind_the_clock(self, answer: dict[str, Any]) -> str | None:
        """Whether the process went on working when its call had returned, beyond what an answer takes."""
        if self.ended is None or self.ended.cpu_seconds is None:
            return None
        behind = self.whole_cpu_seconds - self.ended.cpu_seconds
        items = (answer.get("merges_done") or 0) + (answer.get("words") or {}).get("words", 0)
        if behind > CPU_SECONDS_TO_ANSWER + CPU_SECONDS_TO_ANSWER_FOR_EACH * items:
            return f"it used {behind:.3f} s of CPU time when its call had returned"
        return None


def disagreement_of_clocks(total: float, wall: float, unsure: float) -> str | None:
    """Whether the total is longer than the parent saw the call last, or shorter by more than noticing it can take.

    >>> disagreement_of_clocks(1.0, 1.001, 0.03)
    >>> disagreement_of_clocks(0.1, 2.0, 0.03)
    'its clock shows 0.100 s, its parent saw 2.000 s pass'
    """
    if -CLOCK_TOLERANCE_SECONDS <= wall - total <= unsure + SHARE_THAT_MAY_DIFFER * wall:
        return None
    return f"its clock shows {total:.3f} s, its parent saw {wall:.3f} s pass"


def disagreement_of_accounts(claimed: float, most: float, least: float | None) -> str | None:
    """Whether the CPU time claimed is more than the kernel gave to all its processes, or less than to itself alone.

    >>> disagreement_of_accounts(1.0, 1.01, 1.0)
    >>> disagreement_of_accounts(0.0, 1.0, 1.0)
    'it claims 0.000 s of CPU time, the kernel gave it 1.000 s'
    """
    given = None
    if claimed > most + CPU_TOLERANCE_SECONDS:
        given = most
    elif least is not None and claimed < least * (1 - SHARE_THAT_MAY_DIFFER) - CPU_TOLERANCE_SECONDS:
        given = least
    return None if given is None else f"it claims {claimed:.3f} s of CPU time, the kernel gave it {given:.3f} s"


def disagreement_of_phases(answer: dict[str, Any]) -> str | None:
    """Whether an answer's own phases do not fit into its total.

    >>> disagreement_of_phases({"total": 1.0, "seconds": {"init": 0.9, "max": 0.9}})
    'its phases claim 1.800 s of the 1.000 s there were'
    """
    total, seconds = answer["total"], answer["seconds"]
    spent = sum(seconds.values())
    if spent > total + CLOCK_TOLERANCE_SECONDS or min([0.0, *seconds.values()]) < -CLOCK_TOLERANCE_SECONDS:
        return f"its phases claim {spent:.3f} s of the {total:.3f} s there were"
    return None


def cpu_seconds_of(process: int) -> float | None:
    """The kernel's account of a living process: its threads to the nanosecond, its children that ended in ticks."""
    seen = seen_process(process)
    if seen is None:
        return None
    try:
        # The number that Linux gives the clock of another process's CPU time.
        return time.clock_gettime((~process << 3) | 2) + seconds_of_ticks(seen.children_cpu_ticks)
    except OSError:
        return None


def waited_seconds(process: int) -> float | None:
    """For how long a process and its parent have been ready to run without running."""
    waited = 0
    for who in (process, "self"):
        fields = disturbance.content(f"/proc/{who}/schedstat").split()
        if len(fields) < 2:
            return None
        waited += int(fields[1])
    return waited / 1e9
