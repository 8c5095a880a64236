"""Two lists of timed samples compared block by block: the ratio of their times, and how far it can be trusted.

What disturbs a machine lasts longer than one sample, so two samples of one block share it and their ratio does not. The
interval is that of the order statistics: it holds for any distribution of the noise and leaves nothing to chance.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

CONFIDENCE = 0.95
MARGIN = 0.01
"""Two times that differ by less than this share are the same to anyone who chooses between them."""
MOST_PRESSURE = 0.2
"""Where something waited for a processor for over this share of a sample, there is no wall time to compare."""
FEWEST_BLOCKS = 6
"""With fewer blocks the median has no interval at this confidence: 2 ** -5 is over 0.025, 2 ** -6 is not."""
_OF_ONE_THREAD = 1.1
"""CPU seconds by wall seconds; over this, something ran beside the one thread that was asked for."""


class Sample(NamedTuple):
    """One timed run: when it ran, what two clocks say, and what share of its wall time was not its own."""

    run: str
    block: int
    wall_seconds: float
    cpu_seconds: float | None = None
    threads: int = 1
    pressure: float | None = None
    steal: float | None = None

    @property
    def one_thread(self) -> bool:
        """Whether its CPU seconds are what one thread took, so that waiting for a processor is not in them."""
        cpu = self.cpu_seconds
        return self.threads == 1 and cpu is not None and 0 < cpu <= _OF_ONE_THREAD * self.wall_seconds

    @property
    def pressed(self) -> bool:
        return self.pressure is not None and self.pressure > MOST_PRESSURE

    @property
    def kept_waiting(self) -> bool:
        """Whether it may itself be what waited: one thread that worked nearly all the time had its processor."""
        worked = self.one_thread and (self.cpu_seconds or 0.0) >= (1 - MOST_PRESSURE) * self.wall_seconds
        return self.pressed and not worked


@dataclass(frozen=True)
class Comparison:
    """The median over `blocks` of one time by the other; `low` and `high` are None where blocks are too few.

    `clock` is the one that was compared, CPU or wall; `left_out` are the blocks that were too disturbed for it, and
    `ratios` those of the others.
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
        """Whether the two differ by more than the margin could hide; None where the blocks are too few to say."""
        return None if self.low is None or self.high is None else differ(self.low, self.high)


def differ(low: float, high: float) -> bool:
    """Whether an interval of ratios leaves no doubt of a difference, and not of one too small to matter.

    >>> differ(1.02, 1.04), differ(0.98, 1.04), differ(1.002, 1.004)
    (True, False, False)
    """
    return not (low <= 1 <= high or within_margin(low, high))


def within_margin(low: float, high: float) -> bool:
    """Whether a whole interval of ratios is too close to 1 for anyone to care.

    >>> within_margin(1.002, 1.008), within_margin(0.97, 0.995)
    (True, False)
    """
    return low >= 1 / (1 + MARGIN) and high <= 1 + MARGIN


def sample_of(record: Mapping[str, Any]) -> Sample | None:
    """The sample that a record holds; None for one without a total."""
    seconds = record.get("seconds") or {}
    wall = seconds.get("total")
    if not wall:
        return None
    disturbance = record.get("disturbance") or _UNDISTURBED
    lasted = (record.get("witness") or _UNDISTURBED).get("wall_seconds") or wall
    pressure, steal = disturbance.get("psi_cpu_seconds"), disturbance.get("steal_seconds")
    return Sample(
        str(record.get("run_id")),
        record.get("block") or 0,
        wall,
        record.get("cpu_seconds"),
        record.get("threads") or 1,
        None if pressure is None else pressure / lasted,
        None if steal is None else steal / lasted,
    )


_UNDISTURBED: Mapping[str, Any] = {}
"""What stands for a mapping that a record does not have."""


def compare(samples: Iterable[Sample], baseline: Iterable[Sample]) -> Comparison | None:
    """How many times the baseline's time the samples take, by the blocks in which both ran; None if there is none."""
    pairs, usable, clock = pairs_of(samples, baseline)
    if not pairs:
        return None
    log_ratios = [math.log(clock(ours) / clock(theirs)) for ours, theirs in usable or pairs]
    # Where all were disturbed there is a ratio to look at, but nothing to conclude from it.
    low, high = interval(log_ratios) if usable else (None, None)
    return Comparison(
        math.exp(statistics.median(log_ratios)),
        None if low is None else math.exp(low),
        None if high is None else math.exp(high),
        len(usable),
        len(pairs) - len(usable),
        "CPU" if clock is cpu_time else "wall",
        tuple(map(math.exp, log_ratios)),
    )


Pairs = list[tuple[Sample, Sample]]


def pairs_of(samples: Iterable[Sample], baseline: Iterable[Sample]) -> tuple[Pairs, Pairs, Callable[[Sample], float]]:
    """The pairs of one block, those of them that were not too disturbed, and the clock that they are compared by."""
    against = {(sample.run, sample.block): sample for sample in baseline}
    pairs = [(sample, against[sample.run, sample.block]) for sample in samples if (sample.run, sample.block) in against]
    clock = clock_of([sample for pair in pairs for sample in pair])
    if clock is cpu_time:
        return pairs, pairs, clock
    return pairs, [pair for pair in pairs if not any(sample.pressed for sample in pair)], clock


def cpu_time(sample: Sample) -> float:
    assert sample.cpu_seconds is not None
    return sample.cpu_seconds


def wall_time(sample: Sample) -> float:
    return sample.wall_seconds


def clock_of(samples: Iterable[Sample]) -> Callable[[Sample], float]:
    """CPU time where every sample is of one thread, since what else runs cannot take it away; else wall time."""
    return cpu_time if all(sample.one_thread for sample in samples) else wall_time


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | tuple[None, None]:
    """The interval that holds the median of what the values are drawn from, with at least this confidence.

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
    """Which of `number` ordered values bound the interval; None where even the outermost two do not.

    >>> interval_ranks(6), interval_ranks(5), interval_ranks(30), interval_ranks(6, 0.99)
    ((0, 5), None, (9, 20), None)
    """
    # Each end is beyond the median with half of what is left, and the outermost value with 2 ** -number.
    beyond = (1 - confidence) / 2
    if 2.0**-number > beyond:
        return None
    # How often of so many fair coins at most `rank` show heads, from where that is next to never.
    rank = max(0, int(number / 2 - 8 * math.sqrt(number)))
    ways = math.lgamma(number + 1) - math.lgamma(rank + 1) - math.lgamma(number - rank + 1)
    share = so_far = math.exp(ways - number * math.log(2))
    while so_far <= beyond:
        share *= (number - rank) / (rank + 1)
        rank += 1
        so_far += share
    return rank - 1, number - rank


def spread(values: Sequence[float]) -> float | None:
    """The largest less the smallest, by the median; None for fewer than two.

    >>> spread([3.0, 4.0, 5.0]), spread([1.0])
    (0.5, None)
    """
    return (max(values) - min(values)) / statistics.median(values) if len(values) > 1 else None
