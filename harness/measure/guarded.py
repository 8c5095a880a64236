"""A measured process from the harness's side: started below a guard, listened to, watched and ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import psutil

from harness.measure import guard

SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_SPEAK = 3.0
SECONDS_TO_END = 3.0
SECONDS_TO_CLEAR_UP = 10.0
STDERR_TAIL_BYTES = 2000
MOST_STDERR_BYTES = 16 << 20
SHARE_OF_TIME_FOR_SHARES = 0.02
"""Asking for shares of memory may take this part of the time: while the kernel answers, a process cannot map memory."""


class Cpu(NamedTuple):
    """CPU seconds up to a moment: of the measured process with its children that ended, and of all that it started."""

    leader: float
    tree: float


@dataclass
class GuardedProcess:
    """A guard, its measured process and all that this has started; a context that ends everything."""

    guard: subprocess.Popen[bytes]
    heard: socket.socket
    speaking: int
    channel: int
    stderr: BinaryIO
    leader: int | None = None
    failure: str | None = None
    exit_code: int | None = None
    cpu_seconds: float = 0.0
    is_guard_gone: bool = False
    """Whether the guard ended before the harness let it: a trainer may have ended it, or the kernel for memory."""
    members: list[psutil.Process] = field(default_factory=list)
    peak_bytes: int = 0
    several: bool = False
    _shares_again_at: float = 0.0
    _rest: bytes = b""

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path,
        stderr: BinaryIO,
        passed: tuple[int, ...] = (),
    ) -> GuardedProcess:
        """Start a guard and its process, which also gets the descriptors `passed`; the guard may remove `folder`."""
        ours, guards = socket.socketpair()
        near, far = socket.socketpair()
        hearing, speaking = os.pipe()
        inherited = [hearing, near.fileno(), far.fileno()]
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *map(str, inherited), str(folder), *command],
                stdin=guards.fileno(),
                stdout=stderr.fileno(),
                stderr=stderr.fileno(),
                pass_fds=[*inherited, *passed],
                start_new_session=True,
                env=dict(environment),
            )
        except BaseException:
            ours.close()
            os.close(speaking)
            raise
        finally:
            channel = far.fileno()
            for side in (guards, near, far):
                side.close()
            os.close(hearing)
        os.set_blocking(speaking, False)
        started = cls(process, ours, speaking, channel, stderr)
        while started.leader is None and started.failure is None and started.exit_code is None:
            for line in started.lines():
                started.take(line)
        return started

    def __enter__(self) -> GuardedProcess:
        return self

    def __exit__(self, *error: object) -> None:
        """Wait until the guard has ended everything; it does so if the line to it is cut."""
        self.heard.close()
        os.close(self.speaking)
        self.guard.send_signal(signal.SIGCONT)
        try:
            self.guard.wait(SECONDS_TO_CLEAR_UP)
        except subprocess.TimeoutExpired:
            self.guard.kill()
            self.guard.wait()

    def wait(self, seconds: float) -> list[bytes]:
        """Return what the measured process writes within so many seconds, each line after the guard's two numbers."""
        lines = self.lines() if select.select([self.heard], [], [], max(0.0, seconds))[0] else []
        for line in lines:
            if not line[:1].isdigit():
                self.take(line)
        return [line for line in lines if line[:1].isdigit()]

    def lines(self) -> list[bytes]:
        """Return what the guard writes; nothing if it is gone: then its process is ended here."""
        block = b""
        with contextlib.suppress(ConnectionError):
            block = self.heard.recv(65536)
        if not block:
            self.is_guard_gone = True
            self.failure = self.failure or "its guard has ended"
            self.kill_members()
            self.exit_code = -signal.SIGKILL if self.exit_code is None else self.exit_code
        *lines, self._rest = (self._rest + block).split(b"\n")
        return lines

    def take(self, line: bytes) -> None:
        """Note how the process started or ended."""
        what, *figures = line.split(b" ")
        if what == b"started":
            self.leader = int(figures[0])
        elif what == b"failed":
            self.failure = os.strerror(int(figures[0]))
        elif what == b"gone":
            self.exit_code = os.waitstatus_to_exitcode(int(figures[0]))
            self.cpu_seconds = float(figures[1])

    def say(self, line: bytes) -> None:
        """Write a line to the guard."""
        with contextlib.suppress(OSError):  # it is gone, which is noticed where it is listened to
            self.heard.send(line + b"\n")

    def speak(self, line: str) -> None:
        """Write a line to the measured process; one that does not read gets as much as a pipe holds."""
        rest, give_up = line.encode() + b"\n", time.perf_counter() + SECONDS_TO_SPEAK
        with contextlib.suppress(BrokenPipeError):
            while rest and time.perf_counter() < give_up:
                if select.select([], [self.speaking], [], SECONDS_BETWEEN_LOOKS)[1]:
                    rest = rest[os.write(self.speaking, rest) :]

    def look(self, memory_bytes: int | None = None) -> bool:
        """Look at all processes, and cut what they print; return whether they hold more memory than a limit."""
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
                numbers = {child.pid for child in psutil.Process(self.guard.pid).children(recursive=True)}
        if numbers:
            known = {member.pid: member for member in self.members}
            self.members = [member for number in numbers if (member := known.get(number) or process_of(number))]

    def weigh(self, limit: int | None) -> bool:
        """Note the memory that the processes hold together; return whether that is over the limit.

        Pages that several processes share are divided among them, which takes the kernel long to count. Counting them
        for each process is quick and gives no less, so it will do within the limit if shares were counted of late.
        """
        sizes = [size for member in self.members if (size := resident_bytes(member))]
        total = sum(sizes)
        if len(sizes) > 1:
            self.several = True
            now = time.perf_counter()
            if now < self._shares_again_at and (limit is None or total <= limit):
                return False
            total = sum(map(shared_out_bytes, self.members))
            self._shares_again_at = now + (time.perf_counter() - now) / SHARE_OF_TIME_FOR_SHARES
        self.peak_bytes = max(self.peak_bytes, total)
        return limit is not None and total > limit

    def cpu(self) -> Cpu:
        """Return the kernel's account of all processes."""
        self.find_members()
        leader = sum(cpu_seconds(self.leader))
        _, of_orphans = cpu_seconds(self.guard.pid)
        return Cpu(
            leader,
            leader + of_orphans + sum(sum(cpu_seconds(each.pid)) for each in self.members if each.pid != self.leader),
        )

    def kill(self) -> None:
        """End the measured process and what it started, as far as the harness sees it; take its account."""
        give_up = time.perf_counter() + SECONDS_TO_END
        self.kill_members()
        while self.exit_code is None and time.perf_counter() < give_up:
            self.guard.send_signal(signal.SIGCONT)
            self.wait(SECONDS_BETWEEN_LOOKS)
        self.say(b"finish")

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


def process_of(number: int) -> psutil.Process | None:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(number)
    return None


def cpu_seconds(process: int | None) -> tuple[float, float]:
    """Return the CPU seconds of a process, to the nanosecond on Linux, and of its children that it waited for."""
    try:
        times = psutil.Process(process).cpu_times()
    except psutil.Error:
        return 0.0, 0.0
    own, of_children = times.user + times.system, times.children_user + times.children_system
    if sys.platform == "linux" and process is not None:
        with contextlib.suppress(OSError):
            own = time.clock_gettime((~process << 3) | 2)  # the number of another process's clock
    return own, of_children


def resident_bytes(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def shared_out_bytes(process: psutil.Process) -> int:
    """Return the memory of a process, of pages that it shares only its part."""
    with contextlib.suppress(psutil.Error):
        memory = process.memory_full_info()
        return int(getattr(memory, "pss", memory.uss))
    return 0
