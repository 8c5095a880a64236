"""A guard and the process that it guards, from the harness's side: started, spoken to, heard, ended."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.measure.control_group import ControlGroup
from harness.measure.private import PrivateFolders
from harness.measure.processes import seen_process

GUARD = str(Path(__file__).resolve().with_name("guard.py"))
SECONDS_TO_SPEAK = 3.0
SECONDS_TO_CLEAR_UP = 10.0
STDERR_TAIL_BYTES = 2000
MOST_STDERR_BYTES = 16 << 20
HALTED = (b"T", b"t")


@dataclass
class Guarded:
    """A guard, its measured process, and the lines between: what the guard tells, and what the process is told."""

    process: subprocess.Popen[bytes]
    told: socket.socket
    speaking: int
    channel: int
    leader: int | None = None
    failure: str | None = None
    exit_code: int | None = None
    cpu_seconds: float = 0.0
    is_gone: bool = False
    """Whether the guard ended before the harness let it: a trainer may have ended it, or the kernel for memory."""
    _rest: bytes = b""

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        private: PrivateFolders,
        group: ControlGroup,
        stderr: BinaryIO,
        passed: tuple[int, ...] = (),
    ) -> Guarded:
        """Start a guard and its process, which also gets the descriptors `passed`."""
        ours, guards = socket.socketpair()
        near, far = socket.socketpair()
        hearing, speaking = os.pipe()
        arguments = [hearing, near.fileno(), far.fileno(), private.path, group.members or "", *command]
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
        os.set_blocking(speaking, True)
        guarded = cls(process, ours, speaking, channel)
        while guarded.leader is None and guarded.failure is None and guarded.exit_code is None:
            for line in guarded.lines():
                guarded.take(line)
        return guarded

    def __enter__(self) -> Guarded:
        return self

    def __exit__(self, *error: object) -> None:
        """Wait until the guard has ended everything; it ends all by itself when the line to it is cut."""
        self.told.close()
        os.close(self.speaking)
        self.go_on()
        try:
            self.process.wait(SECONDS_TO_CLEAR_UP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def lines(self) -> list[bytes]:
        """What the guard has told; none when it is gone, which takes its process with it."""
        block = self.told.recv(65536)
        if not block:
            self.is_gone = True
            self.exit_code = -signal.SIGKILL if self.exit_code is None else self.exit_code
        *lines, self._rest = (self._rest + block).split(b"\n")
        return lines

    def take(self, line: bytes) -> None:
        """Note how the process began or ended."""
        what, *figures = line.split(b" ")
        if what == b"started":
            self.leader = int(figures[0])
        elif what == b"failed":
            self.failure = os.strerror(int(figures[0]))
        elif what == b"gone":
            self.exit_code = os.waitstatus_to_exitcode(int(figures[0]))
            self.cpu_seconds = float(figures[1])

    def is_halted(self) -> bool:
        """Whether somebody has halted the guard: it is in a session of its own, where no key of a terminal does."""
        seen = seen_process(self.process.pid)
        return seen is not None and seen.state in HALTED

    def go_on(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)

    def say(self, line: bytes) -> None:
        with contextlib.suppress(OSError):  # it is gone, which is noticed where it is listened to
            self.told.send(line + b"\n")

    def speak(self, line: bytes) -> None:
        """To the measured process; one that does not listen hears as much as a pipe holds."""
        os.set_blocking(self.speaking, False)
        give_up = time.perf_counter() + SECONDS_TO_SPEAK
        while line and time.perf_counter() < give_up:
            with contextlib.suppress(BlockingIOError):
                line = line[os.write(self.speaking, line) :]
                continue
            if self.exit_code is not None:
                return
            select.select([], [self.speaking], [], 0.01)


def tell(guarded: Guarded, line: str) -> None:
    """Send the measured process a line; one that is gone by now needs none."""
    with contextlib.suppress(BrokenPipeError):
        guarded.speak(line.encode() + b"\n")


def tail(file: BinaryIO) -> str:
    """The end of what was printed, however much that was; through the open file, for its name may be gone."""
    size = os.fstat(file.fileno()).st_size
    kept = min(size, STDERR_TAIL_BYTES)
    return os.pread(file.fileno(), kept, size - kept).decode(errors="replace")


def shorten(file: BinaryIO) -> None:
    """Keep the end of what was printed, where it would fill the disk."""
    if os.fstat(file.fileno()).st_size > MOST_STDERR_BYTES:
        end = tail(file).encode()
        file.truncate(0)
        file.write(end)
