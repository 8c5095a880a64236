"""One pre-token merged: of all neighbours the two whose merge was learned first, the leftmost of equals, until none is.

For merges that training has learned this is making every merge in turn, everywhere from the left: a merge only ever
makes neighbours whose own merges came later. Other programs' lists need not be so, and are merged as they merge them.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import TypeVar

Token = TypeVar("Token")

LONGEST_SCANNED = 24
"""Above so many tokens a heap is faster than looking through the ranks of all neighbours."""

_NEVER = 1 << 62
_PLACES = 40
_PLACE = (1 << _PLACES) - 1


def join(
    tokens: list[Token], ranks: Mapping[tuple[Token, Token], int], made: Sequence[Token], limit: int = _NEVER
) -> list[Token]:
    """The tokens merged by the merges of ranks below `limit`; merge number n makes the token `made[n]`.

    >>> join([b"a", b"a", b"b"], {(b"a", b"b"): 0, (b"a", b"ab"): 1}, [b"ab", b"aab"])
    [b'aab']
    """
    if len(tokens) > LONGEST_SCANNED:
        return by_heap(tokens, ranks, made, limit)
    return by_scan(tokens, ranks, made, limit)


def by_scan(
    tokens: list[Token], ranks: Mapping[tuple[Token, Token], int], made: Sequence[Token], limit: int = _NEVER
) -> list[Token]:
    """Look through the ranks of all neighbours for each merge: the work is the square of the length, in C."""
    merged = list(tokens)
    found = [ranks.get(pair, _NEVER) for pair in zip(merged, merged[1:], strict=False)]
    while found and (rank := min(found)) < limit:
        place = found.index(rank)
        merged[place : place + 2] = [made[rank]]
        del found[place]
        if place < len(found):
            found[place] = ranks.get((merged[place], merged[place + 1]), _NEVER)
        if place:
            found[place - 1] = ranks.get((merged[place - 1], merged[place]), _NEVER)
    return merged


def by_heap(
    tokens: list[Token], ranks: Mapping[tuple[Token, Token], int], made: Sequence[Token], limit: int = _NEVER
) -> list[Token]:
    """Keep (rank, place) in a heap and the tokens in a chain: the work is the length times its logarithm.

    `found[place]` is the rank of the pair that begins there; an entry of the heap with another rank is out of date.
    """
    merged = list(tokens)
    end = len(merged)
    after = list(range(1, end + 1))
    before = list(range(-1, end - 1))
    found = [ranks.get(pair, _NEVER) for pair in zip(merged, merged[1:], strict=False)]
    found.append(_NEVER)
    heap = [rank << _PLACES | place for place, rank in enumerate(found) if rank < limit]
    heapq.heapify(heap)
    gone = bytearray(end)
    while heap:
        entry = heapq.heappop(heap)
        rank, place = entry >> _PLACES, entry & _PLACE
        if found[place] != rank:
            continue
        token = merged[place] = made[rank]
        right = after[place]
        gone[right] = 1
        found[right] = found[place] = _NEVER
        follower = after[place] = after[right]
        if follower < end:
            before[follower] = place
            found[place] = rank = ranks.get((token, merged[follower]), _NEVER)
            if rank < limit:
                heapq.heappush(heap, rank << _PLACES | place)
        if (left := before[place]) >= 0:
            found[left] = rank = ranks.get((merged[left], token), _NEVER)
            if rank < limit:
                heapq.heappush(heap, rank << _PLACES | left)
    return [token for token, away in zip(merged, gone, strict=True) if not away]
