"""Extending: training that goes on from merges which are already made. `naive_extending` is the
definition.

The pieces are first encoded by the inherited merges: each in its turn, in the order of the list, is
made everywhere, left to right. Then training goes on as ever, with the pairs that the pieces then
hold, and a veto (see vetoes.py) may refuse some. Two ways to inherit:

- `kept`: every inherited merge stays, whether its pair was met or not, so every old id stays what
  it was. What one expects of extending a tokenizer.
- `met`: a merge is dropped, with its token, if one of its halves is not a token then, or its pair
  was never met. A pair is met if it occurred at the start, or after some inherited merge was made;
  being merged makes it unmet. One that was met and was used up before its turn is kept, with a
  token that occurs nowhere. What SuperBPE's trainer does (`trainer.rs` of its fork of tokenizers,
  on which its published lists rest).

A token is spelled once. Two different inherited merges that spell the same token are refused, and a
pair that would spell an inherited token anew is refused like one under a veto. That takes a list
which could not have been learned: where merges were learned in their order, a token's bytes are
always encoded to that token, so no two others spell them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Callable

from variants.contract import Merge, Veto

INHERITING = ("kept", "met")


def check_inherited(inherited: Sequence[Merge], inheriting: str, num_merges: int) -> None:
    """Raise ValueError for what cannot be inherited, as far as that is known without any text."""
    if inheriting not in INHERITING:
        raise ValueError(f"inheriting is {inheriting!r}; it is 'kept' or 'met'")
    if inherited and num_merges < len(inherited):
        raise ValueError(
            f"num_merges={num_merges} is below the {len(inherited)} merges that are inherited; they count among it"
        )

    made: dict[bytes, Merge | None] = {bytes((byte,)): None for byte in range(256)}
    for number, merge in enumerate(inherited, 1):
        token, missing = b"".join(merge), [half for half in merge if half not in made]
        if missing and inheriting == "kept":
            raise ValueError(
                f"inherited merge {number} needs the token {missing[0]!r}, which no merge before it makes; put the "
                "merges in the order in which they were learned, or inherit those that are met"
            )
        if token in made and (inheriting == "kept" or made[token] != merge):
            raise ValueError(
                f"inherited merge {number} spells the token {token!r} a second time; leave one out"
            )
        made[token] = merge


def inherit(
    inherited: Sequence[Merge],
    inheriting: str,
    standing: Iterable[Merge],
    make: Callable[[Merge], Iterable[Merge]],
) -> None:
    """Make those of the inherited merges that are not dropped, one after the other.

    `standing` are the pairs that occur before. `make` makes a merge everywhere, whether its pair
    occurs or not, and returns pairs that occur after it, the new ones among them.
    """
    met = set(standing)
    for pair in inherited:
        if inheriting == "met" and pair not in met:
            continue
        met.discard(pair)
        met.update(make(pair))


class Refused:
    """Whether a pair may not be merged: it is under the veto, or spells an inherited token
    again.
    """

    def __init__(self, inherited: Sequence[Merge], veto: Veto | None) -> None:
        self.veto = veto
        self.spelled = {left + right for left, right in inherited}

    def __call__(self, left: bytes, right: bytes) -> bool:
        return (
            self.veto is not None and bool(self.veto(left, right))
        ) or left + right in self.spelled
