"""Random tables of words, lists of merges to go on from or to judge, and what a trainer makes of
them.
"""

import random
from collections.abc import Sequence

from harness.proof.cases import random_words
from variants import naive_extending
from variants.contract import Merge, WordCounts

VETOES = (
    "none", "superbpe", "bytes:3", "characters:2", "whole_characters",
    "[whole_characters,bytes:6]", "random_extensions:swapped_words",
    "[protected:61.e6b395,whole_characters]", "protected:61.e6",
)  # fmt: skip


def swapped_words(left: bytes, right: bytes) -> bool:
    """A veto of one's own: no token of which the left half is the longer."""
    return len(left) > len(right)


def random_pieces(dice: random.Random) -> dict[bytes, int]:
    """Some pieces over few letters; some are long runs, and some characters have three bytes."""
    letters = dice.sample("ab :\né法律", dice.randint(1, 5))
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
    words = WordCounts.from_items(learned_from.items())
    inherited = naive_extending.train(words, dice.choice((0, 3, 15, 40)))

    inheriting = dice.choice(("kept", "met"))
    if inheriting == "met":
        inherited = [merge for merge in inherited if dice.random() < 0.9]
        if dice.random() < 0.3:
            inherited = dice.sample(inherited, len(inherited)) + inherited[:2]
    elif dice.random() < 0.1:  # no order in which all halves are made
        dice.shuffle(inherited)
    return inherited, inheriting


def random_table(dice: random.Random) -> dict[bytes, int]:
    """Up to thirty words over one to four symbols, short or long, some with weights beyond 16 and
    32 bits.
    """
    letters = dice.sample(b"\x00\x01ab\xff", dice.randint(1, 4))
    table = random_words(dice, letters, dice.randint(1, 30), dice.choice((4, 16, 60)))
    heavy = (2**16 - 1, 2**16, 2**16 + 1, 2**31, 2**55)
    for word in table:
        if dice.random() < 0.05:
            table[word] = dice.choice(heavy)
    return table


def spoilt(merges: Sequence[Merge], dice: random.Random) -> list[Merge]:
    """The list with some merges left out, swapped, repeated or inserted, or perhaps as it was."""
    spoilt = list(merges)
    at = dice.randint(0, len(spoilt))
    tokens = [bytes((byte,)) for byte in b"\x00\x01ab\xff"] + [a + b for a, b in spoilt[:at]]
    other = (dice.choice(tokens), dice.choice(tokens))

    stop = dice.choice((at, at + 1, at + 2, len(spoilt)))
    spoilt[at:stop] = dice.choice(([], [other], spoilt[:1], spoilt[at : at + 2][::-1]))
    return spoilt
