"""What a machine can tell apart, from pairs of samples of one and the same program.

Between such samples there is no difference, so a difference that is found is a false alarm; and adding one to their
ratios shows which would have been found. Only the verdict of `harness.comparison` is tried here, not another.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.comparison import MARGIN, Sample, cpu_time, differ, interval, wall_time

POWER = 0.95
"""How often a difference must be found for the machine to be said to resolve it."""
DRAWS = 1000

Pair = tuple[Sample, Sample]
LogRatios = Sequence[float | None]
"""The logarithm of a pair's ratio; None for a pair that was too disturbed to be compared."""


@dataclass(frozen=True)
class Way:
    """A way to compare samples: by which clock, and whether disturbed pairs are left out."""

    clock: str
    filtered: bool = False

    @property
    def name(self) -> str:
        return f"{self.clock} time{', disturbed blocks left out' if self.filtered else ''}"

    def log_ratios(self, pairs: Iterable[Pair]) -> list[float | None]:
        """Of every pair, in order; nothing for pairs that lack what the way needs."""
        time = cpu_time if self.clock == "CPU" else wall_time
        return [
            None if self.filtered and (first.pressed or second.pressed) else math.log(time(second) / time(first))
            for first, second in pairs
        ]


def ways(pairs: Sequence[Pair]) -> list[Way]:
    """Those for which the pairs hold what is needed: CPU time of one thread, wall time, pressure."""
    samples = [sample for pair in pairs for sample in pair]
    found = [Way("CPU")] if all(sample.one_thread for sample in samples) else []
    found.append(Way("wall"))
    return [*found, Way("wall", filtered=True)] if all(sample.pressure is not None for sample in samples) else found


def found_different(log_ratios: LogRatios, shift: float = 0.0) -> bool:
    """Whether these blocks are found to differ, with the logarithm of a planted ratio added to each."""
    low, high = interval([ratio + shift for ratio in log_ratios if ratio is not None])
    return low is not None and high is not None and differ(math.exp(low), math.exp(high))


def windows(log_ratios: LogRatios, blocks: int) -> list[LogRatios]:
    """The ratios cut into as many comparisons of so many blocks as there are, none used twice.

    >>> windows([0.1, 0.2, 0.3, 0.4, 0.5], 2)
    [[0.1, 0.2], [0.3, 0.4]]
    """
    return [log_ratios[start : start + blocks] for start in range(0, len(log_ratios) - blocks + 1, blocks)]


def alarms(log_ratios: LogRatios, blocks: int, planted: float = 0.0) -> tuple[int, int]:
    """In how many of how many comparisons of `blocks` blocks a difference was found, with one planted or none."""
    compared = windows(log_ratios, blocks)
    return sum(found_different(window, math.log1p(planted)) for window in compared), len(compared)


def detectable(log_ratios: LogRatios, blocks: int, seed: int = 0) -> float | None:
    """The smallest slow-down that is found by `blocks` blocks as often as POWER says; None if none can be.

    Blocks are drawn from those measured, either way round, for which of the two was first was left to chance.
    """
    draw = random.Random(seed)
    both = [*log_ratios, *(None if ratio is None else -ratio for ratio in log_ratios)]
    needed = sorted(_needed(draw.choices(both, k=blocks)) for _ in range(DRAWS))
    # The smallest that is enough for this share of the draws.
    enough = needed[math.ceil(POWER * DRAWS) - 1]
    return None if math.isinf(enough) else math.expm1(enough)


def _needed(window: LogRatios) -> float:
    """What has to be added to a window's ratios so that a slow-down is found."""
    low, high = interval([ratio for ratio in window if ratio is not None])
    if low is None or high is None:
        return math.inf
    return max(-low, math.log1p(MARGIN) - high, 0.0)


def rate_interval(some: int, of: int) -> tuple[float, float]:
    """Between which rates `some` of `of` may lie, with 95 % confidence.

    >>> [round(end, 3) for end in rate_interval(0, 246)]
    [0.0, 0.015]
    """
    from scipy.stats import binomtest  # here: see harness.comparison

    found = binomtest(some, of).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)
