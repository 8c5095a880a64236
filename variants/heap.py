"""Heap: the maximum comes from the top of a heap that is corrected lazily, not from a scan.

Part 9 of the series. The updates are those of fine_grained. Counts never rise after the merge that created their pair
(semantics: a later merge can only take occurrences away), so an entry that is out of date claims too much, never too
little: it surfaces no later than it should, is found stale, and goes back with the true count. This removes what was
nearly all of the time, and makes the cost of the maximum all but independent of the vocabulary's size.

`heap` names the heap: `c` is Python's heapq, a min-heap in C, fed with keys that sort the other way round (the series
held that byte strings cannot be inverted and used private functions; `contract.inverted` shows that they can);
`python` is a heap in plain Python (v6); `max` are the public max functions of Python 3.14's heapq. `push` says which
pairs a merge pushes: `all` that stand in a rewritten window (v6, v7) or only those that `grown`, which are exactly the
new ones (the series' "opt").
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

from variants import python_heap
from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, Pair, TieBreak, Unavailable, WordCounts
from variants.fine_grained import IndexedWords
from variants.words import PairCounts, Vocabulary


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
    """Learn merges with a lazily corrected heap; `heap` is `c`, `python` or `max`, `push` is `all` or `grown`."""
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


class HeapFunctions(NamedTuple):
    """A heap of lists; `sign` is -1 where the smallest entry comes first."""

    sign: int
    heapify: Callable[[list[Any]], None]
    push: Callable[[list[Any], Any], None]
    pop: Callable[[list[Any]], Any]


def heap_functions(heap: str) -> HeapFunctions:
    """The heap of that name. Raises Unavailable for `max` before Python 3.14, ValueError for an unknown name."""
    if heap == "c":
        return HeapFunctions(-1, heapq.heapify, heapq.heappush, heapq.heappop)
    if heap == "python":
        return HeapFunctions(1, python_heap.heapify, python_heap.push, python_heap.pop)
    if heap == "max":
        if not hasattr(heapq, "heappush_max"):
            raise Unavailable("heapq's max functions are public from Python 3.14 on; run it with that Python")
        return HeapFunctions(1, *(getattr(heapq, name) for name in ("heapify_max", "heappush_max", "heappop_max")))
    raise ValueError(f"heap is {heap!r}; it is 'c', 'python' or 'max'")


class PairQueue:
    """Pairs by (count, tie-break), each entry possibly out of date, none ever claiming too little."""

    def __init__(self, functions: HeapFunctions, pair_counts: PairCounts, keys: list[Any], meter: Meter) -> None:
        self.functions = functions
        self.pair_counts = pair_counts
        self.keys = keys
        self.entries = [self.entry(pair) for pair in pair_counts]
        functions.heapify(self.entries)
        meter.tally("heap_pushes", len(self.entries))

    def entry(self, pair: Pair) -> Any:
        return self.functions.sign * self.pair_counts[pair], self.keys[pair[0]], self.keys[pair[1]], pair

    def push(self, pairs: Iterable[Pair], meter: Meter) -> None:
        """Add an entry with the present count for each of `pairs` that still occurs."""
        live = [pair for pair in pairs if pair in self.pair_counts]
        for pair in live:
            self.functions.push(self.entries, self.entry(pair))
        meter.tally("heap_pushes", len(live))

    def most_frequent_pair(self, meter: Meter) -> Pair | None:
        """Take entries from the top until one is true; a stale one goes back with its true count, if it has any."""
        found, pops, returned = None, 0, 0
        while self.entries and found is None:
            claimed, _, _, pair = self.functions.pop(self.entries)
            pops += 1
            count = self.pair_counts.get(pair, 0)
            if self.functions.sign * claimed == count:
                found = pair
            elif count:
                self.functions.push(self.entries, self.entry(pair))
                returned += 1
        meter.tally("heap_pops", pops)
        meter.tally("stale_pops", pops - (found is not None))
        meter.tally("heap_pushes", returned)
        return found
