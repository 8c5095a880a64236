"""Dask as the engine: it has the tasks run by workers, on this machine or on a cluster, and that is all it does."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import queue
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.corpora.parts.places import GROUP, one_line

INNOCENT = 1_000_000
"""How often a worker may end while it has a task before Dask gives the task up: it is other tasks that end workers."""
SECONDS_TO_CONNECT = 20
SECONDS_TO_START_ANEW = 3.0
SECONDS_BETWEEN_LOOKS = 0.5


class Task(NamedTuple):
    """A call of a function that some worker can import, and what of the whole it is."""

    name: str
    arguments: tuple[Any, ...]
    size: int = 1


class Lost(Exception):
    """The engine is gone; what tasks have left is there."""


def nothing() -> None:
    """What there is to do for workers that somebody else looks after."""


class Engine:
    """Workers that run tasks."""

    def __init__(self, client: Any, name: str, look_after: Callable[[], None] = nothing) -> None:
        """`look_after` is called again and again while tasks are waited for."""
        self.client = client
        self.name = name
        self.look_after = look_after

    def run(
        self, function: Callable[..., Any], tasks: Sequence[Task], show: Callable[[int], None]
    ) -> Iterator[tuple[Task, Any]]:
        """Each task with what its function returned, as they end; `show` is told of the sizes of those that did.

        Raises Lost if there is nobody any more to run them, Refusal if a task cannot be run by anybody.
        """
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        futures = {}
        try:
            for task in tasks:
                future = self.client.submit(function, *task.arguments, key=task.name, pure=False)
                futures[future.key] = (future, task)
                future.add_done_callback(ended.put)
        except OSError:
            raise Lost from None
        done = 0
        try:
            while futures:
                future = self.next_of(ended)
                held, task = futures.pop(future.key)
                result = self.result_of(held, task)
                done += task.size
                show(done)
                yield task, result
        finally:
            with contextlib.suppress(Exception):  # there may be nobody left to be told
                self.client.cancel([future for future, _ in futures.values()], force=True)

    def next_of(self, ended: queue.SimpleQueue[Any]) -> Any:
        while True:
            with contextlib.suppress(queue.Empty):
                return ended.get(timeout=SECONDS_BETWEEN_LOOKS)
            self.check()

    def result_of(self, future: Any, task: Task) -> Any:
        if future.status == "cancelled":
            raise Lost
        if future.status == "error":
            error = future.exception()
            raise Refusal(
                f"the workers of {self.name} cannot run {task.name} ({type(error).__name__}: {one_line(error)}); they "
                "need this version of bpe-harness and memory for a part, see counting.params.part",
                UNMEASURED,
            ) from error
        # What it returned lies with its worker, and is made again if that is killed before it hands it over.
        while True:
            try:
                return future.result(timeout=SECONDS_BETWEEN_LOOKS)
            except TimeoutError:
                self.check()
            except (OSError, asyncio.CancelledError, concurrent.futures.CancelledError):
                raise Lost from None

    def check(self) -> None:
        """See to the workers. Raises Lost if there is no scheduler any more."""
        self.look_after()
        if self.client.status not in ("running", "connecting"):
            raise Lost


@contextlib.contextmanager
def started(scheduler: str | None, workers: int, folder: Path, say: Callable[[str], None]) -> Iterator[Engine]:
    """The workers of a scheduler that is there, or `workers` processes here for as long as the block lasts.

    Those here have `folder` for files of their own. Raises Refusal if the scheduler cannot be reached.
    """
    dask, distributed = extra("dask", "counting=dask", GROUP), extra("distributed", "counting=dask", GROUP)
    settings = {
        "distributed.scheduler.allowed-failures": INNOCENT,
        "distributed.comm.timeouts.connect": SECONDS_TO_CONNECT,
        "distributed.admin.log-format": "%(message)s",
    }
    with quietly(), contextlib.ExitStack() as opened:
        opened.enter_context(dask.config.set(settings))
        address: Any = scheduler
        look_after = nothing
        if scheduler is None:
            address = opened.enter_context(
                distributed.LocalCluster(
                    n_workers=0,
                    threads_per_worker=1,
                    dashboard_address=None,
                    memory_limit=0,
                    local_directory=str(folder),
                    silence_logs=logging.CRITICAL,
                )
            )
            look_after = Keeper(address, workers).look_after
            look_after()
        try:
            client = distributed.Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise Refusal(
                f"there is no scheduler at {scheduler} ({one_line(error)}); set counting.params.scheduler=tcp://HOST:PORT"
                " of one that runs, or leave it out for workers on this machine",
                UNMEASURED,
            ) from error
        try:
            if scheduler is not None:
                client.run_on_scheduler(forgiving(INNOCENT))
                wait_for_a_worker(client, scheduler, say)
            yield Engine(client, scheduler or "this machine", look_after)
        finally:
            with contextlib.suppress(Exception):  # it may be gone already
                client.close(timeout=2)


class Keeper:
    """Has as many workers on this machine as there should be.

    Dask replaces a worker that was killed, but not always one that was killed while it started.
    """

    def __init__(self, cluster: Any, workers: int) -> None:
        self.cluster = cluster
        self.workers = workers
        self.gone_since: dict[Any, float] = {}

    def look_after(self) -> None:
        self.cluster.loop.add_callback(self.replace)

    def replace(self) -> None:
        """Forget the workers without a process for some seconds and have others started; in Dask's own thread."""
        now = time.monotonic()
        for name, nanny in list(self.cluster.workers.items()):
            if nanny.process is not None and nanny.process.is_alive():
                self.gone_since.pop(name, None)
            elif now - self.gone_since.setdefault(name, now) > SECONDS_TO_START_ANEW:
                del self.cluster.workers[name], self.gone_since[name]
                closing = asyncio.ensure_future(nanny.close())
                closing.add_done_callback(lambda closed: closed.cancelled() or closed.exception())
        self.cluster.scale(self.workers)


def forgiving(failures: int) -> Callable[..., None]:
    """Raises what a scheduler that is there allows; sent by value, as it need not have this package."""
    return lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures)


def wait_for_a_worker(client: Any, scheduler: str, say: Callable[[str], None]) -> None:
    if not client.scheduler_info(n_workers=-1)["workers"]:
        say(f"waiting for the first worker of {scheduler}")
    while not client.scheduler_info(n_workers=-1)["workers"]:
        if client.status != "running":
            raise Lost
        time.sleep(0.2)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without what Dask logs and warns of on the way: what matters is said by who calls."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
