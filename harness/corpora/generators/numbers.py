"""Random numbers that are the same everywhere: splitmix64 and weights cumulated as integers, no floating point.

Steele, Lea and Flood's splitmix64 is a counter that is mixed, so a block of numbers is made at once, exactly, in 64-bit
integers. What is made of them depends on the seed alone: not on the processor, the C library or the version of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Unsigned: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.int64]

GAMMA = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mixed(states: Unsigned) -> Unsigned:
    """Each state's number."""
    mixed = (states ^ (states >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class Numbers:
    """The endless sequence of one seed.

    >>> Numbers(1234567).take(3).tolist()
    [6457827717110365317, 3203168211198807973, 9817491932198370423]
    """

    def __init__(self, seed: int) -> None:
        self.state = seed & MASK

    def stream(self) -> Numbers:
        """Another sequence, begun with the next number of this one."""
        return Numbers(int(self.take(1)[0]))

    def take(self, number: int) -> Unsigned:
        """The next `number` 64-bit numbers."""
        steps = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(GAMMA)
        self.state, before = (self.state + number * GAMMA) & MASK, np.uint64(self.state)
        return mixed(steps + before)

    def below(self, bound: int, number: int) -> Integers:
        """`number` numbers from 0 to `bound` - 1, where `bound` is at most 2**32."""
        high = self.take(number) >> np.uint64(32)
        return ((high * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)

    def shuffled(self, number: int) -> Integers:
        """0 to `number` - 1 in random order."""
        return np.argsort(self.take(number), kind="stable")


class Choice:
    """A choice among weights: place i comes up in proportion to weights[i].

    >>> Choice([3, 0, 1]).draw(Numbers(7), 8).tolist()
    [0, 0, 2, 0, 0, 0, 0, 0]
    """

    def __init__(self, weights: Sequence[int]) -> None:
        self.cumulated = np.cumsum(np.array(weights, dtype=np.int64))

    def draw(self, numbers: Numbers, number: int) -> Integers:
        places = numbers.below(int(self.cumulated[-1]), number)
        return np.searchsorted(self.cumulated, places, side="right").astype(np.int64)


def falling(number: int, shift: int = 2) -> list[int]:
    """Weights in proportion to 1 / (rank + shift), the law of Zipf and Mandelbrot with the exponent 1."""
    return [(1 << 20) // (rank + shift) for rank in range(1, number + 1)]
