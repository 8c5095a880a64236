"""The queue of the stages with a heap: pairs by (count, tie-break), corrected when they come up."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

from variants.contract import Meter, Unavailable


class HeapFunctions(NamedTuple):
    """A heap of lists; `sign` is -1 where the smallest entry comes first."""

    sign: int
    heapify: Callable[[list[Any]], None]
    push: Callable[[list[Any], Any], None]
    pop: Callable[[list[Any]], Any]


def heap_functions(heap: str) -> HeapFunctions:
    """The heap of that name. Raises Unavailable for `max` before Python 3.14, ValueError for an
    unknown name.
    """
    if heap == "c":
        return HeapFunctions(-1, heapq.heapify, heapq.heappush, heapq.heappop)
    if heap == "python":
        return HeapFunctions(1, python_heapify, python_push, python_pop)
    if heap == "max":
        if not hasattr(heapq, "heappush_max"):
            raise Unavailable(
                "heapq's max functions are public from Python 3.14 on; run it with that Python"
            )
        return HeapFunctions(
            1, *(getattr(heapq, name) for name in ("heapify_max", "heappush_max", "heappop_max"))
        )
    raise ValueError(f"heap is {heap!r}; it is 'c', 'python' or 'max'")


class PairQueue:
    """Pairs by (count, tie-break), each entry possibly out of date, none ever claiming too
    little.
    """

    def __init__(
        self, functions: HeapFunctions, pair_counts: dict[Any, int], keys: Any, meter: Meter
    ) -> None:
        """`keys[token]` is the tie-break's key, for the tokens that pairs are made of."""
        self.functions = functions
        self.pair_counts = pair_counts
        self.keys = keys
        self.entries: list[Any] = [
            (functions.sign * count, keys[pair[0]], keys[pair[1]], pair)
            for pair, count in pair_counts.items()
        ]
        functions.heapify(self.entries)
        meter.tally("heap_pushes", len(self.entries))

    def push(self, pairs: Iterable[Any], meter: Meter) -> None:
        """Add an entry with the present count for each of `pairs` that still occurs."""
        sign, _, push, _ = self.functions
        keys, pushes = self.keys, 0
        for pair in pairs:
            if count := self.pair_counts.get(pair):
                push(self.entries, (sign * count, keys[pair[0]], keys[pair[1]], pair))
                pushes += 1
        meter.tally("heap_pushes", pushes)

    def most_frequent_pair(
        self, meter: Meter, when_stale: Callable[[Any], None] | None = None
    ) -> Any:
        """Take entries from the top until one is true; a stale one goes back with its true count,
        if it has any.

        The pair, or None if none is left. `when_stale` hears of pairs that go back.
        """
        sign, _, push, pop = self.functions
        found, pops, returned = None, 0, 0

        while self.entries and found is None:
            claimed, left_key, right_key, pair = pop(self.entries)
            pops += 1
            count = self.pair_counts.get(pair, 0)
            if sign * claimed == count:
                found = pair
            elif count:
                push(self.entries, (sign * count, left_key, right_key, pair))
                returned += 1
                if when_stale is not None:
                    when_stale(pair)

        meter.tally("heap_pops", pops)
        meter.tally("stale_pops", pops - (found is not None))
        meter.tally("heap_pushes", returned)
        return found


def python_push(heap: list[Any], item: Any) -> None:
    """Add `item`, sifting it up while it is greater than its parent.

    This binary max-heap in plain Python is what the series used before it reached for the C one
    (part 9, v6).
    """
    heap.append(item)
    place = len(heap) - 1
    while place and heap[(place - 1) // 2] < item:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = item


def python_pop(heap: list[Any]) -> Any:
    """Take the greatest item, sifting the last one down from the root.

    >>> heap = []
    >>> for item in [3, 1, 2]: python_push(heap, item)
    >>> [python_pop(heap) for _ in range(3)]
    [3, 2, 1]
    """
    item = heap.pop()
    if not heap:
        return item
    greatest, heap[0] = heap[0], item
    place, child = 0, 1
    while child < len(heap):
        if child + 1 < len(heap) and heap[child] < heap[child + 1]:
            child += 1
        if not item < heap[child]:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = item
    return greatest


def python_heapify(items: list[Any]) -> None:
    """Order `items` as a heap, in place."""
    heap: list[Any] = []
    for item in items:
        python_push(heap, item)
    items[:] = heap
