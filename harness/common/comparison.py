"""Two lists of timed samples compared block by block: the ratio of their times, and how far it can
be trusted.

What disturbs a machine lasts longer than one sample, so two samples of one block share it and their
ratio does not. The interval is that of the order statistics: it holds for any distribution of the
noise and leaves nothing to chance.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

CONFIDENCE = 0.95
# a difference of less than this share does not matter to anyone who chooses between two
MARGIN = 0.01
MOST_PRESSURE = 0.2
"""If something waited for a CPU for more than this share of a sample, its wall time is not
compared.
"""
FEWEST_BLOCKS = 6
"""With fewer blocks the median has no interval at this confidence: 2 ** -5 is over 0.025, 2 ** -6
is not.
"""
# CPU seconds by wall seconds; above this, something ran beside the one requested thread
OF_ONE_THREAD = 1.1
NET, CPU, WALL = "net", "CPU", "wall"
"""The clocks of a comparison. Net time is wall time without waiting for a CPU; records of
earlier versions do not have it, and those of one thread are compared by CPU time.
"""
_SECONDS_OF_TICKS = 0.02
"""The CPU time of processes that have ended is known to two ticks."""


class Sample(NamedTuple):
    """One timed run: its block, what its clocks show, and the shares of its wall time that others
    took.

    `cpu_wait_seconds` is how long it waited for a CPU, and `cpu_wait_unknown` why that is
    unknown; both are None in records of earlier versions.
    """

    run: str
    block: int
    wall_seconds: float
    cpu_seconds: float | None = None
    threads: int = 1
    pressure: float | None = None
    steal: float | None = None
    cpu_wait_seconds: float | None = None
    cpu_wait_unknown: str | None = None

    @property
    def seconds(self) -> float:
        """What it took: the wall time, without waiting for a CPU as far as that is known."""
        return self.wall_seconds - (self.cpu_wait_seconds or 0.0)

    @property
    def clock(self) -> str:
        """By which clock it is compared with a sample of the same clock."""
        if self.cpu_wait_seconds is not None:
            return NET
        return WALL if self.cpu_wait_unknown or not self._one_thread else CPU

    @property
    def _one_thread(self) -> bool:
        """Whether its CPU seconds are those of one thread, without time spent waiting for a
        CPU.
        """
        cpu = self.cpu_seconds
        return (
            self.threads == 1 and cpu is not None and 0 < cpu <= OF_ONE_THREAD * self.wall_seconds
        )

    @property
    def is_disturbed(self) -> bool:
        """Whether its wait for a CPU is unknown, and may be long.

        >>> [Sample("run", 0, 2.0, 1.0, pressure=share).is_disturbed for share in (None, 0.2, 0.25)]
        [False, False, True]
        """
        return self.clock != NET and (self.pressure or 0.0) > MOST_PRESSURE

    @property
    def kept_waiting(self) -> bool:
        """Whether its seconds may hold a wait for a CPU; one thread that worked nearly all
        the time had its CPU.

        >>> [Sample("run", 0, 2.0, cpu, pressure=0.25).kept_waiting for cpu in (None, 1.5, 1.6, 2.4)]
        [True, True, False, True]
        >>> Sample("run", 0, 2.0, 1.5, pressure=0.2).kept_waiting
        False
        """
        worked = (
            self._one_thread
            and (self.cpu_seconds or 0.0) >= (1 - MOST_PRESSURE) * self.wall_seconds
        )
        return self.is_disturbed and not worked

    @property
    def idle(self) -> float | None:
        """The share of its seconds in which it neither worked nor waited for a CPU; None if
        unknown.
        """
        if self.cpu_seconds is None or self.clock == CPU:
            return None
        worked = self.cpu_seconds / self.seconds
        if self.clock == NET:
            return 1 - worked
        if self.pressure is None:
            return None
        return 1 - worked - self.pressure - _SECONDS_OF_TICKS / self.seconds


@dataclass(frozen=True)
class Comparison:
    """The median ratio of two times over `blocks`; `low` and `high` are None with too few blocks.

    `clock` is net, CPU or wall; `left_out` counts the blocks that were too disturbed for it,
    `ratios` are of the others.
    """

    ratio: float
    low: float | None
    high: float | None
    blocks: int
    left_out: int
    clock: str
    ratios: tuple[float, ...] = field(default=(), compare=False, repr=False)

    @property
    def different(self) -> bool | None:
        """Whether the two differ by more than the margin; None with too few blocks."""
        return None if self.low is None or self.high is None else differ(self.low, self.high)


def differ(low: float, high: float) -> bool:
    """Whether an interval of ratios shows a difference that is large enough to matter.

    >>> differ(1.02, 1.04), differ(0.98, 1.04), differ(1.002, 1.01), differ(1 / 1.01, 0.998)
    (True, False, False, False)
    >>> differ(0.5, 0.9), differ(0.5, 1.0), differ(1.0, 1.5)
    (True, False, False)
    """
    within_margin = low >= 1 / (1 + MARGIN) and high <= 1 + MARGIN
    return not (low <= 1 <= high or within_margin)


def compare(
    samples: Iterable[Sample], baseline: Iterable[Sample], confidence: float = CONFIDENCE
) -> Comparison | None:
    """The median ratio to the baseline over the blocks that both ran in; None if there are none.

    Net time is compared: other processes do not change it, and what a program waits for is in it.
    If a sample has wall time alone, its block counts unless it was too disturbed; if all were, the
    ratio is shown without an interval. Samples of earlier versions are compared by CPU time if
    every one is of one thread.
    """
    against = {(sample.run, sample.block): sample for sample in baseline}
    pairs = [
        (sample, against[sample.run, sample.block])
        for sample in samples
        if (sample.run, sample.block) in against
    ]
    if not pairs:
        return None

    clocks = {sample.clock for pair in pairs for sample in pair}
    clock = clocks.pop() if len(clocks) == 1 else WALL
    name = "cpu_seconds" if clock == CPU else "seconds"

    usable = [
        pair for pair in pairs if clock == CPU or not any(sample.is_disturbed for sample in pair)
    ]
    log_ratios = [
        math.log(getattr(ours, name) / getattr(theirs, name)) for ours, theirs in usable or pairs
    ]
    low, high = interval(log_ratios, confidence) if usable else (None, None)
    return Comparison(
        math.exp(statistics.median(log_ratios)),
        None if low is None else math.exp(low),
        None if high is None else math.exp(high),
        len(usable),
        len(pairs) - len(usable),
        clock,
        tuple(map(math.exp, log_ratios)),
    )


def interval(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float] | tuple[None, None]:
    """The interval that contains the median of the values' distribution with at least this
    confidence.

    >>> interval([0.1, -0.2, 0.3, 0.0, 0.1, 0.2]), interval([0.1, 0.2, 0.3])
    ((-0.2, 0.3), (None, None))
    """
    ranks = interval_ranks(len(values), confidence)
    if ranks is None:
        return None, None
    ordered = sorted(values)
    return ordered[ranks[0]], ordered[ranks[1]]


@functools.cache
def interval_ranks(number: int, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """Ranks of the ordered values that bound the interval; None if even the outermost two do not.

    >>> interval_ranks(6), interval_ranks(5), interval_ranks(30), interval_ranks(6, 0.99)
    ((0, 5), None, (9, 20), None)
    >>> interval_ranks(5, 1 - 2 / 2**5)  # just enough
    (0, 4)
    """
    # the numbers of ways in which that many fair coins show at most 0, 1, ... heads
    at_most = accumulate(math.comb(number, heads) for heads in range(number + 1))
    outside = (1 - confidence) / 2
    rank = next(rank for rank, ways in enumerate(at_most) if ways / 2**number > outside)
    return (rank - 1, number - rank) if rank else None


def spread(values: Sequence[float]) -> float | None:
    """The range of the values by their median; None for fewer than two.

    >>> spread([3.0, 4.0, 5.0]), spread([1.0, 3.0]), spread([1.0])
    (0.5, 1.0, None)
    """
    return (max(values) - min(values)) / statistics.median(values) if len(values) > 1 else None
