"""Trainers that do something before their call: from what they find of their job then, or by a
daemon.
"""

import inspect
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unruly import A_LONG_TIME, leave_number, orphan, work

from variants.contract import Merge, WordCounts
from variants.heap import train as honest

DAEMON = f"""
import os, pathlib, sys, time
print(os.getpid(), flush=True)
order = pathlib.Path(sys.argv[1])
while not order.exists(): time.sleep(0.01)
while time.process_time() < 0.3: pass
order.unlink()
time.sleep({A_LONG_TIME})
"""
"""Works when a file is there, and removes it."""
ORDER = Path(os.environ["UNRULY_CHILD"]).with_name("order")


def importer() -> Any:
    """Who imports this in a measured process, found in its frames."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if hasattr(frame.f_locals.get("self"), "setup"):
            return frame.f_locals["self"]
    return None


IMPORTER = importer()
FOUND = asdict(IMPORTER.setup) if IMPORTER is not None else {}
NAME = FOUND.get("target", "").partition(":")[2]
if NAME == "impatient":
    IMPORTER.channel.announce(b"imported")
    FOUND.update(json.loads((IMPORTER.output / "work.json").read_text()))
    work(0.1)
elif NAME == "helped":
    leave_number(int(orphan(DAEMON, str(ORDER))))
elif NAME == "sleepy":
    time.sleep(A_LONG_TIME)


def train(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    known = {"words", "corpus", "num_merges"} & FOUND.keys()
    if not known:
        raise LookupError(f"there is no job yet: {sorted(known)}")
    return honest(word_counts, num_merges)


impatient = sleepy = train


def helped(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    ORDER.touch()
    while ORDER.exists():
        time.sleep(0.01)
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
    """A trainer that learns of its job when somebody looks how it is called, if there is one then."""

    job: Any = None

    @property
    def __signature__(self) -> inspect.Signature:
        self.job = self.job or getattr(importer(), "call", None)
        return inspect.signature(honest)

    def __call__(self, *arguments: Any, **options: Any) -> list[Merge]:
        print("was too late" if self.job is None else "was early", flush=True)  # noqa: T201
        return honest(*arguments, **options)


described = Described()
