"""Flat: the fastest exact trainer here. All words in one flat text, and nothing looked at that a
merge leaves alone.

Against seg_status, which it has the positions and the lists from, everything is compiled, and ideas
are added, explained with proofs in docs/explanation/flat.md. Three are parameters, true by default;
switching one off changes the time and the memory, never the merges.

- `layout`: words of equal weight stand together in blocks, so a position's weight is one look into
  a small array.
- `accumulators`: the changes of a merge are summed by neighbour in arrays; the pair table hears the
  sums.
- `pruning`: pairs that can never be merged are not kept. What can is known from the words' weights,
  or guessed and checked.

Without the compiled module the variant is not available: it never runs as something slower under
this name.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from variants.contract import (
    GREATEST_BYTES,
    LARGEST_COUNT,
    NULL_METER,
    Merge,
    Meter,
    TieBreak,
    Veto,
    WordCounts,
)
from variants.extending import check_inherited
from variants.native import built, loading
from variants.vetoes import Limits, limits_of, whole_characters

IDEAS = ("layout", "accumulators", "pruning")
"""The parameters that switch an idea off, in the order of their bits."""

FIRST_BYTE = 2
"""The id of the byte 0 in flat_tokens.hpp."""

before_the_clock = loading("_flat")


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    threads: int = 1,
    layout: bool = True,
    accumulators: bool = True,
    pruning: bool = True,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
) -> Sequence[Merge]:
    """Learn merges, compiled; the GIL is free meanwhile, and several threads may train at once.

    `threads` lay the words out and count them for the first time; the merges are made by one.
    Raises Unavailable where the compiled module was not built, ValueError for a table that cannot
    be trained on, and MemoryError when an allocation fails.

    It can go on from merges that are already made (extending.py, native/flat.hpp): the pieces are
    encoded by them, and from there on a token is what a byte was. They are laid out by weight then
    in any case. Of vetoes it keeps its certain bound under `whole_characters`, if all words are
    UTF-8, and where single bytes are protected, at which it cuts words.
    """
    columns = [word_counts.data, word_counts.offsets, word_counts.counts]
    return train_on(
        columns,
        num_merges,
        meter,
        tie_break=tie_break,
        min_count=min_count,
        threads=threads,
        ideas=layout | accumulators << 1 | pruning << 2,
        inherited=inherited,
        inheriting=inheriting,
        veto=veto,
    )


def train_on(
    columns: list[memoryview],
    num_merges: int,
    meter: Meter,
    *,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
    **how: Any,
) -> Sequence[Merge]:
    """What `train` does with columns that nobody else need hold: taken out of the list, and freed
    when read.
    """
    check_inherited(inherited, inheriting, num_merges)
    if not inherited and is_bounded(veto):
        singles, limits = bytes_apart(limits_of(veto))
        if singles:
            columns[:] = cut_at(columns, singles)
        if not limits.whole_characters or built("_flat").are_whole(*columns):
            return train_compiled(columns, num_merges, meter, veto=limits, **how)
    pieces = built("_flat").Pieces(ids_of(inherited))
    how.update(pieces=pieces, dropping=inheriting == "met", veto=limits_of(veto))
    return train_compiled(columns, num_merges, meter, **how)


def ids_of(inherited: Sequence[Merge]) -> tuple[array[int], array[int]]:
    """The ids of the left and of the right halves of the merges that pieces are to be encoded by.

    The compiled encoder wants merges whose halves are made before them, each token made once. A
    list that was learned is such a one. In another, those that break this are dropped in any case
    (extending.py), and are left out here.
    """
    ids = {bytes((byte,)): FIRST_BYTE + byte for byte in range(256)}
    lefts, rights = array("I"), array("I")
    for left, right in inherited:
        if left in ids and right in ids and left + right not in ids:
            lefts.append(ids[left])
            rights.append(ids[right])
            ids[left + right] = FIRST_BYTE + len(ids)
    return lefts, rights


def train_compiled(
    columns: list[memoryview],
    num_merges: int,
    meter: Meter,
    *,
    tie_break: TieBreak,
    min_count: int,
    **how: Any,
) -> Sequence[Merge]:
    """The compiled function, whose numbers have bounds."""
    if how["threads"] < 1:
        raise ValueError(f"threads is {how['threads']}; it is 1 or more")
    merges: Sequence[Merge] = built("_flat").train(
        columns,
        min(max(num_merges, 0), LARGEST_COUNT),
        meter,
        tie_break=list(TieBreak).index(tie_break),
        min_count=min(max(min_count, 1), LARGEST_COUNT),
        **how,
    )
    return merges


def bytes_apart(limits: Limits) -> tuple[bytes, Limits]:
    """The protected bytes, which need no veto if the pieces are cut at them, and what else is
    refused.
    """
    singles = b"".join(token for token in limits.protected if len(token) == 1)
    return singles, replace(
        limits, protected=tuple(token for token in limits.protected if len(token) > 1)
    )


def is_bounded(veto: Veto | None) -> bool:
    """Whether every piece of UTF-8 that is not one token holds a pair that may be merged, if cut at
    protected bytes.
    """
    return bytes_apart(limits_of(veto))[1] in (limits_of(None), limits_of(whole_characters))


def cut_at(columns: Sequence[memoryview], singles: bytes) -> list[memoryview]:
    """The columns of the parts of the words between these bytes."""
    places = re.compile(b"[" + re.escape(singles) + b"]")
    items = WordCounts(*columns).items()
    parts = WordCounts.from_items(
        (part, count) for word, count in items for part in places.split(word) if part
    )
    return [parts.data, parts.offsets, parts.counts]
