"""python -m harness.divergence: where two lists of merges part, who is right there, and what became of it.

    python -m harness.divergence heap my_package.my_module:train --data book.txt
    python -m harness.divergence merges.txt tokenizer.json --data stdlib --format json

Both lists are replayed against the true counts (harness/replay.py), so the first difference is told from its cause: a
tie that two rules break differently, a pair that was not the most frequent, or an end that came too early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.proof.true_counts import RIGHT, Best, Replay, Step, replay
from variants.contract import Merge, WordCounts

EQUAL, BY_TIES, WRONG, ENDS = "equal", "by_ties", "wrong", "ends"


@dataclass(frozen=True)
class Divergence:
    """Two lists of merges, each replayed against the same words."""

    a: Replay
    b: Replay

    @property
    def place(self) -> int | None:
        """How many merges come before the first difference; None if there is none."""
        for place, (mine, theirs) in enumerate(zip(self.a.steps, self.b.steps, strict=False)):
            if mine.merge != theirs.merge:
                return place
        shorter, longer = sorted((len(self.a.steps), len(self.b.steps)))
        return shorter if shorter < longer else None

    @property
    def candidates(self) -> tuple[Step | None, Step | None]:
        """What each list has at the first difference; None for one that has ended there, or if there is none."""
        place = self.place
        if place is None:
            return None, None
        first, second = ([*each.steps, None][place : place + 1] for each in (self.a, self.b))
        return (first or [None])[0], (second or [None])[0]

    @property
    def best(self) -> Best | None:
        """The most frequent pairs at the first difference."""
        return next((step.best for step in self.candidates if step is not None), None)

    @property
    def cause(self) -> str:
        """`equal`; `by_ties` if the first choices that differ are both right; `ends` if one list has ended; `wrong`."""
        if self.place is None:
            return EQUAL
        if None in self.candidates:
            return ENDS
        both_right = all(step is not None and step.judgement in RIGHT for step in self.candidates)
        return BY_TIES if both_right else WRONG

    @property
    def only_ties(self) -> bool:
        """Whether every merge of both lists is right, so that nothing but choices among equals sets them apart."""
        return not self.a.faults and not self.b.faults


@dataclass(frozen=True)
class Drift:
    """How far two lists are from each other: merges of both, those at the same place, tokens of both and of either."""

    merges_in_common: int
    at_the_same_place: int
    tokens_in_common: int
    tokens_of_either: int


def divergence(
    word_counts: WordCounts, a: Sequence[Merge], b: Sequence[Merge], *, min_count: int = 1, **extending: Any
) -> Divergence:
    """Replay two lists of merges; `extending` is what `replay` is told of merges inherited, and of a veto.

    >>> words = WordCounts.from_items([(b"ab", 2), (b"cd", 2), (b"ef", 1)])
    >>> parted = divergence(words, [(b"c", b"d"), (b"a", b"b")], [(b"a", b"b"), (b"e", b"f")])
    >>> parted.cause, parted.only_ties, [step.count for step in parted.candidates]
    ('by_ties', False, [2, 2])
    """
    return Divergence(*(replay(word_counts, each, min_count=min_count, **extending) for each in (a, b)))


def drift_of(parted: Divergence) -> Drift:
    """What the lists have in common; tokens are counted without the 256 bytes, which everybody has."""
    a, b = ([step.merge for step in each.steps] for each in (parted.a, parted.b))
    tokens_of_a, tokens_of_b = ({left + right for left, right in merges} for merges in (a, b))
    same = sum(mine == theirs for mine, theirs in zip(a, b, strict=False))
    return Drift(len({*a} & {*b}), same, len(tokens_of_a & tokens_of_b), len(tokens_of_a | tokens_of_b))
