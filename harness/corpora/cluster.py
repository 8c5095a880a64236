"""A scheduler of Dask's and its workers on this machine, or the client of one that runs already."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness.common.errors import UNMEASURED, Refusal, extra
from harness.common.printing import print_stderr
from harness.common.units import counted_text, one_line
from harness.measure.machine import usable_cores
from variants.counting import parts as counting

GROUP = "distributed"
SECONDS_TO_CONNECT = 20
MOST_FAILURES = 10
INNOCENT = 1_000_000
"""How often a worker may die with a task before Dask gives the task up: the machine ends workers,
not the task.
"""
HERE = "127.0.0.1"
"""Where the processes of this machine listen. Every user of the machine reaches that address, so
they also ask for the certificate of this run.
"""


@contextlib.contextmanager
def workers(params: Mapping[str, Any]) -> Iterator[tuple[Any, Callable[[], None]]]:
    """A client of the scheduler, or of one with processes on this machine, and a function that
    replaces dead ones.
    """
    distributed = extra("distributed", "counting=dask", GROUP)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    with contextlib.ExitStack() as opened:
        address, security, replace_dead = params["scheduler"], None, lambda: None
        if address is None:
            extra("cryptography", "counting=dask", GROUP)
            security = distributed.Security.temporary()
            address = opened.enter_context(scheduler_here(security))
            number = params["workers"] or usable_cores()
            replace_dead = opened.enter_context(worker_processes(address, security, number))
        try:
            client = distributed.Client(
                address, security=security, timeout=SECONDS_TO_CONNECT, set_as_default=False
            )
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            advice = "set counting.params.scheduler=tcp://HOST:PORT of a running one, or omit it for workers here"
            raise Refusal(
                f"no scheduler answers at {address} ({line_of(error)}); {advice}", UNMEASURED
            ) from error

        client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", INNOCENT)
        )
        if params["scheduler"] is not None and not client.nthreads():
            print_stderr(f"waiting for the first worker of {address}")
        try:
            yield client, replace_dead
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                client.close(timeout=2)


def without_web_server(node: Any) -> Any:
    """A class of Dask's, Scheduler or Worker, without its web server, which asks nobody for a key."""
    return type(node.__name__, (node,), {"start_http_server": lambda *_, **__: None})


@contextlib.contextmanager
def scheduler_here(security: Any) -> Iterator[str]:
    """The address of a scheduler in this process that answers holders of its certificate only."""
    distributed = extra("distributed", "counting=dask", GROUP)
    options = {"host": HERE, "protocol": "tls", "security": security, "dashboard": False}
    scheduler = {"cls": without_web_server(distributed.Scheduler), "options": options}
    with distributed.SpecCluster(
        scheduler=scheduler, security=security, silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster.scheduler_address


@contextlib.contextmanager
def worker_processes(address: str, security: Any, number: int) -> Iterator[Callable[[], None]]:
    """Worker processes on this machine; yields a function that replaces those that were killed.

    Not LocalCluster's: they would import the script that is running, and one killed while it starts
    is not replaced.
    """
    with (
        tempfile.TemporaryDirectory(prefix=".", dir=counting.spill_folder()) as folder,
        tempfile.TemporaryFile() as log,
    ):
        command = [sys.executable, "-m", __name__, address, folder]
        # the key is in the environment, which only this user can read, not in the arguments
        certificate = security.get_tls_config_for_role("worker")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": certificate["ca_file"],
            "DASK_DISTRIBUTED__COMM__TLS__WORKER__CERT": certificate["cert"],
            "DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY": certificate["key"],
        }
        null, failures = subprocess.DEVNULL, 0
        running: list[subprocess.Popen[bytes]] = []

        def replace_dead() -> None:
            nonlocal failures
            failures += sum((process.poll() or 0) > 0 for process in running)
            if failures > MOST_FAILURES:
                log.seek(0)
                last = log.read().decode(errors="replace").strip().rpartition("\n")[2].strip()
                raise Refusal(f"workers cannot be started on this machine ({last})", UNMEASURED)

            alive = [process for process in running if process.returncode is None]
            if lost := len(running) - len(alive):
                print_stderr(
                    f"{counted_text(lost, 'worker')} lost; what was not sent is counted again"
                )

            running[:] = alive
            while len(running) < number:
                running.append(
                    subprocess.Popen(command, stdin=null, stdout=null, stderr=log, env=environment)
                )

        try:
            replace_dead()
            yield replace_dead
        finally:
            for process in running:
                process.kill()
                process.wait()


def line_of(error: BaseException) -> str:
    return one_line(str(error))[:300] or type(error).__name__


async def work(address: str, folder: str) -> None:
    """Be a worker of the scheduler of this machine, until it or the connection ends."""
    node = without_web_server(extra("distributed", "counting=dask", GROUP).Worker)
    limits = {"nthreads": 1, "memory_limit": 0}
    async with node(address, host=HERE, local_directory=folder, **limits) as worker:
        await worker.finished()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
