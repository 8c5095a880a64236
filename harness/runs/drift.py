"""How the merges change if less of a text is taken, or fewer of its words: what a sample or a pruned table costs."""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import NamedTuple

import numpy as np

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, share_text
from harness.proof.compiled_replay import tokens_left
from harness.runs.asked import only_cell, words_of
from harness.runs.cells import TrainCell
from harness.worker import word_store
from variants.contract import Merge, WordCounts

LEAST = (2, 3, 5, 10)
"""How often a word has to be met to stay in a pruned table."""


class Drifted(NamedTuple):
    """Merges of a part of what there is, held against those of all of it.

    `first_difference` is the place of the first merge that is another, None if there is none; `common` how many of the
    tokens are made by both; `lost` the share of the adjacent positions, by weight, that the part leaves out of the
    whole, which no pair's count can lose more than; `bytes_per_token` of the whole text by these merges.
    """

    taken: str
    words: int
    lost: float | None
    first_difference: int | None
    common: float
    merges: int
    bytes_per_token: float


def drifts(overrides: Sequence[str], sizes: Sequence[str]) -> list[Drifted]:
    """The whole first: the largest slice; then it without rare words, then the smaller slices."""
    cells = {}
    for size in sizes:
        cell, settings = only_cell([*overrides, f"data.bytes={size}"])
        cells[cell.reading.file.bytes] = cell, settings
    if len(cells) < 2:
        raise Refusal("a drift needs slices of two sizes; the corpus is too small, or say --sizes", UNMEASURED)
    tables = {size: word_store.read(words_of(*cell))[0] for size, cell in sorted(cells.items())}
    (largest, whole), cell = max(tables.items()), cells[max(tables)][0]
    with bar("training on parts", len(LEAST) + len(tables), "tables") as show:
        merges = trained(cell, whole)
        found = [held(f"all {bytes_text(largest)}", whole, merges, whole, merges, None)]
        show(1)
        for least in LEAST:
            part = without_rare(whole, least)
            lost = 1 - positions(part) / positions(whole)
            found.append(held(f"words seen {least} times or more", part, trained(cell, part), whole, merges, lost))
            show(len(found))
        for length, table in sorted(tables.items(), reverse=True)[1:]:
            taken = f"{bytes_text(length)}, {share_text(length / largest)}"
            found.append(held(taken, table, trained(cell, table), whole, merges, None))
            show(len(found))
    return found


def trained(cell: TrainCell, word_counts: WordCounts) -> list[Merge]:
    """The merges of a table by the cell's variant, in this process: nobody is measured."""
    return list(registry.resolve(cell.variant.target)(word_counts, cell.num_merges, **dict(cell.variant.params)))


def without_rare(word_counts: WordCounts, least: int) -> WordCounts:
    """The table without the words that are seen fewer than `least` times.

    >>> dict(without_rare(WordCounts.from_items([(b"low", 5), (b"er", 1), (b"new", 2)]), 2))
    {b'low': 5, b'new': 2}
    """
    data, offsets, counts = map(np.asarray, (word_counts.data, word_counts.offsets, word_counts.counts))
    kept, lengths = counts >= least, np.diff(offsets)
    left = np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64)
    content = data[: offsets[-1]][np.repeat(kept, lengths)]
    columns = [np.ascontiguousarray(column).data for column in (content, left, counts[kept])]
    return WordCounts(columns[0], columns[1].cast("B").cast("q"), columns[2].cast("B").cast("Q"))


def positions(word_counts: WordCounts) -> int:
    """The adjacent positions of all words by weight: the sum of all pairs' counts."""
    return sum(map(mul, word_counts.counts.tolist(), (np.diff(np.asarray(word_counts.offsets)) - 1).tolist()))


def held(
    taken: str,
    part: WordCounts,
    merges: Sequence[Merge],
    whole: WordCounts,
    of_whole: Sequence[Merge],
    lost: float | None,
) -> Drifted:
    pairs = zip(merges, of_whole, strict=False)
    differing = (place for place, (mine, theirs) in enumerate(pairs) if mine != theirs)
    first = next(differing, min(len(merges), len(of_whole)) if len(merges) != len(of_whole) else None)
    tokens, of_all = ({left + right for left, right in each} for each in (merges, of_whole))
    size = sum(map(mul, whole.counts.tolist(), np.diff(np.asarray(whole.offsets)).tolist()))
    return Drifted(
        taken,
        len(part),
        lost,
        first,
        len(tokens & of_all) / max(1, len(of_all)),
        len(merges),
        size / tokens_left(whole, merges),
    )


def sheet_of(drifted: Sequence[Drifted]) -> Sheet:
    whole = drifted[0]
    columns = [
        Column("taken", [each.taken for each in drifted], figures=False),
        Column("words", [count_text(each.words) for each in drifted]),
        Column("positions lost", ["" if each.lost is None else f"{100 * each.lost:.2f} %" for each in drifted]),
        Column("merges", [count_text(each.merges) for each in drifted]),
        Column(
            "first other merge",
            ["none" if each.first_difference is None else count_text(each.first_difference + 1) for each in drifted],
        ),
        Column("tokens in common", [f"{100 * each.common:.1f} %" for each in drifted]),
        Column("bytes per token", [f"{each.bytes_per_token:.3f}" for each in drifted]),
        Column(
            "against all", [f"{100 * (each.bytes_per_token / whole.bytes_per_token - 1):+.2f} %" for each in drifted]
        ),
    ]
    notes = [
        "bytes per token: of all the text by the merges of the row; positions lost: no pair's count can be off by more "
        "than this share of all positions, and a merge that leads by more stays",
    ]
    return Sheet([], columns, [""] * len(drifted), notes)
