"""The two witnesses of a call: the guard's clock and the kernel's account, read where the call begins and ends.

The measured process tells both moments and waits while they are noted. What it later says of itself must fit: neither
more nor less time than passed, neither more nor less CPU time than the kernel gave it, none spent behind the clock, and
before it no more than importing and being told the job take.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.measure import disturbance
from harness.measure.processes import Account, JobProcesses

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
CPU_SECONDS_TO_ANSWER_FOR_EACH_MERGE = 1e-6
CPU_SECONDS_TO_WRITE_A_BYTE = 4e-9
CPU_SECONDS_TO_GIVE_BACK_A_BYTE = 1e-9
# A trainer that reads the file says afterwards how it was fed.
CPU_SECONDS_TO_TELL_OF_FEEDING = 0.5
# Starting and importing may cost this much more than in an empty job: caches are cold, and processors shared.
TIMES_AN_EMPTY_JOB = 2.0
CPU_SECONDS_BEYOND = 0.25
CPU_SECONDS_BEYOND_FOR_A_SHORT_CALL = 0.05
# What lies between knowing the job and the call: mapping the words, reading the merges that are inherited.
CPU_SECONDS_TO_TAKE_UP_A_JOB = 0.02
CPU_SECONDS_TO_INHERIT_A_BYTE = 2e-7


@dataclass
class Moment(Account):
    """What the witnesses say at one moment."""

    at: float
    disturbance: disturbance.Totals

    @property
    def tree_cpu_seconds(self) -> float:
        """Of all that was started for the job up to now."""
        return max((self.cpu_seconds or 0.0) + self.others_cpu_seconds, self.group_cpu_seconds or 0.0)


class Before(NamedTuple):
    """The CPU time of a process until it imported what it measures, and of that import."""

    starting: float = 0.0
    importing: float = 0.0

    def disagreement(self, alone: Before, beyond: Before) -> str | None:
        """What took over twice as long as in an empty job, and `beyond`; None if neither did."""
        if self.importing > TIMES_AN_EMPTY_JOB * alone.importing + beyond.importing:
            spent = f"it used {self.importing:.3f} s of CPU time before its call"
            return f"{spent}, and importing it takes {alone.importing:.3f} s"
        if self.starting > TIMES_AN_EMPTY_JOB * alone.starting + beyond.starting:
            spent = f"it used {self.starting:.3f} s of CPU time before it was imported"
            return f"{spent}, and starting takes {alone.starting:.3f} s"
        return None


class Witness:
    """Watches one process from its start to its end."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.started = time.perf_counter()
        self.loaded: Moment | None = None
        self.told: Moment | None = None
        self.begun: Moment | None = None
        self.inherited_bytes = 0
        self.going = False
        self.waited_to_begin: float | None = None
        self.waited_to_hear = 0.0
        self.ended: Moment | None = None
        self.closed = self.started
        self.whole_cpu_seconds = 0.0
        self.held_bytes = 0
        """The most memory that its processes were seen to hold."""
        self.most_bytes = 0
        """The same, or what the kernel says was the most that the process itself held."""

    def ready(self, processes: JobProcesses) -> None:
        """The process is about to import what it measures; only the first time counts."""
        if self.loaded is None:
            self.loaded = self.moment(processes)

    def imported(self, processes: JobProcesses) -> bool:
        """The process says that it has imported its code, and is to be told its job; whether for the first time."""
        if self.told is not None:
            return False
        self.told = self.moment(processes)
        return True

    def begin(self, processes: JobProcesses) -> None:
        """The call begins; only the first time counts, for a trainer can say so as well."""
        if self.begun is None:
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
        self.ended = self.moment(processes)
        self.ended.at = at
        self.waited_to_hear = waited
        processes.weigh(None)
        self.held_bytes = processes.peak_bytes
        self.most_bytes = max(self.held_bytes, most_bytes_of(self.process))

    def close(self, cpu_seconds: float) -> None:
        """The process is gone, the kernel's account of it complete."""
        self.whole_cpu_seconds = cpu_seconds
        self.closed = time.perf_counter()

    def moment(self, processes: JobProcesses) -> Moment:
        return Moment(disturbance=disturbance.totals(), **vars(processes.account()), at=time.perf_counter())

    @property
    def before_cpu_seconds(self) -> float:
        """The CPU time of importing: until the process was told its job, or its end where that came before."""
        if self.loaded is not None and self.told is None:
            return max(0.0, self.whole_cpu_seconds - (self.loaded.cpu_seconds or 0.0))
        return cpu_of_tree(self.loaded, self.told) or 0.0

    @property
    def before(self) -> Before:
        """What went before the job was told: Python's start, with whatever a `.pth` file has it run, and the import."""
        return Before(self.loaded.tree_cpu_seconds if self.loaded is not None else 0.0, self.before_cpu_seconds)

    def work_before_the_call(self, in_empty_jobs: Iterable[Before]) -> str | None:
        """Whether the process worked before it was told its job, beyond what the same takes in an empty job.

        `in_empty_jobs` is the most that is known, and each next one is asked for only while there is doubt: an honest
        trainer is not to suffer for an empty job that was quick. A short call may have little more than itself in its
        import, or all of its work would fit there.
        """
        call = cpu_of_tree(self.begun, self.ended)
        short = max(CPU_SECONDS_BEYOND_FOR_A_SHORT_CALL, self.whole_cpu_seconds if call is None else call)
        beyond = Before(CPU_SECONDS_BEYOND, min(CPU_SECONDS_BEYOND, short))
        told = None
        for alone in in_empty_jobs:
            told = self.before.disagreement(alone, beyond)
            if told is None:
                break
        return told

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
            whole = {"wall_seconds": lasted, "cpu_seconds": self.whole_cpu_seconds, "whole_process": True}
            return {"witness": {**whole, "import_cpu_seconds": self.before_cpu_seconds}}
        cpu = cpu_of_tree(self.begun, self.ended)
        return {
            "witness": {
                "wall_seconds": self.ended.at - self.begun.at,
                "cpu_seconds": cpu if cpu is not None else self.whole_cpu_seconds,
                "whole_process": cpu is None,
                "import_cpu_seconds": self.before_cpu_seconds,
            },
            "disturbance": disturbance.difference(self.begun.disturbance, self.ended.disturbance),
        }

    def cpu_of_call(self) -> float | None:
        """What the kernel gave the process, and those of its children that have ended, while the call went on."""
        return cpu_of_process(self.begun, self.ended)

    def disagreement(self, answer: dict[str, Any]) -> str | None:
        """What speaks against an answer with a total; None if nothing does."""
        if self.begun is None:
            return None if answer["status"] == "timeout" else "its parent has not heard that its call began"
        said = self.record()["witness"]
        return (
            disagreement_of_phases(answer)
            or disagreement_of_clocks(answer["total"], said["wall_seconds"], self.unsure_seconds())
            or disagreement_of_accounts(answer["cpu_seconds"], said["cpu_seconds"], self.cpu_of_call())
            or self.work_on_the_job_before_the_call()
            # A call that was stopped has not returned: it goes on while its answer is written.
            or (None if answer["status"] == "timeout" else self.work_behind_the_clock(answer))
        )

    def work_on_the_job_before_the_call(self) -> str | None:
        """Whether the process worked between being told its job and its call, beyond what taking it up takes.

        A trainer can say by itself that it has been imported, and so hear of its job while it still is.
        """
        spent = cpu_of_tree(self.told, self.begun) or 0.0
        allowed = CPU_SECONDS_TO_TAKE_UP_A_JOB + CPU_SECONDS_TO_INHERIT_A_BYTE * self.inherited_bytes
        return f"it used {spent:.3f} s of CPU time when it knew its job, before its call" if spent > allowed else None

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
            + CPU_SECONDS_TO_WRITE_A_BYTE * sum((answer.get("words") or {}).get("sizes", {}).values())
            + CPU_SECONDS_TO_GIVE_BACK_A_BYTE * self.held_bytes
            + (CPU_SECONDS_TO_TELL_OF_FEEDING if answer.get("from_file") else 0.0)
        )
        return f"it used {behind:.3f} s of CPU time when its call had returned" if behind > allowed else None


def cpu_of_process(first: Moment | None, last: Moment | None) -> float | None:
    """What the kernel gave the process, and those of its children that have ended, between two moments."""
    if first is None or last is None or first.cpu_seconds is None or last.cpu_seconds is None:
        return None
    return last.cpu_seconds - first.cpu_seconds


def cpu_of_tree(first: Moment | None, last: Moment | None) -> float | None:
    """What the kernel gave to all that was started for the job between two moments."""
    own = cpu_of_process(first, last)
    if own is None or first is None or last is None:
        return None
    tree = own + max(0.0, last.others_cpu_seconds - first.others_cpu_seconds)
    # One that has left the group, and that nobody waited for, is known as it was last seen.
    seen = last.own_cpu_seconds - first.own_cpu_seconds + last.seen_cpu_seconds - first.seen_cpu_seconds
    tree = max(tree, seen)
    if first.group_cpu_seconds is not None and last.group_cpu_seconds is not None:
        tree = max(tree, last.group_cpu_seconds - first.group_cpu_seconds)
    return tree


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


def most_bytes_of(process: int) -> int:
    """The most memory that a process has held, as the kernel tells; it can have that forgotten."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", disturbance.content(f"/proc/{process}/status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
