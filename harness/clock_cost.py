"""What measuring itself costs: the time of one lap of a meter, taken once for each command."""

from __future__ import annotations

import functools
import time

from variants.contract import Meter

BATCHES = 9
LAPS = 1000


@functools.cache
def clock_cost_seconds() -> float:
    """The seconds of one lap, in the fastest of some batches: what disturbs them only adds.

    Times a record's `laps` it is what the clock took of the record's time.
    """
    return round(min(batch_seconds() for _ in range(BATCHES)) / LAPS, 11)


def batch_seconds() -> float:
    meter = Meter()
    started = time.perf_counter()
    for _ in range(LAPS):
        meter.lap("update")
    return time.perf_counter() - started
