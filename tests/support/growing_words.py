"""Words of any size in the shapes that make tokens long, or alike: what a trainer does on them must
grow with their size.
"""

import functools
import random
from collections.abc import Callable

from variants.contract import WordCounts

Shape = Callable[[int], dict[bytes, int]]
MOST = 2.6
"""Times the work for twice the words."""


@functools.cache
def one_word(length: int, seed: int = 0) -> WordCounts:
    """One word of four letters at random."""
    return WordCounts.from_items([(bytes(random.Random(seed).choices(b"ACGT", k=length)), 1)])


def expect_growth(shape: Shape, size: int, work: Callable[[WordCounts], int]) -> None:
    """Fail if twice the words are more than 2.6 times the work."""
    once, twice = (work(WordCounts.from_items(shape(times * size).items())) for times in (1, 2))
    assert twice <= MOST * once


def fibonacci(size: int) -> dict[bytes, int]:
    before, word = b"a", b"ab"
    while len(word) < size:
        before, word = word, word + before
    return {word[:size]: 1}


def copies(size: int) -> dict[bytes, int]:
    return {bytes(random.Random(5).choices(b"abcdefghij", k=size // 4)) * 4: 1}


def beginning_alike(size: int) -> dict[bytes, int]:
    dice = random.Random(5)
    return {b"a" * 40 + bytes(dice.choices(b"bcdefghi", k=20)): 1 for _ in range(size // 60)}


def growing_token(size: int) -> dict[bytes, int]:
    """One word whose first token takes in a byte with almost every merge."""
    return {b"\xff" + bytes(random.Random(5).choices(range(200), k=size)): 1}


def tiny(size: int) -> dict[bytes, int]:
    return {number.to_bytes(3, "little"): 1 + number % 7 for number in range(size // 3)}


def one_letter(size: int) -> dict[bytes, int]:
    return {b"a" * size: 1}


SHAPES: tuple[Shape, ...] = (
    one_letter,
    fibonacci,
    copies,
    beginning_alike,
    growing_token,
    tiny,
)
