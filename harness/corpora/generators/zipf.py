"""Counts by the law of Zipf and Mandelbrot, exactly, for a vocabulary that grows as Heaps's law says.

In a text whose word of rank r has a share of 1 / (r + shift) ** exponent, the rarest word that has been met so far has
been met once. So a table of V words has counts of ((V + shift) / (r + shift)) ** exponent, rounded down, and belongs to
a text whose length grows as V ** exponent: the vocabulary grows as the length to the power 1 / exponent, which is
Heaps's law. A table of fewer words is the table of an earlier moment in the same text.

An exponent is a fraction whose denominator is a power of two: roots of it are square roots of integers.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from harness.common.errors import Refusal
from harness.corpora.generators.numbers import Unsigned


class ZipfCounts:
    """The counts of a table of so many words, by rank from 1."""

    def __init__(self, words: int, numerator: int, denominator: int, shift: int) -> None:
        """The exponent is `numerator` / `denominator`. Raises Refusal for a law that cannot be computed exactly."""
        if not (1 <= denominator <= 64 and denominator & (denominator - 1) == 0):
            raise Refusal(f"exponent_denominator={denominator} is not one of 1, 2, 4, 8, 16, 32, 64")
        if not denominator < numerator <= 4 * denominator:
            raise Refusal(f"the exponent {numerator}/{denominator} is not above 1 and at most 4")
        self.words = words
        self.numerator = numerator
        self.roots = denominator.bit_length() - 1
        self.shift = shift
        self.rarest = (words + shift) ** numerator

    def count(self, rank: int) -> int:
        """The whole part of ((words + shift) / (rank + shift)) ** exponent.

        >>> [ZipfCounts(100, 3, 2, 0).count(rank) for rank in (1, 25, 100)]
        [1000, 8, 1]
        """
        power: int = self.rarest // (rank + self.shift) ** self.numerator
        for _ in range(self.roots):
            power = isqrt(power)
        return power

    def counts(self, first: int, stop: int) -> Unsigned:
        """The counts of the ranks from `first` up to `stop`: they only fall, so few have to be computed."""
        counts = np.empty(stop - first, dtype=np.uint64)
        parts = [(first, self.count(first), stop - 1, self.count(stop - 1))] if stop > first else []
        while parts:
            low, most, high, least = parts.pop()
            if most == least:
                counts[low - first : high - first + 1] = most
                continue
            middle = (low + high) // 2
            parts.append((low, most, middle, self.count(middle)))
            parts.append((middle + 1, self.count(middle + 1), high, least))
        return counts
