"""The guard of one measured process: its parent, the clock beside its call, and the end of all it started.

Run as a script of one thread and few imports, so nothing of the harness delays its clock. It adopts orphans of the
measured process (Linux's child subreaper), so that all of them can be found and ended, and their CPU time accounted. If
the harness is gone, however it ended, the guard ends everything and removes the folder.

Arguments: the descriptors of the measured process's standard input and of both ends of its channel, its folder, the
command. On descriptor 0 is the harness. The guard writes `started PID` or `failed ERRNO`, each line of the measured
process after two numbers, when it was heard and for how long the guard had waited for a processor (both in
nanoseconds), and `gone STATUS CPU_SECONDS`. The harness writes `go` to answer the measured process, and `finish`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

SET_CHILD_SUBREAPER = 36
MOST_IN_A_LINE = 200
SECONDS_TO_END = 3.0
ANSWERED = (b"imported", b"begin", b"end")
BEGUN = b"begun"
HARNESS = 0


class Guard:
    """The measured process while the guard listens to it and to the harness."""

    def __init__(self, channel: int, leader: int) -> None:
        self.channel = channel
        self.leader = leader
        self.rest = b""
        self.is_gone = False
        self.waited = 0
        self.answered: tuple[int, int] | None = None
        """When the measured process was last answered, and for how long it had waited for a processor by then."""
        self.listening = [HARNESS, channel]

    def attend(self, woken: int) -> bool:
        """Pass lines on; return True if the harness writes that it is over, False if it is gone."""
        while True:
            self.waited = waited_ns("self")
            ready = select.select([*self.listening, woken], [], [])[0]
            now = time.perf_counter_ns()
            if self.channel in ready:
                self.hear(now)
            if woken in ready:
                os.read(woken, 4096)
                self.reap()
            if HARNESS in ready:
                lines = read(HARNESS).split(b"\n")
                if b"finish" in lines or lines == [b""]:
                    return b"finish" in lines
                if b"go" in lines:
                    self.go()

    def hear(self, now: int) -> None:
        """Pass on what the measured process writes; of a flood the last progress, and each moment once."""
        block = read(self.channel)
        if not block:
            self.listening.remove(self.channel)  # it is about to be gone, or a trainer meddled
        *lines, rest = (self.rest + block).split(b"\n")
        self.rest = rest[-MOST_IN_A_LINE:]
        if BEGUN in lines and self.answered is not None:
            at, waited = self.answered
            tell(b"%d %d %b" % (now, min(now - at, waited_ns(str(self.leader)) - waited), BEGUN))
            self.answered = None
        moments = {line.partition(b" ")[0]: line for line in lines if len(line) < MOST_IN_A_LINE}
        progress = [line for line in lines if line.removesuffix(b" bytes").isdigit() and len(line) < 25][-1:]
        waited = waited_ns("self") - self.waited
        for line in progress + [moments[name] for name in ANSWERED if name in moments]:
            tell(b"%d %d %b" % (now, waited, line))

    def go(self) -> None:
        """Answer the measured process; the clock is read before, so nothing of its call is missed."""
        waited = waited_ns(str(self.leader))
        self.answered = time.perf_counter_ns(), waited
        tell(b"%d 0 went" % self.answered[0])
        with contextlib.suppress(OSError):  # it does not wait
            os.write(self.channel, b".")

    def reap(self) -> None:
        """Take the accounts of those that have ended: the measured process, and orphans."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                number, status, usage = ended
                if number == self.leader:
                    self.is_gone = True
                    if self.channel in self.listening:
                        self.hear(time.perf_counter_ns())
                    tell(b"gone %d %.9f" % (status, usage.ru_utime + usage.ru_stime))


def read(descriptor: int) -> bytes:
    """Return what is to be read; nothing if the other end is gone, also with something unread."""
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def waited_ns(process: str) -> int:
    """Return for how long a process has been ready to run without running; 0 if the system does not say."""
    try:
        with open(f"/proc/{process}/schedstat", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def tell(line: bytes) -> None:
    with contextlib.suppress(OSError):  # the harness is gone, which is noticed where it is listened to
        os.write(HARNESS, line + b"\n")


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own; do nothing outside Linux."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_all() -> None:
    """End every descendant. They are halted first: what forks could outrun a guard that only kills."""
    halted: set[int] = set()
    while fresh := descendants(os.getpid()) - halted:
        for number in fresh:
            send(number, signal.SIGSTOP)
        halted |= fresh
    for number in halted:
        send(number, signal.SIGKILL)
    give_up = time.perf_counter() + SECONDS_TO_END
    with contextlib.suppress(ChildProcessError):
        while time.perf_counter() < give_up:
            if os.wait4(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.0005)


def send(number: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(number, what)


def descendants(process: int) -> set[int]:
    """Return the numbers of all processes below one, by the kernel's lists of children; none outside Linux."""
    numbers = [process]
    for number in numbers:  # grows while it is read
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{number}/task"):  # noqa: PTH208 - pathlib is slow to import
                with open(f"/proc/{number}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                    numbers += map(int, file.read().split())
    return set(numbers) - {process}


def main() -> None:
    standard_input, channel, theirs = map(int, sys.argv[1:4])
    folder, *command = sys.argv[4:]
    woken, waking = os.pipe()
    for descriptor in (woken, waking):
        os.set_blocking(descriptor, False)
    for descriptor in (standard_input, channel):
        os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    adopt_orphans()
    try:
        process = subprocess.Popen(command, stdin=standard_input, close_fds=False, start_new_session=True)
    except OSError as error:
        tell(b"failed %d" % (error.errno or 0))
        return
    leader = process.pid
    os.close(standard_input)
    os.close(theirs)
    os.set_blocking(channel, False)  # a process that the measured one left may hold the other end, and say nothing
    tell(b"started %d" % leader)
    guard = Guard(channel, leader)
    finished = guard.attend(woken)
    if not guard.is_gone:
        send(-leader, signal.SIGKILL)
    end_all()
    if not finished:  # what the harness would have removed is left to its guard
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
