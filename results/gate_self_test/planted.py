"""Trainers for the gate's self-test: a known amount of work, a known share more of it, or of
waiting, and four that fail.
"""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from variants import heap

BASE = 100


def trainer(number: int) -> Callable[..., Any]:
    """Return a trainer that does the same training `number` times: 105 is exactly 5 % more work
    than 100.
    """

    def train(*words: Any, **options: Any) -> Any:
        for _ in range(number):
            merges = heap.train(*words, **options)
        return merges

    return train


def waiting(share: float = 0.0, seconds: float = 0.0) -> Callable[..., Any]:
    """Return a trainer that waits as well: for a share of the CPU time that it used, or for so
    many seconds.
    """

    def train(*words: Any, **options: Any) -> Any:
        began = time.thread_time()
        merges = base(*words, **options)
        time.sleep(share * (time.thread_time() - began) + seconds)
        return merges

    return train


base = trainer(BASE)
again = trainer(BASE)
same = trainer(BASE)
slower_1 = trainer(BASE + 1)
slower_2 = trainer(BASE + 2)
slower_5 = trainer(BASE + 5)
waits_5 = waiting(share=0.05)
waits_50_ms = waiting(seconds=0.05)


def corrupted(*words: Any, **options: Any) -> Any:
    """Swap two neighbouring merges."""
    merges = base(*words, **options)
    merges[-2], merges[-1] = merges[-1], merges[-2]
    return merges


def crash(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(*_: Any, **__: Any) -> None:
    time.sleep(600)


def hog(*_: Any, **__: Any) -> None:
    """Take memory in steps of 16 MB until there is none."""
    blocks = []
    while True:
        blocks.append(b"x" * (16 << 20))
        time.sleep(0.01)
