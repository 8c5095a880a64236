"""What the self-test plants: a kernel of known work with a known share more, and trainers that are wrong in one way.

They run in the measured process: standard library only, and Python 3.9's.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from harness.worker.calling import resolve
from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts

A_LONG_TIME = 600.0
BLOCK_BYTES = 16 << 20


def units(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    target: str,
    units: int,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
) -> list[Merge]:
    """The same training so many times over: with 105 units there is 5 % more work than with 100, by every count."""
    train = resolve(target)
    merges: list[Merge] = []
    for _ in range(units):
        merges = train(word_counts, num_merges, meter, tie_break=tie_break, min_count=min_count)
    return merges


def corrupted(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER, *, target: str, place: int, **said: Any
) -> list[Merge]:
    """The right merges, but for two neighbours that have changed places."""
    merges: list[Merge] = resolve(target)(word_counts, num_merges, meter, **said)
    place %= len(merges) - 1
    merges[place], merges[place + 1] = merges[place + 1], merges[place]
    return merges


def crashes(*_: object) -> list[Merge]:
    """Dies in the middle, as compiled code does."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return []


def hangs(*_: object) -> list[Merge]:
    """Never comes back."""
    time.sleep(A_LONG_TIME)
    return []


def hogs(*_: object) -> list[Merge]:
    """Takes memory as long as it gets any."""
    kept = []
    while True:
        kept.append(b"x" * BLOCK_BYTES)
        time.sleep(0.01)
