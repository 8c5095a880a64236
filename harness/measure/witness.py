"""The account of a measured process: the guard's clock and the kernel's figures, taken where its call starts and ends.

The process says both moments and waits while they are noted. Its own clock must agree with the guard's, its phases must
fit into its total, and between receiving its job and starting the call, and after the call, it may use next to no CPU
time. Its CPU time and that of all it started is the kernel's word alone.
"""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.measure import disturbance
from harness.measure.guarded import Cpu, GuardedProcess

CLOCK_TOLERANCE_SECONDS = 0.005
"""The worker's clock is the guard's, and runs inside of what the guard sees."""
SECONDS_TO_NOTICE, SHARE_TO_NOTICE = 0.25, 0.02
"""The guard may see a call last so much longer, on a busy machine. It counts what it cannot explain, in any case."""
SECONDS_TO_WAKE = 0.0005
SECONDS_TO_TAKE_UP_A_JOB, SECONDS_TO_READ_A_BYTE = 0.02, 2e-7
"""The CPU time allowed between receiving the job and starting the call, and for each byte of merges inherited."""
SECONDS_TO_ANSWER, SECONDS_TO_FREE_A_BYTE, SECONDS_TO_WRITE_A_BYTE = 0.1, 1e-9, 4e-9
"""The CPU time allowed after the call, for each byte of memory held, and for each byte of a counter's words."""
SECONDS_TO_TELL_OF_FEEDING = 0.5


@dataclass(frozen=True)
class Moment:
    """The guard's clock, the kernel's account and the disturbance of the machine at one moment."""

    at: float
    cpu: Cpu
    disturbance: disturbance.Totals


@dataclass
class ProcessAccount:
    """The moments of one process; of a moment that a trainer repeats, the first start and the last end count."""

    process: GuardedProcess
    inherited_bytes: int = 0
    started_at: float = field(default_factory=time.perf_counter)
    received: Moment | None = None
    begun: Moment | None = None
    call_started_at: float | None = None
    waited_to_begin: float | None = None
    ended: Moment | None = None
    waited_to_end: float = 0.0
    held_bytes: int = 0
    closed_at: float = 0.0

    def receive(self) -> bool:
        """Note that the process is about to get its job; return False if it has it."""
        if self.received is not None:
            return False
        self.received = self.moment()
        return True

    def begin(self) -> None:
        if self.begun is None:
            self.begun = self.moment()

    def went(self, at: float) -> None:
        """Note when the process was told to go on; after it said that its call starts, that is the start."""
        if self.begun is not None and self.call_started_at is None:
            self.call_started_at = at

    def has_begun(self, waited: float) -> None:
        """Note for how long the process then waited for a processor."""
        if self.call_started_at is not None and self.waited_to_begin is None:
            self.waited_to_begin = waited

    def end(self, at: float, waited: float) -> None:
        """Note that the call has ended; the guard had `waited` for a processor when it heard."""
        self.ended, self.waited_to_end = self.moment(at), waited
        self.process.weigh(None)
        self.held_bytes = max(self.process.peak_bytes, most_bytes_of(self.process.leader))

    def moment(self, at: float | None = None) -> Moment:
        return Moment(time.perf_counter() if at is None else at, self.process.cpu(), disturbance.totals())

    @property
    def import_cpu_seconds(self) -> float:
        return self.process.cpu_seconds if self.received is None else self.received.cpu.tree

    def record(self) -> dict[str, Any]:
        """Return the keys `witness` and `disturbance` of an answer; without the latter if the call was not seen."""
        before = {"import_cpu_seconds": self.import_cpu_seconds}
        start = self.started_at if self.call_started_at is None else self.call_started_at
        if self.begun is None or self.ended is None:
            whole = {"wall_seconds": self.closed_at - start, "cpu_seconds": self.process.cpu_seconds}
            return {"witness": {**whole, "whole_process": True, **before}}
        call = {"wall_seconds": self.ended.at - start, "cpu_seconds": self.ended.cpu.tree_since(self.begun.cpu)}
        return {
            "witness": {**call, "whole_process": False, **before},
            "disturbance": disturbance.difference(self.begun.disturbance, self.ended.disturbance),
        }

    def check(self, answer: dict[str, Any]) -> str | None:
        """Set an answer's CPU time and total right; return what contradicts it, None if nothing does.

        What the guard or the process had to wait for a processor at the ends of the call is no time of the call. A rest
        that nobody can explain is counted, so a trainer that turns its clock back gains nothing.
        """
        seen = self.record()["witness"]
        answer["cpu_seconds"] = seen["cpu_seconds"]
        if self.begun is None:
            return None if answer["status"] == "timeout" else "its parent has not heard that its call began"
        least = seen["wall_seconds"] - (self.waited_to_begin or 0.0) - self.waited_to_end
        reason = contradiction(answer, seen["wall_seconds"], least) or self.hidden_work(answer)
        if answer["total"] < least - SECONDS_TO_WAKE:
            answer["total"] = least
        return reason

    def hidden_work(self, answer: dict[str, Any]) -> str | None:
        """Return how much CPU time the process used outside its call, if that is more than a job takes."""
        assert self.begun is not None
        before = 0.0 if self.received is None else self.begun.cpu.tree_since(self.received.cpu)
        allowed = SECONDS_TO_TAKE_UP_A_JOB + SECONDS_TO_READ_A_BYTE * self.inherited_bytes
        if before > allowed:
            return f"{spent(before)} between receiving the job and starting the call; {at_most(allowed)}"
        if answer["status"] == "timeout" or self.ended is None:  # its call goes on while its answer is written
            return None
        after = self.process.cpu_seconds - self.ended.cpu.leader
        words = sum((answer.get("words") or {}).get("sizes", {}).values())
        allowed = SECONDS_TO_ANSWER + SECONDS_TO_FREE_A_BYTE * self.held_bytes + SECONDS_TO_WRITE_A_BYTE * words
        allowed += SECONDS_TO_TELL_OF_FEEDING * bool(answer.get("from_file"))
        return f"{spent(after)} after its call; {at_most(allowed)}" if after > allowed else None


def contradiction(answer: dict[str, Any], wall: float, least: float) -> str | None:
    """Return what is impossible in an answer whose call its guard saw last `wall` seconds, and `least` at least.

    >>> contradiction({"total": 1.0, "seconds": {"init": 0.9}}, 1.001, 1.0)
    >>> contradiction({"total": 0.1, "seconds": {}}, 2.0, 1.9)
    'its clock shows 0.100 s, its parent saw 2.000 s pass'
    >>> contradiction({"total": 1.0, "seconds": {"init": 0.9, "max": 0.9}}, 1.0, 1.0)
    'its phases claim 1.800 s of the 1.000 s there were'
    """
    total, phases = answer["total"], sum(answer["seconds"].values())
    if phases > total + CLOCK_TOLERANCE_SECONDS:
        return f"its phases claim {phases:.3f} s of the {total:.3f} s there were"
    if total > wall + CLOCK_TOLERANCE_SECONDS or total < least - SECONDS_TO_NOTICE - SHARE_TO_NOTICE * wall:
        return f"its clock shows {total:.3f} s, its parent saw {wall:.3f} s pass"
    return None


def spent(seconds: float) -> str:
    return f"{seconds:.3f} s of CPU time"


def at_most(seconds: float) -> str:
    return f"at most {seconds:.3f} s is allowed"


def most_bytes_of(process: int | None) -> int:
    """Return the most memory that a living process has held, by the kernel; 0 if it does not say."""
    with contextlib.suppress(OSError):
        match = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
        return int(match[1]) * 1024 if match else 0
    return 0
