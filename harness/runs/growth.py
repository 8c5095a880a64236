"""How a figure grows with the size of the text: a power law through measured slices, with an interval that widens.

The exponent is that of the logarithms' least squares, larger slices weighing more, drawn to what is usual where there
is little to see. An interval is meant to hold the truth nine times in ten. A corpus whose sources stand one behind the
other grows in no one way: where the smaller slices were wrong about a larger one, the exponent is doubted by as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.runs.extrapolation import QUANTILE, fitted

LARGEST = 1e21
"""Bytes; nobody has so much text."""


@dataclass(frozen=True)
class Kind:
    """What is known of a figure before it is measured.

    `usual` is its exponent over the text's bytes with the doubt of that, `noise` how far one measurement may be off,
    `drift` how far the exponent may change beyond the slices. `from_nothing` says that there is nothing of it without
    text: the others have the smallest slice's figure taken away, which is mostly the process's own.
    """

    name: str
    usual: tuple[float, float]
    noise: float
    drift: float
    from_nothing: bool = True


WORDS = Kind("distinct words", (0.6, 0.2), 0.05, 0.06)
REPEATED = Kind("words seen twice or more", (0.6, 0.2), 0.05, 0.06)
TABLE = Kind("bytes of their table", (0.62, 0.2), 0.05, 0.06)
COUNTING_SECONDS = Kind("seconds of counting", (1.0, 0.1), 0.2, 0.06)
COUNTING_MEMORY = Kind("memory of counting", (0.6, 0.25), 0.3, 0.1, from_nothing=False)
TRAINING_SECONDS = Kind("seconds of training", (0.7, 0.3), 0.2, 0.12, from_nothing=False)
TRAINING_MEMORY = Kind("memory of training", (0.6, 0.25), 0.15, 0.1, from_nothing=False)
KINDS = (WORDS, REPEATED, TABLE, COUNTING_SECONDS, COUNTING_MEMORY, TRAINING_SECONDS, TRAINING_MEMORY)


@dataclass(frozen=True)
class Expected:
    """A figure at a size, and the interval that holds it."""

    value: float
    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Growth:
    """A figure as a function of the text's bytes: `base` and `level` times a power of the bytes over `at`."""

    kind: Kind
    base: float
    level: float
    at: float
    exponent: float
    doubt: float
    scatter: float
    missed: float = 0.0
    """By how much exponents that smaller slices told were off for larger ones, beyond what noise explains."""

    def expected(self, size: float) -> Expected:
        distance = math.log(size / self.at)
        wide = QUANTILE * math.hypot(self.scatter, max(self.doubt, self.missed) * distance)
        middle = self.level * math.exp(self.exponent * distance)
        return Expected(*(self.base + middle * math.exp(sign * wide) for sign in (0, -1, 1)))

    def miss(self, size: float, value: float) -> float:
        """By how much its exponent is off, at least, if the figure is `value` at `size`."""
        if value <= self.base or size <= self.at:
            return 0.0
        ratio = (value - self.base) / (self.expected(size).value - self.base)
        noise = math.hypot(self.scatter, self.kind.noise * value / (value - self.base))
        return max(0.0, abs(math.log(ratio)) - QUANTILE * noise) / math.log(size / self.at)

    def reaches(self, most: float) -> Expected:
        """The bytes of text at which the figure is `most`; as an interval, the earliest and the latest."""

        def first(bound: str) -> float:
            low, high = math.log(self.at) - 40, math.log(LARGEST)
            for _ in range(80):
                middle = (low + high) / 2
                low, high = (middle, high) if getattr(self.expected(math.exp(middle)), bound) < most else (low, middle)
            return math.exp(high)

        return Expected(first("value"), first("high"), first("low"))


def growth(kind: Kind, slices: Sequence[tuple[int, float]]) -> Growth | None:
    """The growth through (bytes of text, figure) of slices; None of fewer than two that tell it.

    >>> found = growth(WORDS, [(10**6, 1000.0), (10**7, 4000.0), (10**8, 16000.0)])
    >>> round(found.exponent, 1), round(found.expected(10**9).value, -4)
    (0.6, 60000.0)
    """
    ordered = sorted(slices)
    base = 0.0
    if not kind.from_nothing and len(ordered) > 2:
        base, ordered = ordered[0][1], ordered[1:]
    samples = [(float(size), value - base, float(size)) for size, value in ordered if value > base]
    if len({size for size, *_ in samples}) < 2:
        return None
    at, last, _ = samples[-1]
    exponent, doubt, level, scatter = fitted(samples, at, kind.usual, kind.noise)
    smaller = growth(kind, sorted(slices)[:-1])
    return Growth(
        kind,
        base,
        math.sqrt(level * last),  # the largest slice is the nearest to what is asked for
        at,
        exponent,
        math.hypot(doubt, kind.drift),
        math.hypot(scatter, kind.noise),
        0.0 if smaller is None else max(smaller.missed, smaller.miss(*max(slices))),
    )
