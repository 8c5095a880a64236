"""Multiprocess: count the words in several processes; optionally find the maximum in several, too.

Parts 3 and 4 of the series. Part 3 changes only the counting (variants/counting/processes.py), and
that pays: the counter scales with the cores while the merges stay those of incremental. Part 4 then
spread the maximum over processes, and that failed: every merge copies the pair counts into a list,
pickles the slices with the bytes that break ties, and waits for the slowest process, which costs
several times the scan it saves and more with every process (published, on TinyStories: 117 s of
merging became 870, 1,600 and 2,400 s with 1, 4 and 8 processes). It is kept as `parallel_max` so
that the price can be measured, with one `pool` for all merges or, as in the series' first attempt,
a fresh one for each. The published slicing lost pairs when the slices did not divide evenly; this
one does not.
"""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, Pair, TieBreak, WordCounts
from variants.incremental import learn
from variants.words import PairCounts, most_frequent_pair

RankedPair = tuple[int, Any, Any, Pair]


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    parallel_max: int = 1,
    pool: str = "kept",
) -> list[Merge]:
    """Learn as incremental does, with the maximum found by `parallel_max` processes (1: in this
    one).

    `pool` is `kept` for all merges or `fresh` for each.
    """
    if parallel_max < 1:
        raise ValueError(f"parallel_max is {parallel_max}; it is a number of processes, 1 or more")
    if pool not in ("kept", "fresh"):
        raise ValueError(f"pool is {pool!r}; it is 'kept' or 'fresh'")
    if parallel_max == 1:
        return learn(word_counts, num_merges, meter, tie_break, min_count, most_frequent_pair)
    with new_pool(parallel_max) as kept:

        def find_maximum(pair_counts: PairCounts, keys: Sequence[Any], meter: Meter) -> Pair:
            meter.tally("pairs_scanned", len(pair_counts))
            ranked = [
                (count, keys[pair[0]], keys[pair[1]], pair) for pair, count in pair_counts.items()
            ]
            with (
                contextlib.nullcontext(kept)
                if pool == "kept"
                else new_pool(parallel_max) as processes
            ):
                greatest: RankedPair = max(processes.map(max, slices_of(ranked, parallel_max)))
            return greatest[3]

        return learn(word_counts, num_merges, meter, tie_break, min_count, find_maximum)


def new_pool(processes: int) -> ProcessPoolExecutor:
    """Processes that start when they are first needed; spawned, since a fork would copy whatever
    threads there are.
    """
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))


def slices_of(ranked: Sequence[RankedPair], number: int) -> list[Sequence[RankedPair]]:
    """Cut into at most `number` slices, none empty, that together hold every entry once.

    >>> [len(part) for part in slices_of([(1, b"", b"", (0, 0))] * 11, 4)]
    [2, 3, 3, 3]
    """
    bounds = [len(ranked) * part // number for part in range(number + 1)]
    return [ranked[start:stop] for start, stop in zip(bounds, bounds[1:]) if start < stop]
