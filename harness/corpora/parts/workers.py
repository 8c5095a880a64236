"""The workers on this machine: one process has imported what they need, and a worker is split off it for each core.

That process is split off the one that Dask is in (cluster.py), before that has threads, and waits for the address of a
scheduler. It replaces workers that were killed, and ends with whoever started it. If it is killed itself,

    python -m harness.corpora.parts.workers NUMBER FOLDER

does the same, and is told the address on standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import select
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.parts.engine import SECONDS_TO_CONNECT, last_line

SECONDS_BETWEEN_LOOKS = 0.2
MOST_FAILURES = 10
"""How many workers may end by themselves, which none should, before it is clear that all will."""
INNOCENT = 1_000_000
"""How often a worker may end while it has a task before Dask gives the task up: it is other tasks that end workers."""
SETTINGS = {
    "distributed.scheduler.allowed-failures": INNOCENT,
    "distributed.comm.timeouts.connect": SECONDS_TO_CONNECT,
    "distributed.worker.profile.enabled": False,
}


def imported() -> Any:
    """Dask's `distributed`, and all else that this process and those split off it need, kept silent."""
    gc.disable()  # nothing of what is imported is garbage
    logging.disable()
    warnings.simplefilter("ignore")
    import dask
    import distributed

    import harness.corpora.parts.tasks  # noqa: F401 - what workers will be asked to do

    dask.config.set(SETTINGS)
    gc.freeze()
    gc.enable()
    return distributed


class Workers:
    """As many workers as there should be, for as long as the block lasts."""

    def __init__(self, number: int, folder: str, forget: Callable[[], None]) -> None:
        """`folder` is for files of their own; `forget` closes what only this process should have open."""
        self.number = number
        self.folder = folder
        self.forget = forget
        self.address = ""
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the workers are there
        self.process, self.input = self.split_off()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.input)
        with contextlib.suppress(ChildProcessError):  # it was killed, and has been waited for
            os.waitpid(self.process, 0)
        self.errors.close()

    def split_off(self) -> tuple[int, int]:
        """Fork the process that workers are split off; returns it, and what it reads from."""
        reading, writing = os.pipe()
        process = os.fork()
        if process:
            os.close(reading)
            return process, writing
        code = 1
        try:
            os.close(writing)
            self.forget()
            os.dup2(reading, 0)
            os.dup2(self.errors.fileno(), 2)
            code = replaced_when_killed(self.number, self.folder)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def start(self) -> tuple[int, int]:
        """Start that process anew, which takes its time: there are threads here by now, and forks would have none."""
        reading, writing = os.pipe()
        command = [sys.executable, "-m", "harness.corpora.parts.workers", str(self.number), self.folder]
        descriptors = [(os.POSIX_SPAWN_DUP2, reading, 0), (os.POSIX_SPAWN_DUP2, self.errors.fileno(), 2)]
        process = os.posix_spawn(sys.executable, command, os.environ, file_actions=descriptors)
        os.close(reading)
        return process, writing

    def serve(self, address: str) -> None:
        """Have them work for a scheduler."""
        self.address = address
        with contextlib.suppress(BrokenPipeError):  # it was killed already, and is looked after
            os.write(self.input, f"{address}\n".encode())

    def look_after(self) -> None:
        """Begin anew if the process that replaces workers was killed itself. Raises Refusal if it cannot work."""
        ended, status = os.waitpid(self.process, os.WNOHANG)
        if not ended:
            return
        if (code := os.waitstatus_to_exitcode(status)) > 0:
            said = last_line(self.errors, code)
            raise Refusal(f"workers cannot be started on this machine ({said})", UNMEASURED)
        os.close(self.input)
        self.process, self.input = self.start()
        self.serve(self.address)


def replaced_when_killed(number: int, folder: str) -> int:
    """Have so many workers serve the scheduler that standard input names, until that ends; returns an exit code."""
    running: set[int] = set()
    failures = 0
    try:
        with open(0, closefd=False) as given:
            address = given.readline().strip()
        while address and failures < MOST_FAILURES:
            while len(running) < number:
                running.add(split_off(address, folder))
            if select.select([0], [], [], SECONDS_BETWEEN_LOOKS)[0]:
                failures = 0
                break
            for worker in list(running):
                ended, status = os.waitpid(worker, os.WNOHANG)
                running.discard(ended)
                failures += os.waitstatus_to_exitcode(status) > 0
    finally:
        for worker in running:
            os.kill(worker, signal.SIGKILL)
            os.waitpid(worker, 0)
    return int(failures > 0)


def split_off(address: str, folder: str) -> int:
    """Start a worker; returns its process."""
    worker = os.fork()
    if worker:
        return worker
    code = 1
    try:
        asyncio.run(serve(address, folder))
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


async def serve(address: str, folder: str) -> None:
    import distributed  # it was already, in the process that this one is split off

    async with distributed.Worker(
        address, nthreads=1, memory_limit=0, local_directory=folder, dashboard=False
    ) as worker:
        await worker.finished()


def main(arguments: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this decides when it ends
    imported()
    code = replaced_when_killed(int(arguments[0]), arguments[1])
    sys.stderr.flush()
    os._exit(code)  # at once: whoever started this waits, and what was imported takes its time to end


if __name__ == "__main__":
    main(sys.argv[1:])
