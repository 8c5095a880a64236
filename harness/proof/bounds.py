"""How far a list of merges can be made at once: its rounds.

results/bounds/README.md defines them, and compares the board's times with what reading alone takes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from variants.contract import Merge


def rounds(merges: Iterable[Merge]) -> list[int]:
    """The round of each merge, from 1: one more than that of any earlier merge that it waits for.

    A merge waits for those that make one of its tokens, and for those whose pair can share a token
    with its own pair in a text: the right token of one is the left token of the other.

    >>> rounds([(b"t", b"h"), (b"i", b"n"), (b"th", b"e"), (b"e", b"n"), (b"in", b"g")])
    [1, 1, 2, 3, 2]
    """
    making: dict[bytes, int] = defaultdict(int)
    on_the_left: dict[bytes, int] = defaultdict(int)
    on_the_right: dict[bytes, int] = defaultdict(int)

    found = []
    for left, right in merges:
        before = max(making[left], making[right], on_the_right[left], on_the_left[right])
        number = before + 1
        found.append(number)

        token = left + right
        making[token] = max(making[token], number)
        on_the_left[left] = max(on_the_left[left], number)
        on_the_right[right] = max(on_the_right[right], number)
    return found
