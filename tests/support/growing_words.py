"""Words of any size in the shapes that make tokens long, or alike: what a trainer does on them must
grow with their size.
"""

from __future__ import annotations

import random


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


SHAPES = (
    one_letter,
    fibonacci,
    copies,
    beginning_alike,
    growing_token,
    tiny,
)
