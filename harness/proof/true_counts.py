"""Merges compared with the true counts: how often every pair occurs, at the moment when one is
chosen.

Comparing two lists of merges shows only where they differ first, since one other choice may change
all that follow. The replay makes every merge of the list, whatever it is, and judges it by the
counts at its moment. So a list that differs from ours in every second merge can be proved right up
to ties.

The words are one text of tokens. Each merge visits only the places of its pair, all at once in
NumPy's arrays, so the work is in proportion to the bytes of the distinct words, whether they are
many short ones or one long one.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variants.contract import Merge, TieBreak, Veto, WordCounts

IDS = 1 << 32
ABSENT = -1
Array = np.ndarray[Any, Any]
Code = int  # a pair of token ids in one number: left * IDS + right

MAXIMUM, TIE, WRONG, TOO_RARE, UNKNOWN, DUPLICATE = (
    "maximum",
    "tie",
    "wrong",
    "too_rare",
    "unknown",
    "duplicate",
)
INHERITED, NOT_INHERITED, VETOED = "inherited", "not_inherited", "vetoed"
RIGHT = (MAXIMUM, TIE, INHERITED)
TEXTS = {
    MAXIMUM: "the most frequent pair of its moment",
    TIE: "one of several most frequent pairs",
    WRONG: "less frequent than another pair",
    TOO_RARE: "below min_count",
    UNKNOWN: "of a token that no earlier merge makes",
    DUPLICATE: "made before",
    INHERITED: "inherited",
    NOT_INHERITED: "in place of an inherited one",
    VETOED: "vetoed, or spelling an inherited token again",
}
"""What each judgement says of a merge."""


class PairText:
    """The tokens of all words in a row, linked within each word; `counts` are those of every pair
    that occurs.

    Position `end` is the missing neighbour of the first and the last token of a word. A token of
    ABSENT was swallowed by the one before it. `positions` are those where a pair appeared; it may
    be gone from some. `tokens` are counted as many times as their word occurs.
    """

    def __init__(self, word_counts: WordCounts) -> None:
        data = np.frombuffer(word_counts.data, dtype=np.uint8)
        offsets = np.frombuffer(word_counts.offsets, dtype=np.int64)
        lengths = np.diff(offsets)
        self.end = len(data)
        number = np.int32 if self.end < 2**31 - 1 else np.int64
        self.token = np.append(data.astype(np.int32), np.int32(ABSENT))
        self.after = np.arange(1, self.end + 2, dtype=number)
        self.before = np.arange(-1, self.end, dtype=number)
        filled = offsets[:-1][lengths > 0]
        self.before[filled] = self.end
        self.after[filled + lengths[lengths > 0] - 1] = self.end

        self.weights = np.frombuffer(word_counts.counts, dtype=np.uint64).astype(np.int64)
        self.word = np.repeat(np.arange(len(lengths), dtype=number), lengths)

        self.counts: dict[Code, int] = {}
        self.positions: dict[Code, list[Array]] = {}
        # In Python's integers: the sum may exceed 64 bits although no pair's count does.
        self.bytes = sum(map(operator.mul, self.weights.tolist(), lengths.tolist()))
        self.tokens = self.bytes
        starts = np.flatnonzero(self.after[:-1] != self.end).astype(number)
        self.counts.update(self._appeared(starts))

    def merge(self, left: int, right: int, new: int) -> list[tuple[Code, int, int]]:
        """Replace the pair by `new` everywhere, left to right without overlap.

        Returns every pair whose count changed, with the count before and after.
        """
        positions = self._positions(left, right)
        if not len(positions):
            return []

        swallowed, preceding = self.after[positions], self.before[positions]
        following = self.after[swallowed]
        # An occurrence directly after another is preceded by that one's right token, which is
        # swallowed too.
        self.token[swallowed] = ABSENT
        preceding = preceding[self.token[preceding] != ABSENT]
        self.token[swallowed] = right
        gone = np.concatenate((positions, swallowed[following != self.end], preceding))
        changes = [(code, -weight) for code, weight, _ in self._grouped(gone)]

        self.token[positions], self.token[swallowed] = new, ABSENT
        self.after[positions], self.before[following] = following, positions
        self.tokens -= int(self.weights[self.word[positions]].sum())
        changes += self._appeared(np.concatenate((positions[following != self.end], preceding)))

        changed = []
        for code, change in changes:
            old = self.counts.pop(code, 0)
            if old + change:
                self.counts[code] = old + change
            changed.append((code, old, old + change))
        return changed

    def _positions(self, left: int, right: int) -> Array:
        """The places of the pair where it is to be merged; it will be at none of those where it
        appeared.
        """
        appeared = self.positions.pop(left * IDS + right, None)
        positions: Array = (
            np.concatenate(appeared) if appeared else np.empty(0, dtype=self.after.dtype)
        )
        positions = positions[
            (self.token[positions] == left) & (self.token[self.after[positions]] == right)
        ]
        if left != right or not len(positions):
            return positions
        # Every second place of each run of adjacent places, starting with the first.
        positions, index = np.sort(positions), np.arange(len(positions))
        begins = np.append(True, self.after[positions[:-1]] != positions[1:])
        since = index - np.maximum.accumulate(np.where(begins, index, 0))
        every_second: Array = positions[since % 2 == 0]
        return every_second

    def _grouped(self, positions: Array) -> Iterator[tuple[Code, int, Array]]:
        """Each pair that begins at these places, with the sum of their weights, and its places."""
        codes = self.token[positions].astype(np.int64) * IDS + self.token[self.after[positions]]
        order = np.argsort(codes, kind="stable")
        codes, positions = codes[order], positions[order]
        first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
        weights = (
            np.add.reduceat(self.weights[self.word[positions]], first) if len(first) else first
        )
        bounds = [*first.tolist(), len(positions)]
        positions_of_pair = (
            positions[start:stop] for start, stop in zip(bounds, bounds[1:], strict=False)
        )
        return zip(codes[first].tolist(), weights.tolist(), positions_of_pair, strict=True)

    def _appeared(self, positions: Array) -> list[tuple[Code, int]]:
        """Record the new pairs at these places; returns them with their counts."""
        counts = []
        for code, weight, positions_of_pair in self._grouped(positions):
            self.positions.setdefault(code, []).append(positions_of_pair)
            counts.append((code, weight))
        return counts


@dataclass(frozen=True)
class Best:
    """The most frequent pairs at one moment: their `count` (0: no pair is left), how many tie, who
    takes which.
    """

    count: int
    tied: int
    choices: Mapping[TieBreak, Merge]


@dataclass(frozen=True)
class Step:
    """One merge, numbered from 1, the true `count` of its pair when it was chosen, and the `best`
    there was then.

    TEXTS says what each `judgement` means.
    """

    number: int
    merge: Merge
    judgement: str
    count: int
    best: Best

    @property
    def right_under(self) -> tuple[TieBreak, ...]:
        """The tie-breaks that would have made this choice."""
        return tuple(
            tie_break for tie_break, merge in self.best.choices.items() if merge == self.merge
        )


@dataclass(frozen=True)
class Replay:
    """Every merge judged under each of `judges`, what was left to merge then, and how many tokens
    of how many bytes.
    """

    steps: list[Step]
    rest: Best
    judges: tuple[TieBreak, ...]
    min_count: int
    tokens: int
    bytes: int

    @property
    def faults(self) -> list[Step]:
        """The merges that no trainer may make, whatever its tie-break."""
        return [step for step in self.steps if step.judgement not in RIGHT]

    @property
    def ties(self) -> list[Step]:
        return [step for step in self.steps if step.judgement == TIE]

    @property
    def tie_breaks(self) -> tuple[TieBreak, ...]:
        """The tie-breaks under which every merge is right."""
        return tuple(
            tie_break for tie_break in self.judges if self.first_against(tie_break) is None
        )

    def first_against(self, tie_break: TieBreak) -> Step | None:
        """The first merge that a trainer with this tie-break would not have made; None if it made
        them all.
        """
        for step in self.steps:
            if step.judgement == INHERITED:
                continue
            if step.judgement not in RIGHT or step.best.choices[tie_break] != step.merge:
                return step
        return None

    def stops_too_early(self, num_merges: int) -> bool:
        """Whether fewer merges were made than requested, with pairs left that are frequent
        enough.
        """
        return len(self.steps) < num_merges and self.rest.count >= self.min_count


class TrueCounts:
    """The words after any merges: the count of every pair, and the most frequent pairs.

    A token is its bytes: one that is made twice is one token, with its first id. `inherited` are
    the merges made before any is chosen: all inherited ones, or those of them that were met. Pairs
    that may be merged lie in groups of equal count. The most frequent group is ordered once for
    each tie-break, so thousands of ties cost no more than a look at the first of each order.
    """

    def __init__(
        self,
        word_counts: WordCounts,
        tie_breaks: Sequence[TieBreak] = tuple(TieBreak),
        *,
        inherited: Sequence[Merge] = (),
        inheriting: str = "kept",
        veto: Veto | None = None,
    ) -> None:
        self.tie_breaks = tie_breaks
        self.text = PairText(word_counts)
        self.token_of_id = [bytes((byte,)) for byte in range(256)]
        self.ids = {token: number for number, token in enumerate(self.token_of_id)}
        self.inherited_counts: list[int] = []
        self.inherited = self._inherit(inherited, inheriting)
        self.veto = veto
        self._spelled = {left + right for left, right in self.inherited}
        self._refused: dict[Code, bool] = {}
        self._groups: dict[int, set[Code]] = {}
        self._negative_counts: list[int] = []
        self._ordered_count = 0
        self._ordered: dict[TieBreak, list[tuple[Any, Any, Code]]] = {}
        for code, count in self.text.counts.items():
            self.regroup(code, 0, count)

    def _inherit(self, inherited: Sequence[Merge], inheriting: str) -> list[Merge]:
        met, merges = set(self.text.counts) if inherited else set(), []
        for merge in inherited:
            code = self.code(merge)
            if inheriting == "met" and code not in met:
                continue
            met.discard(code)
            merges.append(merge)
            self.inherited_counts.append(self.text.counts.get(code, 0))
            met.update(new for new, _, count in self.make(merge) if count)
        return merges

    def code(self, merge: Merge) -> Code:
        """The code of a pair of tokens; -1 if one of them was not made."""
        left, right = (self.ids.get(token) for token in merge)
        return -1 if left is None or right is None else left * IDS + right

    def make(self, merge: Merge) -> list[tuple[Code, int, int]]:
        """Make a merge, see PairText.merge. One of unknown tokens replaces nothing, but its token
        counts as made.
        """
        code, token = self.code(merge), merge[0] + merge[1]
        new = self.ids.setdefault(token, len(self.token_of_id))
        if new == len(self.token_of_id):
            self.token_of_id.append(token)
        return self.text.merge(*divmod(code, IDS), new) if code >= 0 else []

    def refuses(self, code: Code) -> bool:
        """Whether a pair may not be merged: it is vetoed, or spells an inherited token again."""
        if self.veto is None and not self._spelled:
            return False
        if code not in self._refused:
            left, right = self.merge_of(code)
            vetoed = self.veto is not None and bool(self.veto(left, right))
            self._refused[code] = vetoed or left + right in self._spelled
        return self._refused[code]

    def best(self) -> Best:
        while self._negative_counts and not self._groups[-self._negative_counts[0]]:
            del self._groups[-heapq.heappop(self._negative_counts)]
        if not self._negative_counts:
            return Best(0, 0, {})

        count = -self._negative_counts[0]
        group = self._groups[count]
        if len(group) == 1:
            return Best(count, 1, dict.fromkeys(self.tie_breaks, self.merge_of(*group)))

        if count != self._ordered_count:
            self._ordered_count = count
            for tie_break in self.tie_breaks:
                self._ordered[tie_break] = [self._entry(tie_break, code) for code in group]
                heapq.heapify(self._ordered[tie_break])
        for ordered in self._ordered.values():
            while ordered[0][-1] not in group:
                heapq.heappop(ordered)

        choices = {
            tie_break: self.merge_of(ordered[0][-1]) for tie_break, ordered in self._ordered.items()
        }
        return Best(count, len(group), choices)

    def merge_of(self, code: Code) -> Merge:
        left, right = divmod(code, IDS)
        return self.token_of_id[left], self.token_of_id[right]

    def regroup(self, code: Code, old: int, new: int) -> None:
        """Move a pair from the group of its old count to that of its new one; no group has the
        count 0.
        """
        if self.refuses(code):
            return
        if old:
            self._groups[old].remove(code)
        if new:
            if new not in self._groups:
                self._groups[new] = set()
                heapq.heappush(self._negative_counts, -new)
            self._groups[new].add(code)
            if new == self._ordered_count:
                for tie_break, ordered in self._ordered.items():
                    heapq.heappush(ordered, self._entry(tie_break, code))

    def _entry(self, tie_break: TieBreak, code: Code) -> tuple[Any, Any, Code]:
        left, right = (
            tie_break.reversed_key(token, self.token_of_id[token]) for token in divmod(code, IDS)
        )
        return left, right, code


def replay(
    word_counts: WordCounts,
    merges: Sequence[Merge],
    *,
    tie_breaks: Sequence[TieBreak] = tuple(TieBreak),
    min_count: int = 1,
    on_progress: Callable[[int], None] = lambda _: None,
    until_wrong: bool = False,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
) -> Replay:
    """Judge every merge by the true counts at its moment; after a wrong merge the next is judged by
    its result.

    With `until_wrong` the replay stops at the first merge that is wrong, or that the only tie-break
    does not take. `inherited`, `inheriting` and `veto` are the trainer's (variants/extending.py).

    >>> words = WordCounts.from_items([(b"ab", 2), (b"cd", 2), (b"ef", 1)])
    >>> replayed = replay(words, [(b"a", b"b"), (b"e", b"f")])
    >>> [(step.judgement, step.count, step.best.count) for step in replayed.steps]
    [('tie', 2, 2), ('wrong', 1, 2)]
    >>> [tie_break.value for tie_break in replayed.steps[0].right_under]
    ['smallest_bytes', 'huggingface', 'raw_bytes']
    """
    true = TrueCounts(
        word_counts, tie_breaks, inherited=inherited, inheriting=inheriting, veto=veto
    )
    counts, first = true.text.counts, len(true.inherited)
    steps = []
    compared = zip(merges, true.inherited, true.inherited_counts, strict=False)
    for number, (merge, want, count) in enumerate(compared, 1):
        if merge == want:
            judgement = INHERITED
        else:
            judgement, count = NOT_INHERITED, counts.get(true.code(merge), 0)
        steps.append(Step(number, merge, judgement, count, Best(0, 0, {})))

    seen = set(true.inherited)
    for number, merge in enumerate(merges[first:], first + 1):
        best, code = true.best(), true.code(merge)
        count = counts.get(code, 0)
        if code < 0:
            judgement = UNKNOWN
        elif merge in seen:
            judgement = DUPLICATE
        elif true.refuses(code):
            judgement = VETOED
        elif not count or count < best.count:
            judgement = WRONG
        elif count < min_count:
            judgement = TOO_RARE
        else:
            judgement = TIE if best.tied > 1 else MAXIMUM
        seen.add(merge)
        steps.append(Step(number, merge, judgement, count, best))
        if until_wrong and (
            judgement not in RIGHT or (len(tie_breaks) == 1 and not steps[-1].right_under)
        ):
            break
        for changed in true.make(merge):
            true.regroup(*changed)
        on_progress(number)

    return Replay(
        steps, true.best(), tuple(tie_breaks), min_count, true.text.tokens, true.text.bytes
    )
