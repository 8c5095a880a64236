"""A measured process from the harness's side: started below a guard, listened to, watched and
ended.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import psutil

from harness.measure import guard
from harness.measure.machine import content
from harness.worker import CHANNEL

SECONDS_FOR_THE_GUARD = 10.0
STDERR_TAIL_BYTES = 2000
MOST_STDERR_BYTES = 16 << 20
SHARE_OF_TIME_FOR_SHARES = 0.02
"""Asking for shares of memory may take this part of the time: while the kernel answers, a process
cannot map memory.
"""


class Cpu(NamedTuple):
    """CPU seconds up to a moment, and the part of them that the kernel worked."""

    total: float = 0.0
    system: float = 0.0


class Turns(NamedTuple):
    """Seconds for which a thread ran, and for which it waited for a CPU; 0 if the system does
    not report them.
    """

    ran: float = 0.0
    waited: float = 0.0


class WatchedProcess:
    """A guard, its process and all that this has started; a context that ends everything.

    `leader` is the number of the process; None if it could not be started.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], stderr: BinaryIO
    ) -> None:
        self.stderr = stderr
        self.leader: int | None = None
        self.exit_code: int | None = None
        self.used = Cpu()
        """What all processes that have ended have used, when the measured one ended."""
        self.is_guard_gone = False
        """Whether the guard ended before the harness let it: a trainer may have ended it, or the
        kernel for memory.
        """

        self.members: list[psutil.Process] = []
        self.peak_bytes = 0
        self.is_sampled = sys.platform != "linux"
        """Whether the peak of memory is of looks, and not the kernel's."""
        self.heard_at, self.late = time.perf_counter(), 0.0
        """When the harness listened last, and for how long something may have waited to be
        heard.
        """
        self._shares_again_at = 0.0

        self.line, theirs = socket.socketpair()
        with theirs:
            channel = theirs.fileno()
            self.guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, str(channel), *command],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                pass_fds=[channel],
                start_new_session=True,
                env={**environment, CHANNEL: str(channel)},
            )
        assert self.guard.stdin is not None
        assert self.guard.stdout is not None

        self.lifeline, self.reports = self.guard.stdin, self.guard.stdout
        self.listening: list[Any] = [self.reports, self.line]
        self.take_report()

    def __enter__(self) -> WatchedProcess:
        return self

    def __exit__(self, *error: object) -> None:
        """End the process and all that it started, and take its last account."""
        self.kill_members()
        self.lifeline.close()
        self.guard.send_signal(signal.SIGCONT)
        try:
            self.guard.wait(SECONDS_FOR_THE_GUARD)
        except subprocess.TimeoutExpired:
            self.guard.kill()
            self.guard.wait()
        if self.leader is not None and self.exit_code is None:
            self.take_report()
        self.line.close()
        self.reports.close()

    def take_report(self) -> None:
        """Note how the process started or ended, or that its guard is gone: then the process is
        ended here.
        """
        what, *figures = self.reports.readline().split() or [b""]
        if what == b"started":
            self.leader = int(figures[0])
        elif what == b"gone":
            self.exit_code = os.waitstatus_to_exitcode(int(figures[0]))
            self.used = Cpu(*map(float, figures[1:]))
        else:
            self.is_guard_gone = True
            self.kill_members()
            self.exit_code = -signal.SIGKILL

    def listen(self, seconds: float) -> bytes:
        """Return what the process writes within so many seconds; take what the guard reports."""
        waited = turns_of("thread-self").waited
        self.late = time.perf_counter() - self.heard_at
        ready = select.select(self.listening, [], [], 0)[0]
        if not ready:  # what comes from now on has waited only while this thread waited for a CPU
            ready = select.select(self.listening, [], [], max(0.0, seconds))[0]
            self.late = turns_of("thread-self").waited - waited
        self.heard_at = time.perf_counter()

        block = b""
        if self.line in ready:
            with contextlib.suppress(ConnectionError):
                block = self.line.recv(1 << 16)
            if not block:  # it is about to be gone, or a trainer meddled
                self.listening.remove(self.line)
        if self.reports in ready:
            self.take_report()
        return block

    def reply(self) -> None:
        """Let a process go on that waits for it."""
        with contextlib.suppress(OSError):  # it does not wait, or is gone
            self.line.send(b".", socket.MSG_DONTWAIT)

    def look(self, memory_bytes: int | None = None) -> bool:
        """Look at all processes, and cut what they print; return whether they hold more memory than
        a limit.
        """
        self.guard.send_signal(signal.SIGCONT)  # a trainer may have halted it
        if os.fstat(self.stderr.fileno()).st_size > MOST_STDERR_BYTES:
            end = self.tail().encode()
            self.stderr.truncate(0)
            self.stderr.write(end)
        self.find_members()
        return self.weigh(memory_bytes)

    def find_members(self) -> None:
        """Find the processes below the guard; those of a guard that is gone stay as they were."""
        numbers = guard.descendants(self.guard.pid)
        if sys.platform != "linux":  # where psutil's way takes ten times as long
            with contextlib.suppress(psutil.Error):
                numbers = {
                    child.pid for child in psutil.Process(self.guard.pid).children(recursive=True)
                }
        if numbers:
            self.members = []
            for number in numbers:
                with contextlib.suppress(psutil.Error):
                    self.members.append(psutil.Process(number))

    def weigh(self, limit: int | None) -> bool:
        """Note the memory that the processes hold together; return whether that is over the limit.

        The kernel knows the peak of one process. Pages that several share are divided among them,
        which takes it long to count. Counting them for each process is quick and gives no less, so
        it will do within the limit if shares were counted of late.
        """
        sizes = [size for member in self.members if (size := memory_of(member))]
        total = sum(sizes)
        peak = re.search(
            r"^VmHWM:\s+(\d+) kB$", content(f"proc/{self.leader}/status"), re.MULTILINE
        )
        if len(sizes) > 1:
            self.is_sampled = True
            now = time.perf_counter()
            if now < self._shares_again_at and (limit is None or total <= limit):
                return False
            total = sum(memory_of(member, shared_out=True) for member in self.members)
            self._shares_again_at = now + (time.perf_counter() - now) / SHARE_OF_TIME_FOR_SHARES
        self.peak_bytes = max(self.peak_bytes, total, 1024 * int(peak[1]) if peak else 0)
        return limit is not None and total > limit

    def cpu(self) -> Cpu:
        """Return what the process and all that it started have used, by the kernel's account."""
        self.find_members()
        used = [cpu_of(self.guard.pid, children_only=True)]
        used += [cpu_of(member.pid) for member in self.members]
        return Cpu(*map(sum, zip(*used, strict=True)))

    def turns(self) -> Turns:
        """Return how the main thread of the process has shared the CPUs; its call runs
        there.
        """
        return turns_of(str(self.leader))

    def faults_of_children(self) -> list[str]:
        """Return the page faults of the processes that it started and that have ended; every
        process has some, while its CPU time may be less than the kernel's unit.
        """
        return content(f"proc/{self.leader}/stat").rpartition(")")[2].split()[8:9]

    def kill_members(self) -> None:
        """End the measured process's group, and all that was seen below the guard."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.leader is not None and self.exit_code is None:
                os.killpg(self.leader, signal.SIGKILL)
        for member in self.members:
            with contextlib.suppress(psutil.Error):
                member.kill()

    def tail(self) -> str:
        """Return the end of what was printed; through the open file, for its name may be gone."""
        size = os.fstat(self.stderr.fileno()).st_size
        length = min(size, STDERR_TAIL_BYTES)
        return os.pread(self.stderr.fileno(), length, size - length).decode(errors="replace")


def cpu_of(process: int, *, children_only: bool = False) -> Cpu:
    """Return what a process and its children that it waited for have used; to the nanosecond on
    Linux, in total.
    """
    with contextlib.suppress(psutil.Error):
        times = psutil.Process(process).cpu_times()
        total, system = times.children_user + times.children_system, times.children_system
        if not children_only:
            seconds = times.user + times.system
            if sys.platform == "linux":
                with contextlib.suppress(OSError):
                    # the number of another process's clock
                    seconds = time.clock_gettime((~process << 3) | 2)
            total, system = total + seconds, system + times.system
        return Cpu(total, system)
    return Cpu()


def memory_of(process: psutil.Process, *, shared_out: bool = False) -> int:
    """Return the memory of a process; of pages that it shares only its part, if they are to be
    `shared_out`.
    """
    with contextlib.suppress(psutil.Error):
        memory = process.memory_full_info() if shared_out else process.memory_info()
        return int(getattr(memory, "pss", memory.uss) if shared_out else memory.rss)
    return 0


def turns_of(task: str) -> Turns:
    """Return how a thread has shared the CPUs with others, by the kernel's account."""
    with contextlib.suppress(OSError, ValueError):
        ran, waited, _ = Path(f"/proc/{task}/schedstat").read_text().split()
        return Turns(int(ran) / 1e9, int(waited) / 1e9)
    return Turns()
