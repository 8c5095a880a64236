"""The most frequent pairs at every moment, all of those that tie, and which of them each tie-break would take.

One heap of all pairs, corrected lazily, yields the pairs of the greatest count as a group. The group is kept exact from
merge to merge, and only where it has several members are they put in order, once for each tie-break: so thousands of
ties at every one of thousands of merges cost no more than looking at the first in each order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.pair_text import Code, pair_of
from variants.contract import TieBreak


class MostFrequent:
    """The pairs of the greatest count among `counts`, which its owner changes and tells of by `changed`.

    `token` gives the bytes of a token id. Every pair outside the group has an entry in the heap that claims its count
    or more; `count` is the count of the group, 0 while there is none.
    """

    def __init__(
        self, counts: Mapping[Code, int], token: Callable[[int], bytes], tie_breaks: Sequence[TieBreak]
    ) -> None:
        self.counts = counts
        self.token = token
        self.tie_breaks = tie_breaks
        self.count = 0
        self.group: set[Code] = set()
        self._ordered: dict[TieBreak, list[tuple[Any, Any, Code]]] = {}
        self._claims = [(-count, code) for code, count in counts.items()]
        heapq.heapify(self._claims)

    def changed(self, code: Code, old: int, new: int) -> None:
        """Hear that a pair's count went from `old` to `new`."""
        if new < old:
            if code in self.group:
                self.group.remove(code)
                self._claim(code, new)
        elif self.group and new > self.count:
            self._dissolve()
            self._claim(code, new)
        elif self.group and new == self.count:
            self._join(code)
        else:
            self._claim(code, new)

    def find(self) -> set[Code]:
        """The pairs of the greatest count, which is then `count`; no pairs if none occurs."""
        if not self.group:
            self._gather()
        return self.group

    def choice(self, tie_break: TieBreak) -> Code | None:
        """The pair that a tie-break takes; None if there is none."""
        group = self.find()
        if len(group) <= 1:
            return next(iter(group), None)
        if not self._ordered:
            for each in self.tie_breaks:
                self._ordered[each] = [self._entry(each, code) for code in group]
                heapq.heapify(self._ordered[each])
        ordered = self._ordered[tie_break]
        while ordered[0][-1] not in group:
            heapq.heappop(ordered)
        return ordered[0][-1]

    def _claim(self, code: Code, count: int) -> None:
        if count:
            heapq.heappush(self._claims, (-count, code))

    def _gather(self) -> None:
        """Take the pairs of the greatest count off the heap; a claim that is too high goes back as it should be."""
        self.count = 0
        self._ordered = {}
        while self._claims and -self._claims[0][0] >= max(self.count, 1):
            claimed, code = heapq.heappop(self._claims)
            count = self.counts.get(code, 0)
            if count != -claimed:
                self._claim(code, count)
            else:
                self.count = count
                self.group.add(code)

    def _join(self, code: Code) -> None:
        self.group.add(code)
        for tie_break, ordered in self._ordered.items():
            heapq.heappush(ordered, self._entry(tie_break, code))

    def _dissolve(self) -> None:
        for code in self.group:
            self._claim(code, self.count)
        self.group.clear()

    def _entry(self, tie_break: TieBreak, code: Code) -> tuple[Any, Any, Code]:
        left, right = (tie_break.reversed_key(token_id, self.token(token_id)) for token_id in pair_of(code))
        return left, right, code
