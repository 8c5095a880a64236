"""The merges behind tokens, for packages that tell what they have learned and not what it was made of.

Two different merges never give the same bytes, and a token's parts are what the merges before it leave of its bytes.
Finding them is some hundredths of the time of training, and is measured with it, since nobody can have the merges
without.
"""

from __future__ import annotations

from typing import AnyStr

BYTES = [bytes((byte,)) for byte in range(256)]


def merges_of(tokens: list[AnyStr], single: int = 256) -> list[tuple[AnyStr, AnyStr]]:
    """The merges behind tokens in the order of their ids, of which the first `single` were there from the beginning.

    >>> merges_of([*BYTES, b"ab", b"abab"])
    [(b'a', b'b'), (b'ab', b'ab')]
    """
    rank_of = {token: rank for rank, token in enumerate(tokens)}
    return [parts_of(token, rank, rank_of) for rank, token in enumerate(tokens) if rank >= single]


def parts_of(token: AnyStr, rank: int, rank_of: dict[AnyStr, int]) -> tuple[AnyStr, AnyStr]:
    """The two parts that a token was made of: the only two known ones, or those that earlier merges leave of it."""
    possible = [
        (token[:cut], token[cut:])
        for cut in range(1, len(token))
        if rank_of.get(token[:cut], rank) < rank and rank_of.get(token[cut:], rank) < rank
    ]
    if len(possible) == 1:
        return possible[0]
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 2:
        ranks = [rank_of.get(left + right, rank) for left, right in zip(parts, parts[1:])]
        place = ranks.index(min(ranks))
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts[0], parts[1]
