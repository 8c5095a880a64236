"""What flat is told of inherited merges: ids for bytes, no merge that cannot be made, and a veto by its number.

The compiled encoder wants merges whose halves are made before them, each token made once. A list that was learned is
such a one. Under `met` others can be inherited too (extending.py): then a merge whose half no merge before it makes is
left out here, and of two that spell one token it is first asked whether both are met.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from variants.contract import LARGEST_COUNT, Merge, Veto
from variants.extending import check_inherited
from variants.vetoes import Longest, superbpe

FIRST_BYTE, FIRST_MERGE = 2, 258
"""The ids of the byte 0 and of the first merge's token in flat_job.hpp."""

KINDS = ("none", "superbpe", "bytes", "characters", "asked")
"""Veto::Kind in flat_refusals.hpp."""

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


def compiled(veto: Veto | None) -> tuple[int, Any]:
    """A veto as the compiled part takes it: its number in KINDS, and how long, or whom to ask.

    >>> compiled(None), compiled(superbpe), compiled(Longest(16, "bytes"))
    ((0, 0), (1, 0), (2, 16))
    """
    if veto is None or veto is superbpe:
        return (KINDS.index("none" if veto is None else "superbpe"), 0)
    if isinstance(veto, Longest):
        return KINDS.index(veto.unit), min(veto.most, LARGEST_COUNT)
    return KINDS.index("asked"), veto


def going_on(ids: Ids, inheriting: str, veto: Veto | None) -> dict[str, Any]:
    """What the compiled function is told beside the text, to go on from merges."""
    return {"inherited": ids, "dropping": inheriting == "met", "veto": compiled(veto)}
