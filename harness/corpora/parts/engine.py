"""Who runs the tasks: workers of Dask's, here or on a cluster, and this process until they are there.

Dask itself is in a process of its own (cluster.py), so nothing of it is imported here, and whoever kills this one ends
all that were started for it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from harness.common.errors import UNMEASURED, Refusal, check_extra
from harness.corpora.parts.places import GROUP

SECONDS_TO_CONNECT = 20
SECONDS_TO_END = 5
READY, SAID, ENDED, REFUSED, LOST = "ready", "said", "ended", "refused", "lost"
"""What the process with Dask tells of, as the first of a tuple."""


class Task(NamedTuple):
    """A call of a function that some worker can import, and what of the whole it is.

    `brief` says that it takes about a second at most: this process may run it.
    """

    name: str
    arguments: tuple[Any, ...]
    size: int = 1
    brief: bool = False


class Asked(NamedTuple):
    """What the process with Dask is told first: the scheduler, or how many workers to start, with files in `folder`."""

    scheduler: str | None
    workers: int
    folder: str
    seconds_to_connect: float


class Lost(Exception):
    """The engine is gone; what tasks have left is there."""


class Engine:
    """Workers that run tasks."""

    def __init__(
        self, connection: Connection, process: subprocess.Popen[bytes], errors: BinaryIO, helps: bool, say: Any
    ) -> None:
        """`errors` has what the process at the other end wrote; with `helps` this one runs tasks until it is ready."""
        self.connection = connection
        self.process = process
        self.errors = errors
        self.helps = helps
        self.say = say
        self.ready = False

    def run(
        self, function: Callable[..., Any], tasks: Sequence[Task], show: Callable[[int], None]
    ) -> Iterator[tuple[Task, Any]]:
        """Each task with what its function returned, as they end; `show` is told of the sizes of those that did.

        Raises Lost if there is nobody any more to run them, Refusal if a task cannot be run by anybody.
        """
        left, done = list(tasks), 0
        while self.helps and left and left[-1].brief and not self.is_ready():
            task = left.pop()
            result = function(*task.arguments)
            done += task.size
            show(done)
            yield task, result
        if left:
            with contextlib.suppress(OSError):  # what it said before it ended is heard below
                self.connection.send((function, [(task.name, task.arguments) for task in left]))
        waiting = {task.name: task for task in left}
        while waiting:
            kind, *told = self.heard()
            if kind == ENDED:
                name, result = told
                task = waiting.pop(name)
                done += task.size
                show(done)
                yield task, result

    def is_ready(self) -> bool:
        """Whether there are workers to come to at once."""
        while not self.ready and self.connection.poll():
            self.heard()
        return self.ready

    def heard(self) -> tuple[Any, ...]:
        """What the process says next. Raises Lost or Refusal if that is the end."""
        try:
            message: tuple[Any, ...] = self.connection.recv()
        except (EOFError, OSError):
            raise self.why_it_ended() from None
        kind, *told = message
        if kind == LOST:
            raise Lost
        if kind == REFUSED:
            raise Refusal(told[0], UNMEASURED)
        if kind == SAID:
            self.say(told[0])
        self.ready = self.ready or kind == READY
        return message

    def why_it_ended(self) -> Exception:
        code = self.process.wait()
        return Refusal(f"Dask cannot be started ({last_line(self.errors, code)})", UNMEASURED) if code > 0 else Lost()


def last_line(errors: BinaryIO, code: int) -> str:
    """The last of what a process that ended with `code` has written."""
    errors.seek(0)
    said = errors.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(said) if line.strip()), f"exit code {code}")


@contextlib.contextmanager
def started(scheduler: str | None, workers: int, folder: Path, say: Callable[[str], None]) -> Iterator[Engine]:
    """The workers of a scheduler that is there, or `workers` processes here for as long as the block lasts.

    Those here have `folder` for files of their own; this process is one of them for as long as they take to start, if
    there are to be several. Raises Refusal if Dask is not installed; running tasks does if there is no scheduler.
    """
    for module in ("dask", "distributed"):
        check_extra(module, "counting=dask", GROUP)
    ours, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryFile() as errors, ours:
        process = start(theirs, errors)
        engine = Engine(ours, process, errors, scheduler is None and workers > 1, say)
        try:
            with contextlib.suppress(OSError):  # it has ended already, and tasks are told why
                ours.send(Asked(scheduler, workers, str(folder), SECONDS_TO_CONNECT))
            yield engine
        finally:
            ours.close()
            if not engine.ready:  # what it starts ends with it
                process.kill()
            try:
                process.wait(SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start(theirs: Connection, errors: BinaryIO) -> subprocess.Popen[bytes]:
    """Start the process with Dask, which has `theirs` to speak through."""
    found = os.pathsep.join(sys.path)
    with theirs:
        return subprocess.Popen(
            [sys.executable, "-m", "harness.corpora.parts.cluster", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": found, "OPENBLAS_NUM_THREADS": "1"},  # a fork leaves threads behind
        )
