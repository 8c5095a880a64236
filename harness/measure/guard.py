"""The guard of one measured process: its parent, the clock beside its call, and the end of all it started.

Run as a script, small and of one thread, so that nothing of the harness delays its clock. What the measured process
starts, and lets go of, becomes the guard's own child (Linux's child subreaper), so that it can be found and ended, and
its CPU time is accounted. When the harness is gone, however it ended, the guard ends everything and removes the folder.

Arguments: the descriptors of the measured process's standard input and of both ends of its channel, its folder, the
control group's file or nothing, and the command. On descriptor 0 is the harness. It is told `started PID` or `failed
ERRNO`, then each line of the measured process behind two numbers, then `gone STATUS CPU_SECONDS`. It says `go`, to
answer the measured process, and `finish`. The numbers are the nanosecond at which a line was heard, and for how many
nanoseconds who was to hear had to wait for a processor before, as the kernel tells: the guard, or
after `go` the process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

SET_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
MOST_IN_A_LINE = 200
SECONDS_TO_END = 3.0
ANSWERED = (b"ready", b"imported", b"begin", b"end")
BEGUN = b"begun"
HARNESS = 0


class Guard:
    """What is going on: the measured process, what it said last, whether it is gone."""

    def __init__(self, channel: int, leader: int) -> None:
        self.channel = channel
        self.leader = leader
        self.heard = b""
        self.leader_cpu: float | None = None
        self.waited = 0
        self.went: tuple[int, int] | None = None
        self.listening = [HARNESS, channel]

    def attend(self, woken: int) -> bool:
        """Pass on what is said, until the harness says that it is over; False if it is gone instead."""
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
                said = os.read(HARNESS, 4096)
                if not said:
                    return False
                for line in said.split(b"\n"):
                    if line == b"finish":
                        return True
                    if line == b"go":
                        self.go()

    def hear(self, now: int) -> None:
        """Pass on what the measured process said; of a flood the last progress, and each moment once."""
        try:
            block = os.read(self.channel, 65536)
        except OSError:
            block = b""
        if not block:
            self.listening.remove(self.channel)  # it is about to be gone, or a trainer meddled
            return
        *lines, rest = (self.heard + block).split(b"\n")
        self.heard = rest[-MOST_IN_A_LINE:]
        if BEGUN in lines and self.went is not None:
            at, waited = self.went
            tell(b"%d %d %b" % (now, min(now - at, waited_ns(str(self.leader)) - waited), BEGUN))
            self.went = None
        told = {line.partition(b" ")[0]: line for line in lines if len(line) < MOST_IN_A_LINE}
        progress = [line for line in lines if line.removesuffix(b" bytes").isdigit() and len(line) < 25][-1:]
        waited = waited_ns("self") - self.waited
        for line in progress + [told[moment] for moment in ANSWERED if moment in told]:
            tell(b"%d %d %b" % (now, waited, line))

    def go(self) -> None:
        """Answer the measured process; the clock is read before, so that nothing of its call is missed."""
        waited = waited_ns(str(self.leader))
        self.went = time.perf_counter_ns(), waited
        tell(b"%d 0 went" % self.went[0])
        with contextlib.suppress(OSError):  # it does not wait
            os.write(self.channel, b".")

    def reap(self) -> None:
        """Take the accounts of those that have ended: the measured process, and what became the guard's own."""
        with contextlib.suppress(ChildProcessError):
            while True:
                ended, status, usage = os.wait4(-1, os.WNOHANG)
                if ended == 0:
                    return
                if ended == self.leader:
                    self.leader_cpu = usage.ru_utime + usage.ru_stime
                    if self.channel in self.listening:
                        self.hear(time.perf_counter_ns())
                    tell(b"gone %d %.9f" % (status, self.leader_cpu))


def waited_ns(process: str) -> int:
    """For how long a process has been ready to run without running; 0 where nothing tells."""
    try:
        with open(f"/proc/{process}/schedstat", "rb") as file:  # noqa: PTH123
            return int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def tell(line: bytes) -> None:
    with contextlib.suppress(OSError):  # the harness is gone, which is noticed where it is listened to
        os.write(HARNESS, line + b"\n")


def system_call_prctl(option: int, value: int) -> None:
    """Linux's prctl; nothing elsewhere."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def start(command: list[str], standard_input: int, channel: int, group: str) -> int:
    """Start the measured process in a session of its own; it dies with the guard."""
    reading, writing = os.pipe()
    guard = os.getpid()
    process = os.fork()
    if process == 0:
        try:
            os.setsid()
            if group:
                with contextlib.suppress(OSError), open(group, "wb", buffering=0) as members:  # noqa: PTH123
                    members.write(b"0")
            system_call_prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != guard:
                os._exit(1)
            os.dup2(standard_input, 0)
            os.set_inheritable(channel, True)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execvp(command[0], command)
        except OSError as error:
            os.write(writing, b"%d" % (error.errno or 0))
        finally:
            os._exit(127)
    os.close(writing)
    failure = os.read(reading, 16)
    os.close(reading)
    if failure:
        os.waitpid(process, 0)
        tell(b"failed " + failure)
        sys.exit(0)
    return process


def end_all() -> None:
    """End every descendant. Halted first, for what forks can outrun who only kills; the orphans of each come here."""
    halted: set[int] = set()
    while fresh := descendants() - halted:
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


def descendants() -> set[int]:
    """The numbers of all processes below this one; where there is no /proc, none beside the measured process.

    One that has ended is none of them, but its children are: for a moment they are still said to be below it.
    """
    parents, ended = {}, set()
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to import
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    fields = file.read().rpartition(b")")[2].split()
                    parents[int(name)] = int(fields[1])
                    if fields[0] in (b"Z", b"X"):
                        ended.add(int(name))
    found = {number for number, parent in parents.items() if parent == os.getpid()}
    while more := {number for number, parent in parents.items() if parent in found} - found:
        found |= more
    return found - ended


def main() -> None:
    standard_input, channel, theirs = map(int, sys.argv[1:4])
    folder, group, *command = sys.argv[4:]
    woken, waking = os.pipe()
    for descriptor in (woken, waking):
        os.set_blocking(descriptor, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    system_call_prctl(SET_CHILD_SUBREAPER, 1)
    leader = start(command, standard_input, theirs, group)
    os.close(standard_input)
    os.close(theirs)
    os.set_blocking(channel, False)  # a process that the measured one left may hold the other end, and say nothing
    guard = Guard(channel, leader)
    tell(b"started %d" % leader)
    finished = guard.attend(woken)
    if guard.leader_cpu is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    end_all()
    if not finished:  # what the harness would have removed is left to its guard
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
