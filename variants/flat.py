"""Flat: the fastest exact trainer here. All words in one flat text, and nothing looked at that a merge leaves alone.

Against seg_status, which it has the positions and the lists from, everything is compiled, and seven ideas are added,
explained with proofs in docs/explanation/flat.md. Three are parameters, true by default; switching one off changes the
time and the memory, never the merges.

- `layout`: words of equal weight stand together in blocks, so a position's weight is one look into a small array.
- `accumulators`: the changes of a merge are summed by neighbour in arrays; the pair table hears the sums.
- `pruning`: pairs that can never be merged are not kept. What can is known from the words' weights, or guessed and
  checked.

Without the compiled module the variant is not available: it never runs as something slower under this name.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from variants.flat_extending import Ids, bytes_apart, cut_at, extension_arguments, is_bounded, numbered
from variants.native import built, loading
from variants.vetoes import limits_of

IDEAS = ("layout", "accumulators", "pruning")
"""The parameters that switch an idea off, in the order of their bits."""

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

    `threads` lay the words out and count them for the first time; the merges are made by one. Raises Unavailable where
    the compiled module was not built, ValueError for a table that cannot be trained on, and MemoryError when an
    allocation fails.

    It can go on from merges that are already made (extending.py, native/flat.hpp): the pieces are encoded by
    them, and from there on a token is what a byte was. They are laid out by weight then in any case.
    Of vetoes it keeps its certain bound under `whole_characters`, if all words are UTF-8, and where single bytes are
    protected, at which it cuts words.
    """
    columns = [word_counts.data, word_counts.offsets, word_counts.counts]
    return train_on(
        columns,
        num_merges,
        meter,
        tie_break=tie_break,
        min_count=min_count,
        threads=threads,
        ideas=bits(layout, accumulators, pruning),
        inherited=inherited,
        inheriting=inheriting,
        veto=veto,
    )


def bits(*ideas: bool) -> int:
    return sum(1 << place for place, idea in enumerate(ideas) if idea)


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
    """What `train` does with columns that nobody else need hold: taken out of the list, and freed when read."""
    check_threads(how["threads"])
    if not inherited and is_bounded(veto):
        check_inherited(inherited, inheriting, num_merges)
        singles, limits = bytes_apart(limits_of(veto))
        if singles:
            columns[:] = cut_at(columns, singles)
        if not limits.whole_characters or built("_flat").are_whole(*columns):
            return train_compiled(columns, num_merges, meter, veto=limits, **how)
    ids = numbered(inherited, inheriting, num_merges, lambda ids: pieces_of(ids, columns).met())
    pieces = built("_flat").Pieces(ids)
    return train_compiled(columns, num_merges, meter, pieces=pieces, **extension_arguments(inheriting, veto), **how)


def pieces_of(ids: Ids, columns: Sequence[memoryview]) -> Any:
    """The words in the columns as pieces, encoded by the merges of these ids."""
    pieces = built("_flat").Pieces(ids)
    pieces.begin(1)
    pieces.take(0, *columns)
    return pieces


def check_threads(threads: int) -> None:
    if threads < 1:
        raise ValueError(f"threads is {threads}; it is 1 or more")


def train_compiled(
    columns: list[memoryview], num_merges: int, meter: Meter, *, tie_break: TieBreak, min_count: int, **how: Any
) -> Sequence[Merge]:
    """The compiled function, whose numbers have bounds."""
    merges: Sequence[Merge] = built("_flat").train(
        columns,
        min(max(num_merges, 0), LARGEST_COUNT),
        meter,
        tie_break=list(TieBreak).index(tie_break),
        min_count=min(max(min_count, 1), LARGEST_COUNT),
        **how,
    )
    return merges
