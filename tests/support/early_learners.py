"""Trainers that do something before their call: from what they find of their job then, or by a
daemon.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import socket
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unruly import A_LONG_TIME, leave_number, orphan, work

from harness.worker import exchange
from variants.contract import Merge, WordCounts
from variants.heap import train as honest

DAEMON = """
import os, socket, sys, time
listening = socket.socket(socket.AF_UNIX)
listening.bind("\\0" + sys.argv[1])
listening.listen()
print(os.getpid(), flush=True)
while True:
    connection, _ = listening.accept()
    until = time.process_time() + 0.25
    while time.process_time() < until:
        sum(range(1000))
    connection.sendall(b".")
    connection.close()
"""
ADDRESS = hashlib.sha256(os.environ["UNRULY_CHILD"].encode()).hexdigest()


def start_a_daemon() -> None:
    """Returns when it listens, its number left where a test can find it."""
    leave_number(int(orphan(DAEMON, ADDRESS)))


def ask_the_daemon() -> bool:
    """Whether there was one that worked."""
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(f"\0{ADDRESS}")
        except ConnectionRefusedError:
            return False
        return asking.recv(1) == b"."


def importer() -> Any:
    """Who imports this in a measured process, found in its frames."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if hasattr(frame.f_locals.get("self"), "setup"):
            return frame.f_locals["self"]
    return None


def hear_of_the_job(importer: Any) -> dict[str, Any]:
    """Say that the import is over, and read the work."""
    importer.channel.announce(b"imported")
    return dict(json.loads((importer.output / "work.json").read_text()))


def learned_from(job: dict[str, Any]) -> list[Merge]:
    """The cheat: the merges of a job, before anybody has called for them."""
    return honest(exchange.read_words(Path(job["words"]))[0], job["num_merges"])


IMPORTER = importer()
FOUND = asdict(IMPORTER.setup) if IMPORTER is not None else {}
NAME = FOUND.get("target", "").partition(":")[2]
if NAME == "impatient":
    FOUND.update(hear_of_the_job(IMPORTER))
    work(0.1)
elif NAME == "helped":
    start_a_daemon()
elif NAME == "sleepy":
    time.sleep(A_LONG_TIME)
EARLY = learned_from(FOUND) if "words" in FOUND else None


def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:  # noqa: ARG001 - it has seen them
    if EARLY is None:
        known = {"words", "corpus", "num_merges"} & FOUND.keys()
        raise LookupError(f"there is no job yet: {sorted(known)}")
    return EARLY


impatient = sleepy = train


def asks_that_of_an_earlier_block(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Starts one for a later block in any case."""
    print("was helped" if ask_the_daemon() else "was alone", flush=True)  # noqa: T201
    start_a_daemon()
    return honest(word_counts, num_merges)


def helped(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    assert ask_the_daemon()
    return honest(word_counts, num_merges)


MADE: list[str] = []


def before_the_clock() -> None:
    if NAME == "prepared":
        work(0.35)
        MADE.append("tables")


def prepared(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    assert MADE == ["tables"]
    return honest(word_counts, num_merges)


class Described:
    """A trainer that trains when somebody looks how it is called, if it finds its words then."""

    def __init__(self) -> None:
        self.early: list[Merge] | None = None

    @property
    def __signature__(self) -> inspect.Signature:
        call = getattr(importer(), "call", None)
        if call is not None and call.job.words:
            self.early = learned_from(asdict(call.job))
        return inspect.signature(honest)

    def __call__(self, word_counts: WordCounts, num_merges: int, *_: Any, **__: Any) -> list[Merge]:
        print("was too late" if self.early is None else "was early", flush=True)  # noqa: T201
        return self.early or honest(word_counts, num_merges)


described = Described()
