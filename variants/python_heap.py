"""A binary max-heap in plain Python: what the series used before it reached for the C one (part 9, v6).

It is here to be measured against `heapq`, which does the same in C. Only the two operations the trainer needs.
"""

from __future__ import annotations

from typing import Any


def push(heap: list[Any], item: Any) -> None:
    """Add `item`, sifting it up while it is greater than its parent."""
    heap.append(item)
    place = len(heap) - 1
    while place and heap[(place - 1) // 2] < item:
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = item


def pop(heap: list[Any]) -> Any:
    """Take the greatest item, sifting the last one down from the root.

    >>> heap = []
    >>> for item in [3, 1, 2]: push(heap, item)
    >>> [pop(heap) for _ in range(3)]
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


def heapify(items: list[Any]) -> None:
    """Order `items` as a heap, in place."""
    heap: list[Any] = []
    for item in items:
        push(heap, item)
    items[:] = heap
