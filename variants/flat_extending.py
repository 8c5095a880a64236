"""How flat gets inherited merges and a veto: ids for bytes, no merge that cannot be made, pieces cut.

The compiled encoder wants merges whose halves are made before them, each token made once. A list that was learned is
such a one. Under `met` others can be inherited too (extending.py): then a merge whose half no merge before it makes is
left out here, and for two that spell one token, whether both are met is decided first.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from variants.contract import Merge, Veto, WordCounts
from variants.extending import check_inherited
from variants.vetoes import Limits, limits_of, whole_characters

FIRST_BYTE, FIRST_MERGE = 2, 258
"""The ids of the byte 0 and of the first merge's token in flat_tokens.hpp."""

Ids = tuple["array[int]", "array[int]"]
Met = Callable[[Ids], Sequence[bool]]


def numbered(inherited: Sequence[Merge], inheriting: str, num_merges: int, met: Met) -> Ids:
    """The ids of the left and of the right halves of the merges that pieces are to be encoded by.

    `met` tells of some merges which are met in these pieces. Raises ValueError for a list that cannot be inherited.
    """
    check_inherited(inherited, inheriting, num_merges)
    candidates = list(enumerate(inherited, 1))
    while True:
        ids = {bytes((byte,)): FIRST_BYTE + byte for byte in range(256)}
        lefts, rights = array("I"), array("I")
        stays: list[tuple[int, Merge]] = []
        for number, (left, right) in candidates:
            if left not in ids or right not in ids:
                continue
            lefts.append(ids[left])
            rights.append(ids[right])
            if left + right in ids:
                break
            ids[left + right] = FIRST_MERGE + len(stays)
            stays.append((number, (left, right)))
        else:
            return lefts, rights
        # Which of those before it are met does not depend on what comes later.
        *were_met, is_met = met((lefts, rights))
        stays = [stay for stay, was_met in zip(stays, were_met) if was_met]
        if is_met and any(left + right == one + other for _, (one, other) in stays):
            raise ValueError(f"inherited merge {number} spells the token {left + right!r} a second time; leave one out")
        this = [each for each, _ in candidates].index(number)
        candidates = stays + candidates[this + (not is_met) :]


def bytes_apart(limits: Limits) -> tuple[bytes, Limits]:
    """The protected bytes, which need no veto if the pieces are cut at them, and what else is refused."""
    singles = b"".join(token for token in limits.protected if len(token) == 1)
    return singles, limits._replace(protected=tuple(token for token in limits.protected if len(token) > 1))


def is_bounded(veto: Veto | None) -> bool:
    """Whether every piece of UTF-8 that is not one token holds a pair that may be merged, if cut at protected bytes."""
    return bytes_apart(limits_of(veto))[1] in (limits_of(None), limits_of(whole_characters))


def cut_at(columns: Sequence[memoryview], singles: bytes) -> list[memoryview]:
    """The columns of the parts of the words between these bytes."""
    places = re.compile(b"[" + re.escape(singles) + b"]")
    items = WordCounts(*columns).items()
    parts = WordCounts.from_items((part, count) for word, count in items for part in places.split(word) if part)
    return [parts.data, parts.offsets, parts.counts]


def extension_arguments(inheriting: str, veto: Veto | None) -> dict[str, Any]:
    """Arguments of the compiled function, in addition to the text, to go on from merges."""
    return {"dropping": inheriting == "met", "veto": limits_of(veto)}
