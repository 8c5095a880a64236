"""Two lists of times of different runs, of which no block holds one each: their ratio, and how far it is known.

The ratio is the median of all ratios of one time to another (Hodges and Lehmann), its interval that of the rank test of
Mann and Whitney: both hold for any distribution of the noise. Neither knows what changed on the machine between the two
runs, which is why cells that are to be compared belong into the blocks of one run.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from itertools import accumulate

from harness.comparison import CONFIDENCE, Comparison, Sample, clock_of, compare, cpu_time


def compare_runs(samples: Sequence[Sample], baseline: Sequence[Sample]) -> Comparison | None:
    """How many times the baseline's time the samples take: within blocks that both ran in, else by all of both.

    The number of pairs of a comparison of different runs is that of the fewer samples.
    """
    if not samples or not baseline:
        return None
    within = compare(samples, baseline)
    if within is not None:
        return within
    clock = clock_of([*samples, *baseline])
    usable = [[sample for sample in side if clock is cpu_time or not sample.pressed] for side in (samples, baseline)]
    ours, theirs = (kept or list(side) for kept, side in zip(usable, (samples, baseline), strict=True))
    log_ratios = sorted(math.log(clock(mine) / clock(other)) for mine in ours for other in theirs)
    rank = rank_of_interval(len(ours), len(theirs)) if all(usable) else None
    low, high = (None, None) if rank is None else (math.exp(log_ratios[rank]), math.exp(log_ratios[-1 - rank]))
    left_out = len(samples) + len(baseline) - len(ours) - len(theirs)
    fewer = min(len(ours), len(theirs))
    return Comparison(
        math.exp(statistics.median(log_ratios)), low, high, fewer, left_out, "CPU" if clock is cpu_time else "wall"
    )


def same_blocks(samples: Sequence[Sample], baseline: Sequence[Sample]) -> bool:
    """Whether some block of some run holds one of each."""
    return compare(samples, baseline) is not None


@functools.cache
def rank_of_interval(ours: int, theirs: int) -> int | None:
    """Which of the ordered ratios, from either end, bounds the interval; None where even the outermost does not.

    >>> [rank_of_interval(number, number) for number in (3, 4, 10)]
    [None, 0, 23]
    """
    arrangements = math.comb(ours + theirs, ours)
    within_tail = [
        wins
        for wins, below in enumerate(accumulate(arrangements_by_wins(ours, theirs)))
        if below <= (1 - CONFIDENCE) / 2 * arrangements
    ]
    return within_tail[-1] if within_tail else None


def arrangements_by_wins(ours: int, theirs: int) -> list[int]:
    """In how many orders of all samples each number of pairs, from none to all, has ours before theirs.

    >>> arrangements_by_wins(2, 2)
    [1, 1, 2, 1, 1]
    """
    counts = [1]
    for taken in range(1, ours + 1):
        # The q-binomial coefficient, factor by factor: (1 - q^(theirs + taken)) / (1 - q^taken).
        longer = counts + [0] * (theirs + taken)
        for place, number in enumerate(counts):
            longer[place + theirs + taken] -= number
        for place in range(taken, len(longer)):
            longer[place] += longer[place - taken]
        counts = longer[: taken * theirs + 1]
    return counts
