"""Heap: the maximum comes from the top of a heap that is corrected lazily, not from a scan.

Part 9 of the series. The updates are those of fine_grained. Counts never rise after the merge that
created their pair (semantics: a later merge can only take occurrences away), so an entry that is
out of date claims too much, never too little: it surfaces no later than it should, is found stale,
and goes back with the true count. This removes what was nearly all of the time, and makes the cost
of the maximum all but independent of the vocabulary's size.

`heap` names the heap: `c` is Python's heapq, a min-heap in C, fed with keys that sort the other way
round (the series held that byte strings cannot be inverted and used private functions;
`contract.inverted` shows that they can); `python` is a heap in plain Python (v6); `max` are the
public max functions of Python 3.14's heapq. `push` says which pairs a merge pushes: `all` that
stand in a rewritten window (v6, v7) or only those that `grown`, which are exactly the new ones (the
series' "opt").
"""

from __future__ import annotations

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts
from variants.fine_grained import IndexedWords
from variants.pair_queue import PairQueue, heap_functions
from variants.words import Vocabulary


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    heap: str = "c",
    push: str = "all",
) -> list[Merge]:
    """Learn merges with a lazily corrected heap; `heap` is `c`, `python` or `max`, `push` is `all`
    or `grown`.
    """
    return learn(word_counts, num_merges, meter, tie_break, min_count, heap, push, IndexedWords)


def learn(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter,
    tie_break: TieBreak,
    min_count: int,
    heap: str,
    push: str,
    indexed_words: type[IndexedWords],
) -> list[Merge]:
    """The stage with its updates left open, for the stages that compile them."""
    if push not in ("all", "grown"):
        raise ValueError(f"push is {push!r}; it is 'all' or 'grown'")

    functions = heap_functions(heap)
    vocabulary = Vocabulary(tie_break.reversed_key if functions.sign < 0 else tie_break.key)
    meter.follow(vocabulary.merges)

    state = indexed_words(word_counts, meter, "words", coarse_on_repeat=False)
    queue = PairQueue(functions, state.pair_counts, vocabulary.keys, meter)
    meter.lap("init")

    while len(vocabulary.merges) < num_merges:
        pair = queue.most_frequent_pair(meter)
        meter.lap("max")
        if pair is None or state.pair_counts[pair] < min_count:
            break

        changes, standing = state.merge(pair, vocabulary.add(pair), meter)
        if push == "grown":
            standing = {changed for changed, change in changes.items() if change > 0}
        queue.push(standing, meter)
        meter.lap("update")
    return vocabulary.merges
