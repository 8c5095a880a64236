"""Two sets of records side by side: which row of one is which of the other, and whether their times compare.

Times compare where the same was asked under the same circumstances. A cell that only one set has is no fault of either;
a cell that was measured on another machine, or on other bytes under the same name, is refused unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from harness.conditions import NAMES, Difference, differences
from harness.errors import UNMEASURED, Refusal
from harness.registry import unknown
from harness.rows import Row

_ANOTHER_QUESTION = 100
"""More than all circumstances together: a row is the same cell elsewhere before it is another cell."""

_MOST_TOLD = 3


@dataclass(frozen=True)
class Pair:
    """A row of each set about the same variant or counter, and all in which they are unlike."""

    left: Row
    right: Row
    differences: tuple[Difference, ...] = ()

    @property
    def same_question(self) -> bool:
        """Whether the same merges were to be learned, so that merges that differ are a fault."""
        return not any(difference.decides_merges for difference in self.differences)


@dataclass(frozen=True)
class Pairing:
    """The rows of two sets that belong together, in the order of the left set, and those that stand alone."""

    pairs: tuple[Pair, ...]
    only_left: tuple[Row, ...]
    only_right: tuple[Row, ...]

    @property
    def differences(self) -> list[Difference]:
        """Each difference that any pair has, once."""
        return list(dict.fromkeys(difference for pair in self.pairs for difference in pair.differences))


def paired(left: Sequence[Row], right: Sequence[Row]) -> Pairing:
    """Put the rows of two sets side by side, those alike in everything first.

    Of what is left of one variant, two rows are a pair where they differ in circumstances alone, or where the variant
    has no pair at all; a cell that is none of these is one that the other set does not have.
    """
    found: dict[int, tuple[int, tuple[Difference, ...]]] = {}
    taken: set[int] = set()
    joined: set[tuple[bool, str]] = set()
    for distance, ours, theirs, unlike in sorted(_candidates(left, right), key=lambda candidate: candidate[:3]):
        subject = _subject(left[ours])
        if ours in found or theirs in taken or (distance >= _ANOTHER_QUESTION and subject in joined):
            continue
        found[ours] = theirs, unlike
        taken.add(theirs)
        if distance < _ANOTHER_QUESTION:
            joined.add(subject)
    return Pairing(
        tuple(Pair(left[ours], right[theirs], unlike) for ours, (theirs, unlike) in sorted(found.items())),
        tuple(row for place, row in enumerate(left) if place not in found),
        tuple(row for place, row in enumerate(right) if place not in taken),
    )


def require_alike(pairing: Pairing, names: tuple[str, str], allowed: Collection[str] = ()) -> None:
    """Raise Refusal where rows that would be compared are unlike in what is not `allowed`, and say in what.

    `names` are what the two sets are called; `allowed` are names of conditions.
    """
    for name in allowed:
        if name not in NAMES:
            raise Refusal(unknown("condition", name, NAMES))
    if not pairing.pairs:
        here, there = (
            ", ".join(dict.fromkeys(row.name for row in alone)) or "nothing"
            for alone in (pairing.only_left, pairing.only_right)
        )
        raise Refusal(
            f"{names[0]} and {names[1]} have nothing in common to compare: one has {here}, the other {there}",
            UNMEASURED,
        )
    refused = [difference for difference in pairing.differences if difference.condition not in allowed]
    if refused:
        conditions = list(dict.fromkeys(difference.condition for difference in refused))
        raise Refusal(
            f"{names[0]} and {names[1]} are unlike in {told(refused)}; "
            f"--unlike {' '.join(conditions)} compares them all the same"
        )


def told(unlike: Sequence[Difference]) -> str:
    """What two sets are unlike in, with both sides of each: the first some of a condition that differs in many ways."""
    return " and in ".join(_told_of_each(unlike))


def _told_of_each(unlike: Sequence[Difference]) -> Iterator[str]:
    for condition in dict.fromkeys(difference.condition for difference in unlike):
        sides = [f"{each.left} / {each.right}" for each in unlike if each.condition == condition]
        sides = list(dict.fromkeys(sides))
        more = [f"and {len(sides) - _MOST_TOLD} more"] if len(sides) > _MOST_TOLD else []
        yield f"{condition} ({'; '.join(sides[:_MOST_TOLD] + more)})"


def _subject(row: Row) -> tuple[bool, str]:
    return row.counting_only, row.name


def _candidates(left: Sequence[Row], right: Sequence[Row]) -> Iterator[tuple[int, int, int, tuple[Difference, ...]]]:
    """Every two rows about one subject, with how far they are apart and in what."""
    by_subject: dict[tuple[bool, str], list[int]] = {}
    for place, row in enumerate(right):
        by_subject.setdefault(_subject(row), []).append(place)
    for ours, row in enumerate(left):
        for theirs in by_subject.get(_subject(row), ()):
            unlike = differences(row, right[theirs])
            yield sum(1 if each.circumstance else _ANOTHER_QUESTION for each in unlike), ours, theirs, unlike
