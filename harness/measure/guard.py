"""The guard of one measured process: its parent, and the end of all it started.

Run as a script of one thread and few imports. It adopts orphans of the measured process (Linux's
child subreaper), so that all of them can be found and ended, and their CPU time accounted. If the
harness is gone, however it ended, the guard ends everything.

Arguments: the descriptor that the measured process inherits, and its command. The guard writes
`started PID`, and `gone STATUS CPU_SECONDS SYSTEM_SECONDS` when the process has ended. It ends
everything when its standard input is closed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import time

SET_CHILD_SUBREAPER = 36
SECONDS_TO_REAP = 3.0


def main() -> None:
    inherited, *command = sys.argv[1:]
    woken, waking = os.pipe()
    for descriptor in (woken, waking):
        os.set_blocking(descriptor, False)

    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)

    adopt_orphans()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        pass_fds=[int(inherited)],
        start_new_session=True,
    )

    leader = process.pid
    os.close(int(inherited))
    write_line(b"started %d" % leader)

    while select.select([0, woken], [], [])[0] == [woken]:
        os.read(woken, 4096)
        reap(leader)
    end_all(leader)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own; do nothing outside Linux."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def write_line(line: bytes) -> None:
    # the harness is gone, which is noticed where it is listened to
    with contextlib.suppress(OSError):
        os.write(1, line + b"\n")


def reap(leader: int) -> bool:
    """Take the accounts of those that have ended, and report the measured one; return False if no
    process is left.
    """
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == leader:
                usage = resource.getrusage(resource.RUSAGE_CHILDREN)
                write_line(
                    b"gone %d %.9f %.9f"
                    % (ended[1], usage.ru_utime + usage.ru_stime, usage.ru_stime)
                )
        return True
    return False


def end_all(leader: int) -> None:
    """End every descendant. They are halted first: what forks could outrun a guard that only
    kills.
    """
    halted: set[int] = set()
    while fresh := {-leader, *descendants(os.getpid())} - halted:
        for number in fresh:
            send(number, signal.SIGSTOP)
        halted |= fresh
    for number in halted:
        send(number, signal.SIGKILL)
    give_up = time.perf_counter() + SECONDS_TO_REAP
    while reap(leader) and time.perf_counter() < give_up:
        time.sleep(0.0005)


def send(number: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(number, what)


def descendants(process: int) -> set[int]:
    """Return the numbers of all processes below one, by the kernel's lists of children; none
    outside Linux.
    """
    numbers = [process]
    for number in numbers:  # grows while it is read
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{number}/task"):  # noqa: PTH208 - pathlib is slow to import
                with open(f"/proc/{number}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                    numbers += map(int, file.read().split())
    return set(numbers) - {process}


if __name__ == "__main__":
    main()
