"""Dask, in a process of its own: it has tasks run by workers, here or on a cluster, and that is all it does.

    python -m harness.corpora.parts.cluster DESCRIPTOR

takes tasks from that socket, whose other end is engine.py's, and tells what they return, until it is closed there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import queue
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.parts.engine import ENDED, LOST, READY, REFUSED, SAID, Asked, Lost
from harness.corpora.parts.places import one_line
from harness.corpora.parts.workers import INNOCENT, Workers, imported

SECONDS_BETWEEN_LOOKS = 0.5


class Unwanted(Exception):
    """Whoever asked has gone, or wants no more."""


class Asker:
    """Who asks for tasks to be run, at the other end."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def tell(self, *message: Any) -> None:
        try:
            self.connection.send(message)
        except OSError:
            raise Unwanted from None

    def asks(self) -> Any:
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            raise Unwanted from None

    def check(self) -> None:
        """Raises Unwanted if it has closed its end: while tasks are run it says nothing."""
        if self.connection.poll():
            raise Unwanted


class Cluster:
    """Workers that run tasks."""

    def __init__(self, client: Any, name: str, check: Callable[[], None]) -> None:
        """`check` is called again and again while tasks are waited for."""
        self.client = client
        self.name = name
        self.look = check

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[str, tuple[Any, ...]]]
    ) -> Iterator[tuple[str, Any]]:
        """The name of each task with what its function returned, as they end.

        Raises Lost if there is nobody any more to run them, Refusal if a task cannot be run by anybody.
        """
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        futures = {}
        try:
            for name, arguments in tasks:
                futures[name] = future = self.client.submit(function, *arguments, key=name, pure=False)
                future.add_done_callback(ended.put)
        except OSError:
            raise Lost from None
        try:
            while futures:
                name = self.next_of(ended).key
                yield name, self.result_of(futures.pop(name), name)
        finally:
            with contextlib.suppress(Exception):  # there may be nobody left to be told
                self.client.cancel(list(futures.values()), force=True)

    def next_of(self, ended: queue.SimpleQueue[Any]) -> Any:
        while True:
            with contextlib.suppress(queue.Empty):
                return ended.get(timeout=SECONDS_BETWEEN_LOOKS)
            self.check()

    def result_of(self, future: Any, name: str) -> Any:
        if future.status == "cancelled":
            raise Lost
        if future.status == "error":
            error = future.exception()
            raise Refusal(
                f"the workers of {self.name} cannot run {name} ({type(error).__name__}: {one_line(error)}); they "
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
        self.look()
        if self.client.status not in ("running", "connecting"):
            raise Lost


def here(distributed: Any, asked: Asked, asker: Asker, opened: contextlib.ExitStack) -> Cluster:
    """Workers on this machine, until `opened` is closed."""
    own = opened.enter_context(Workers(asked.workers, asked.folder, asker.connection.close))
    scheduler = distributed.LocalCluster(
        n_workers=0, dashboard_address=None, local_directory=asked.folder, silence_logs=logging.CRITICAL
    )
    own.serve(scheduler.scheduler_address)

    def look() -> None:
        asker.check()
        own.look_after()

    return Cluster(distributed.Client(scheduler, set_as_default=False), "this machine", look)


def there(distributed: Any, asked: Asked, asker: Asker, opened: contextlib.ExitStack) -> Cluster:
    """The workers of a scheduler that is there. Raises Refusal if it cannot be reached."""
    scheduler = str(asked.scheduler)
    try:
        client = distributed.Client(scheduler, timeout=asked.seconds_to_connect, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise Refusal(
            f"there is no scheduler at {scheduler} ({one_line(error)}); set counting.params.scheduler=tcp://HOST:PORT"
            " of one that runs, or leave it out for workers on this machine",
            UNMEASURED,
        ) from error
    opened.callback(closed, client)
    client.run_on_scheduler(forgiving(INNOCENT))
    wait_for_a_worker(client, scheduler, asker)
    return Cluster(client, scheduler, asker.check)


def closed(client: Any) -> None:
    with contextlib.suppress(Exception):  # it may be gone already
        client.close(timeout=2)


def forgiving(failures: int) -> Callable[..., None]:
    """Raises what a scheduler that is there allows; sent by value, as it need not have this package."""
    return lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures)


def wait_for_a_worker(client: Any, scheduler: str, asker: Asker) -> None:
    if not client.scheduler_info(n_workers=-1)["workers"]:
        asker.tell(SAID, f"waiting for the first worker of {scheduler}")
    while not client.scheduler_info(n_workers=-1)["workers"]:
        if client.status != "running":
            raise Lost
        time.sleep(0.2)


def serve(distributed: Any, asker: Asker) -> None:
    """Run what is asked for, for as long as it is."""
    asked: Asked = asker.asks()
    with contextlib.ExitStack() as opened:
        cluster = (there if asked.scheduler else here)(distributed, asked, asker, opened)
        asker.tell(READY)
        while True:
            for ended in cluster.run(*asker.asks()):
                asker.tell(ENDED, *ended)


def main(arguments: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this decides when it ends
    asker, code = Asker(Connection(int(arguments[0]))), 0
    try:
        distributed = imported()
        try:
            serve(distributed, asker)
        except Lost:
            asker.tell(LOST)
        except Refusal as error:
            asker.tell(REFUSED, str(error))
    except Unwanted:
        pass
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stderr.flush()
    os._exit(code)  # at once: Dask's threads would be waited for


if __name__ == "__main__":
    main(sys.argv[1:])
