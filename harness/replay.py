"""python -m harness.replay: anyone's merges held against the true counts of a corpus, one by one.

    python -m harness.replay merges.txt --data book.txt
    python -m harness.replay tokenizer.json --data stdlib vocab_size=1000 tie_break=huggingface --format json

Comparing two lists of merges says no more than where they part, for after one other choice everything may be another.
Here the choice is followed instead: every merge of the list is made, whatever it is, and is judged by what was true in
the moment when it was chosen. So a list that differs from ours in every second merge can be proved right up to ties.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.most_frequent import MostFrequent
from harness.pair_text import BYTES, Code, PairText, code_of, pair_of
from variants.contract import Merge, TieBreak, WordCounts

ALL_TIE_BREAKS = tuple(TieBreak)

MAXIMUM = "maximum"
TIE = "tie"
WRONG = "wrong"
TOO_RARE = "too_rare"
UNKNOWN = "unknown"
DUPLICATE = "duplicate"
RIGHT = (MAXIMUM, TIE)


@dataclass(frozen=True)
class Best:
    """The most frequent pairs at one moment: their `count` (0: no pair is left), how many tie, who takes which."""

    count: int
    tied: int
    choices: Mapping[TieBreak, Merge]


@dataclass(frozen=True)
class Step:
    """One merge, numbered from 1, the true `count` of its pair when it was chosen, and the `best` there was then.

    `judgement` is `maximum` (more frequent than any other), `tie` (as frequent as others, less than none), `wrong` (one
    was more frequent), `too_rare` (none was, but it is below min_count), `unknown` (it joins a token that nothing
    before it makes) or `duplicate` (it was made before).
    """

    number: int
    merge: Merge
    judgement: str
    count: int
    best: Best

    @property
    def right_under(self) -> tuple[TieBreak, ...]:
        """The tie-breaks that would have made this choice."""
        return tuple(tie_break for tie_break, merge in self.best.choices.items() if merge == self.merge)


@dataclass(frozen=True)
class Replay:
    """Every merge judged under each of `judges`, what was left to merge then, and how many tokens of how many bytes."""

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
        return tuple(tie_break for tie_break in self.judges if self.first_against(tie_break) is None)

    def first_against(self, tie_break: TieBreak) -> Step | None:
        """The first merge that a trainer of this tie-break would not have made there; None if it made them all."""
        for step in self.steps:
            if step.judgement not in RIGHT or step.best.choices[tie_break] != step.merge:
                return step
        return None

    def stops_too_early(self, num_merges: int) -> bool:
        """Whether fewer merges were made than asked for, with pairs left that are frequent enough."""
        return len(self.steps) < num_merges and self.rest.count >= self.min_count


class TrueCounts:
    """The words after any merges: what every pair's count is now, and which pairs are the most frequent.

    A token is its bytes: one that is made twice is one token, with the id that it got first.
    """

    def __init__(self, word_counts: WordCounts, tie_breaks: Sequence[TieBreak] = ALL_TIE_BREAKS) -> None:
        self.tie_breaks = tie_breaks
        self.text = PairText(word_counts)
        self.made = [bytes((byte,)) for byte in range(BYTES)]
        self.ids = {token: number for number, token in enumerate(self.made)}
        self.most_frequent = MostFrequent(self.text.counts, self.made.__getitem__, tie_breaks)

    def count(self, merge: Merge) -> int:
        """The count of a pair; 0 if it does not occur, or if there are no such tokens."""
        left, right = (self.ids.get(token) for token in merge)
        return 0 if left is None or right is None else self.text.counts.get(code_of(left, right), 0)

    def knows(self, merge: Merge) -> bool:
        """Whether both its tokens are bytes or were made before."""
        return all(token in self.ids for token in merge)

    def best(self) -> Best:
        group = self.most_frequent.find()
        if len(group) == 1:
            choices = dict.fromkeys(self.tie_breaks, self._merge_of(next(iter(group))))
        else:
            taken = {each: self.most_frequent.choice(each) for each in self.tie_breaks}
            choices = {each: self._merge_of(code) for each, code in taken.items() if code is not None}
        return Best(self.most_frequent.count, len(group), choices)

    def follow(self, merge: Merge) -> None:
        """Make a merge. Where it joins unknown tokens there is nothing to replace, but its token counts as made."""
        left, right = (self.ids.get(token) for token in merge)
        new = self.ids.setdefault(merge[0] + merge[1], len(self.made))
        if new == len(self.made):
            self.made.append(merge[0] + merge[1])
        if left is not None and right is not None:
            for code, old, count in self.text.merge(left, right, new):
                self.most_frequent.changed(code, old, count)

    def _merge_of(self, code: Code) -> Merge:
        left, right = pair_of(code)
        return self.made[left], self.made[right]


def replay(
    word_counts: WordCounts,
    merges: Sequence[Merge],
    *,
    tie_breaks: Sequence[TieBreak] = ALL_TIE_BREAKS,
    min_count: int = 1,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Replay:
    """Judge every merge by the true counts at its moment; after a wrong one the next is judged by where that led.

    >>> words = WordCounts.from_items([(b"ab", 2), (b"cd", 2), (b"ef", 1)])
    >>> replayed = replay(words, [(b"a", b"b"), (b"e", b"f")])
    >>> [(step.judgement, step.count, step.best.count) for step in replayed.steps]
    [('tie', 2, 2), ('wrong', 1, 2)]
    >>> [tie_break.value for tie_break in replayed.steps[0].right_under]
    ['smallest_bytes', 'huggingface', 'raw_bytes']
    """
    true = TrueCounts(word_counts, tie_breaks)
    steps: list[Step] = []
    seen: set[Merge] = set()
    for number, merge in enumerate(merges, 1):
        best, count = true.best(), true.count(merge)
        if not true.knows(merge):
            judgement = UNKNOWN
        elif merge in seen:
            judgement = DUPLICATE
        elif not count or count < best.count:
            judgement = WRONG
        elif count < min_count:
            judgement = TOO_RARE
        else:
            judgement = TIE if best.tied > 1 else MAXIMUM
        seen.add(merge)
        steps.append(Step(number, merge, judgement, count, best))
        true.follow(merge)
        on_progress(number)
    return Replay(steps, true.best(), tuple(tie_breaks), min_count, true.text.tokens, true.text.bytes)


if __name__ == "__main__":
    from harness.replay_command import main

    sys.exit(main())
