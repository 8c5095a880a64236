"""Random tables of words, lists of merges to go on from or to judge, and what a trainer makes of
them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from variants import naive_extending
from variants.contract import Merge, WordCounts


def swapped_words(left: bytes, right: bytes) -> bool:
    """A veto of one's own: no token of which the left half is the longer."""
    return len(left) > len(right)


def learned_or_refused(
    train: Callable[..., Sequence[Merge]], *arguments: Any, **keywords: Any
) -> Any:
    """The merges, or the sentence of a refusal."""
    try:
        return train(*arguments, **keywords)
    except ValueError as error:
        return str(error)


def random_pieces(dice: random.Random) -> dict[bytes, int]:
    """Some pieces over few letters; some are long runs, and some characters have three bytes."""
    letters = dice.sample(["a", "b", " ", ":", "\n", "é", "法", "律"], dice.randint(1, 5))
    pieces = {}
    for _ in range(dice.randint(1, 25)):
        piece = "".join(dice.choices(letters, k=dice.choice((3, 12, 12, 90))))
        if dice.random() < 0.1:
            piece += letters[0] * dice.randint(2, 120)
        pieces[piece.encode()] = dice.choice((1, 1, 2, 3, 2**33))
    return pieces


def random_list(dice: random.Random, pieces: dict[bytes, int]) -> tuple[list[Merge], str]:
    """Merges learned from these pieces or others; under `met` some are missing, out of order or
    there twice.
    """
    learned_from = pieces if dice.random() < 0.7 else random_pieces(dice)
    inherited = naive_extending.train(
        WordCounts.from_items(learned_from.items()), dice.choice((0, 3, 15, 40))
    )
    if dice.random() < 0.1:  # no order in which all halves are made
        return dice.sample(inherited, len(inherited)), dice.choice(("kept", "met"))
    if dice.random() < 0.5:
        return inherited, "kept"
    inherited = [merge for merge in inherited if dice.random() < 0.9]
    if dice.random() < 0.3:
        inherited = dice.sample(inherited, len(inherited)) + inherited[:2]
    return inherited, "met"


def random_table(dice: random.Random) -> dict[bytes, int]:
    """Up to thirty words over one to four symbols, short or long, a few with weights beyond 16 and
    32 bits.
    """
    alphabet = dice.sample((0x00, 0x01, ord("a"), ord("b"), 0xFF), dice.randint(1, 4))
    longest = dice.choice((4, 16, 60))
    heavy = (2**16 - 1, 2**16, 2**16 + 1, 2**31, 2**32 + 1, 2**55)
    return {
        bytes(dice.choices(alphabet, k=dice.randint(1, longest))): (
            dice.randint(1, 6) if dice.random() < 0.95 else dice.choice(heavy)
        )
        for _ in range(dice.randint(1, 30))
    }


def spoilt(merges: Sequence[Merge], dice: random.Random) -> list[Merge]:
    """The list with one thing wrong, or perhaps not wrong."""
    spoilt = list(merges)
    at, way = dice.randrange(len(spoilt)) if spoilt else 0, dice.randrange(7)
    if way == 0:
        del spoilt[at:]
    elif way == 1:
        del spoilt[at : at + 1]
    elif way == 2:
        spoilt[at : at + 2] = reversed(spoilt[at : at + 2])
    elif way == 3:
        spoilt.insert(at, dice.choice(spoilt or [(b"a", b"b")]))
    elif way == 4:
        tokens = [bytes((byte,)) for byte in (0, 1, ord("a"), ord("b"), 255)] + [
            a + b for a, b in spoilt[:at]
        ]
        spoilt.insert(at, (dice.choice(tokens), dice.choice(tokens)))
    elif way == 5:
        spoilt[at:] = [dice.choice(merges or [(b"a", b"b")])]
    return spoilt
