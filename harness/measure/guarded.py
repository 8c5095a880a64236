"""A measured process from the harness's side: started below a guard, spoken to, heard, watched and ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import psutil

GUARD = str(Path(__file__).resolve().with_name("guard.py"))
CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_SPEAK = 3.0
SECONDS_TO_END = 3.0
SECONDS_TO_CLEAR_UP = 10.0
STDERR_TAIL_BYTES = 2000
MOST_STDERR_BYTES = 16 << 20
SHARE_OF_TIME_FOR_SHARES = 0.02
"""Asking for shares of memory may take this part of the time: while the kernel answers, a process cannot map memory."""


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
    _spent: dict[psutil.Process, float] = field(default_factory=dict)
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
        arguments = [hearing, near.fileno(), far.fileno(), folder, *command]
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", GUARD, *map(str, arguments)],
                bufsize=0,
                stdin=guards.fileno(),
                stdout=stderr.fileno(),
                stderr=stderr.fileno(),
                pass_fds=[hearing, near.fileno(), far.fileno(), *passed],
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

    def wait(self, seconds: float) -> Iterator[bytes]:
        """Yield what the measured process says within so many seconds, each line behind the guard's two numbers."""
        if select.select([self.heard], [], [], max(0.0, seconds))[0]:
            for line in self.lines():
                if line[:1].isdigit():
                    yield line
                else:
                    self.take(line)

    def lines(self) -> list[bytes]:
        """Return what the guard tells; nothing if it is gone, which takes its process with it."""
        block = b""
        with contextlib.suppress(ConnectionError):
            block = self.heard.recv(65536)
        if not block:
            self.is_guard_gone = True
            self.failure = self.failure or "its guard has ended"
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

    def is_guard_halted(self) -> bool:
        """Return whether somebody has halted the guard: its session is its own, so no key of a terminal does."""
        with contextlib.suppress(psutil.Error):
            return bool(psutil.Process(self.guard.pid).status() == psutil.STATUS_STOPPED)
        return False

    def say(self, line: bytes) -> None:
        """Tell the guard something."""
        with contextlib.suppress(OSError):  # it is gone, which is noticed where it is listened to
            self.heard.send(line + b"\n")

    def speak(self, line: str) -> None:
        """Tell the measured process a line; one that does not listen hears as much as a pipe holds."""
        left, give_up = line.encode() + b"\n", time.perf_counter() + SECONDS_TO_SPEAK
        with contextlib.suppress(BrokenPipeError):
            while left and time.perf_counter() < give_up:
                if select.select([], [self.speaking], [], SECONDS_BETWEEN_LOOKS)[1]:
                    left = left[os.write(self.speaking, left) :]

    def look(self, memory_bytes: int | None = None) -> bool:
        """Look at all processes, and cut what they print; return whether they hold more memory than a limit."""
        self.find_members()
        if os.fstat(self.stderr.fileno()).st_size > MOST_STDERR_BYTES:
            end = self.tail().encode()
            self.stderr.truncate(0)
            self.stderr.write(end)
        return self.weigh(memory_bytes)

    def find_members(self) -> None:
        """Find the processes below the guard, and note what each has used: some end without an account."""
        found = descendants(self.guard.pid)
        # Those of a guard that is gone are nobody's any more.
        self.members = found or [member for member in self.members if member.is_running()]
        for member in self.members:
            if member.pid != self.leader:
                with contextlib.suppress(psutil.Error):
                    self._spent[member] = sum(member.cpu_times()[:2])

    def weigh(self, limit: int | None) -> bool:
        """Note the memory that the processes hold together; return whether that is over the limit.

        Pages that several processes share are divided among them, which takes the kernel long to count. Counting them
        for each process is quick and gives no less, so it will do within the limit if shares were counted of late.
        """
        held = [size for size in map(resident_bytes, self.members) if size]
        total = sum(held)
        if len(held) > 1:
            self.several = True
            now = time.perf_counter()
            if now < self._shares_again_at and (limit is None or total <= limit):
                return False
            total = sum(map(shared_out_bytes, self.members))
            self._shares_again_at = now + (time.perf_counter() - now) / SHARE_OF_TIME_FOR_SHARES
        self.peak_bytes = max(self.peak_bytes, total)
        return limit is not None and total > limit

    def cpu(self) -> Cpu:
        """Return what the kernel says that all processes have used."""
        self.find_members()
        leader, of_children = cpu_seconds(self.leader)
        _, of_orphans = cpu_seconds(self.guard.pid)
        living = sum(sum(cpu_seconds(member.pid)) for member in self.members if member.pid != self.leader)
        whole = leader + of_children
        return Cpu(whole, whole + living + of_orphans, leader + sum(self._spent.values()))

    def kill(self) -> None:
        """End the measured process and what it started, as far as the harness sees it; take its account."""
        assert self.leader is not None
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, signal.SIGKILL)
        give_up = time.perf_counter() + SECONDS_TO_END
        while self.exit_code is None and time.perf_counter() < give_up:
            if self.is_guard_halted():  # then it cannot end them itself
                self.kill_members()
                self.guard.send_signal(signal.SIGCONT)
            list(self.wait(SECONDS_BETWEEN_LOOKS))
        if self.is_guard_gone:
            self.kill_members()
        self.say(b"finish")

    def kill_members(self) -> None:
        self.find_members()
        for member in self.members:
            with contextlib.suppress(psutil.Error):
                member.kill()

    def tail(self) -> str:
        """Return the end of what was printed; through the open file, for its name may be gone."""
        size = os.fstat(self.stderr.fileno()).st_size
        length = min(size, STDERR_TAIL_BYTES)
        return os.pread(self.stderr.fileno(), length, size - length).decode(errors="replace")


@dataclass(frozen=True)
class Cpu:
    """CPU seconds up to a moment: of the measured process with its children that ended, and of all it started.

    `seen` is what each process was seen to have used: a child that nobody waits for is in no account.
    """

    leader: float
    tree: float
    seen: float

    def tree_since(self, before: Cpu) -> float:
        return max(self.tree - before.tree, self.seen - before.seen)


def descendants(process: int) -> list[psutil.Process]:
    """Return the living processes below one: by the kernel's lists of children, a tenth of the cost of psutil's way."""
    found: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        if not CHILDREN.exists():
            return list(psutil.Process(process).children(recursive=True))
    numbers = [process]
    for number in numbers:  # grows while it is read
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{number}/task").iterdir():
                numbers += map(int, (thread / "children").read_text().split())
    for number in numbers[1:]:
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(number))
    return found


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
