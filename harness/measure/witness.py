"""The two witnesses of a call: the guard's clock and the kernel's account, read where the call begins and ends.

The measured process tells both moments and waits while they are noted. What it later says of itself must fit: neither
more nor less time than passed, neither more nor less CPU time than the kernel gave it, none spent behind the clock, and
before it no more than importing takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.measure import disturbance
from harness.measure.processes import JobProcesses, seconds_of_ticks, seen_process

# The worker's clock is the guard's, and runs inside of what the guard sees.
CLOCK_TOLERANCE_SECONDS = 0.005
# What waking up takes at either end. What is missing beyond that is added to the total.
SECONDS_TO_WAKE = 0.0005
# The kernel counts some CPU time in ticks.
CPU_TOLERANCE_SECONDS = 0.05
# From the moment that the one says something until the other has noted it, on a machine that has nothing else to do.
SECONDS_TO_NOTICE = 0.03
WITHOUT_AN_ACCOUNT_OF_WAITING = 0.25
SHARE_THAT_MAY_DIFFER = 0.02
# Writing the answer, and giving memory back.
CPU_SECONDS_TO_ANSWER = 0.1
CPU_SECONDS_TO_ANSWER_FOR_EACH_MERGE = 2e-6
CPU_SECONDS_TO_ANSWER_FOR_EACH_WORD = 25e-6
CPU_SECONDS_TO_GIVE_BACK_A_BYTE = 1e-9
# A trainer that reads the file says afterwards how it was fed.
CPU_SECONDS_TO_TELL_OF_FEEDING = 0.5
# Importing may cost this much more than in an empty job: caches are cold, and processors shared.
TIMES_AN_EMPTY_IMPORT = 2.0
CPU_SECONDS_BEYOND_AN_IMPORT = 0.25


@dataclass
class Moment:
    """What the witnesses say at one moment; None where this system does not tell."""

    at: float
    cpu_seconds: float | None
    others_cpu_seconds: float
    group_cpu_seconds: float | None
    waited: float | None
    disturbance: disturbance.Totals


class Witness:
    """Watches one process from its start to its end."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.started = time.perf_counter()
        self.ready_cpu_seconds: float | None = None
        self.imported = False
        self.begun: Moment | None = None
        self.going = False
        self.waited_to_begin: float | None = None
        self.waited_to_hear = 0.0
        self.ended: Moment | None = None
        self.closed = self.started
        self.whole_cpu_seconds = 0.0
        self.held_bytes = 0
        """The most memory that its processes were seen to hold."""

    def ready(self) -> None:
        """The process is about to import what it measures; only the first time counts."""
        if self.ready_cpu_seconds is None:
            self.ready_cpu_seconds = cpu_seconds_of(self.process)

    def begin(self, processes: JobProcesses) -> None:
        """The call begins; only the first time counts, for a trainer can say so as well."""
        if self.begun is None:
            processes.look()
            self.begun = self.moment(processes)

    def went(self, at: float) -> None:
        """The process was told to go on; after it asked to begin, that is where its call starts."""
        if self.begun is not None and not self.going:
            self.begun.at, self.going = at, True

    def has_begun(self, waited: float) -> None:
        """The process is running again, after it has `waited` for a processor."""
        if self.going and self.waited_to_begin is None:
            self.waited_to_begin = waited

    def end(self, processes: JobProcesses, at: float, waited: float) -> None:
        """The call has ended, and the guard had `waited` for a processor when it heard; the last time counts."""
        processes.look()
        self.ended = self.moment(processes)
        self.ended.at = at
        self.waited_to_hear = waited
        processes.weigh(None)
        self.held_bytes = processes.peak_bytes

    def close(self, cpu_seconds: float) -> None:
        """The process is gone, the kernel's account of it complete."""
        self.whole_cpu_seconds = cpu_seconds
        self.closed = time.perf_counter()

    def moment(self, processes: JobProcesses) -> Moment:
        return Moment(
            disturbance=disturbance.totals(),
            others_cpu_seconds=processes.others_cpu_seconds(),
            group_cpu_seconds=processes.group_cpu_seconds(),
            cpu_seconds=cpu_seconds_of(self.process),
            waited=waited_seconds(self.process),
            at=time.perf_counter(),
        )

    @property
    def before_cpu_seconds(self) -> float:
        """The CPU time between the process's being ready and its call, or its end where it came to none."""
        if self.ready_cpu_seconds is None:
            return 0.0
        begun = self.begun.cpu_seconds if self.begun is not None else self.whole_cpu_seconds
        return max(0.0, begun - self.ready_cpu_seconds) if begun is not None else 0.0

    def work_before_the_call(self, empty_import: Callable[[], float]) -> str | None:
        """Whether the process worked before its call, beyond what importing the same takes in an empty job."""
        alone = empty_import()
        if self.before_cpu_seconds <= TIMES_AN_EMPTY_IMPORT * alone + CPU_SECONDS_BEYOND_AN_IMPORT:
            return None
        return (
            f"it used {self.before_cpu_seconds:.3f} s of CPU time before its call, and importing it takes {alone:.3f} s"
        )

    def correct(self, answer: dict[str, Any]) -> None:
        """Set right what can be: the CPU time is the whole tree's, and the total no less than the guard saw.

        What either had to wait for a processor at the ends of the call is taken off. A rest that nobody can explain is
        counted, so that a trainer that turns its clock back gains nothing.
        """
        seen = self.record()["witness"]
        answer["cpu_seconds"] = max(answer["cpu_seconds"], seen["cpu_seconds"])
        least = seen["wall_seconds"] - (self.waited_to_begin or 0.0) - self.waited_to_hear
        if answer["total"] < least - SECONDS_TO_WAKE:
            answer["total"] = least

    def record(self) -> dict[str, Any]:
        """The keys `witness` and `disturbance` of an answer."""
        if self.begun is None or self.ended is None:
            lasted = self.closed - (self.begun.at if self.begun else self.started)
            return {"witness": {"wall_seconds": lasted, "cpu_seconds": self.whole_cpu_seconds, "whole_process": True}}
        cpu = self.cpu_of_call()
        return {
            "witness": {
                "wall_seconds": self.ended.at - self.begun.at,
                "cpu_seconds": self.cpu_of_tree(cpu) if cpu is not None else self.whole_cpu_seconds,
                "whole_process": cpu is None,
            },
            "disturbance": disturbance.difference(self.begun.disturbance, self.ended.disturbance),
        }

    def cpu_of_call(self) -> float | None:
        """What the kernel gave the process, and those of its children that have ended, between the two moments."""
        moments = (self.begun, self.ended)
        first, last = (moment.cpu_seconds if moment is not None else None for moment in moments)
        return last - first if first is not None and last is not None else None

    def cpu_of_tree(self, own: float) -> float:
        """What the kernel gave to all that was started for the job between the two moments, `own` to the process."""
        assert self.begun is not None
        assert self.ended is not None
        tree = own + max(0.0, self.ended.others_cpu_seconds - self.begun.others_cpu_seconds)
        if self.begun.group_cpu_seconds is not None and self.ended.group_cpu_seconds is not None:
            tree = max(tree, self.ended.group_cpu_seconds - self.begun.group_cpu_seconds)
        return tree

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
            return WITHOUT_AN_ACCOUNT_OF_WAITING
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
        allowed = (
            CPU_SECONDS_TO_ANSWER
            + CPU_SECONDS_TO_ANSWER_FOR_EACH_MERGE * (answer.get("merges_done") or 0)
            + CPU_SECONDS_TO_ANSWER_FOR_EACH_WORD * (answer.get("words") or {}).get("words", 0)
            + CPU_SECONDS_TO_GIVE_BACK_A_BYTE * self.held_bytes
            + (CPU_SECONDS_TO_TELL_OF_FEEDING if answer.get("from_file") else 0.0)
        )
        return f"it used {behind:.3f} s of CPU time when its call had returned" if behind > allowed else None


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
    """For how long a process and who watches it have been ready to run without running."""
    waited = 0
    for who in (process, "thread-self"):
        fields = disturbance.content(f"/proc/{who}/schedstat").split()
        if len(fields) < 2:
            return None
        waited += int(fields[1])
    return waited / 1e9
