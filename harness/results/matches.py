"""Two sets of records side by side: which row of one belongs to which of the other, and how their times compare.

Times compare if the same task was measured under the same conditions. A cell that only one set has is no fault; one
that was measured on another machine, or on other bytes under the same name, is refused unless it is allowed.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.common.comparison import Comparison, clock_of, compare, cpu_time
from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, ratio_text
from harness.results.frame import frame_of
from harness.results.legend import NOT_MEASURED, Legend, failures, join_names, status_text
from harness.results.rows import Row, rows
from harness.results.tables import interval_text, total_text
from harness.runs.fields import COMPARED, Difference, differences

if TYPE_CHECKING:
    import pandas as pd


NAMES = tuple(field.unlike for field in COMPARED)
"""In what two sets can be unlike, by the names that --unlike takes."""

_ANOTHER_QUESTION = 100
"""More than all circumstances together: a row is the same cell elsewhere before it is another cell."""

_MOST_TOLD = 3


@dataclass(frozen=True)
class Match:
    """A row of each set about the same variant or counter, and all in which they are unlike."""

    left: Row
    right: Row
    differences: tuple[Difference, ...] = ()

    @property
    def same_question(self) -> bool:
        """Whether the same merges were to be learned, so that merges that differ are a fault."""
        return not any(difference.field.decides_merges for difference in self.differences)


@dataclass(frozen=True)
class Matching:
    """The rows of two sets that belong together, in the order of the left set, and those that stand alone."""

    matches: tuple[Match, ...]
    only_left: tuple[Row, ...]
    only_right: tuple[Row, ...]

    @property
    def differences(self) -> list[Difference]:
        """Each difference that any match has, once."""
        return list(dict.fromkeys(difference for match in self.matches for difference in match.differences))


def matched(left: Sequence[Row], right: Sequence[Row]) -> Matching:
    """Put the rows of two sets side by side, those alike in everything first.

    Of what is left of one variant, two rows are a match where they differ in circumstances alone, or where the variant
    has no match at all; a cell that is none of these is one that the other set does not have.
    """
    pairs: dict[int, tuple[int, tuple[Difference, ...]]] = {}
    taken: set[int] = set()
    joined: set[tuple[bool, str]] = set()
    for distance, ours, theirs, unlike in sorted(_candidates(left, right), key=lambda candidate: candidate[:3]):
        subject = _subject(left[ours])
        if ours in pairs or theirs in taken or (distance >= _ANOTHER_QUESTION and subject in joined):
            continue
        pairs[ours] = theirs, unlike
        taken.add(theirs)
        if distance < _ANOTHER_QUESTION:
            joined.add(subject)
    return Matching(
        tuple(Match(left[ours], right[theirs], unlike) for ours, (theirs, unlike) in sorted(pairs.items())),
        tuple(row for place, row in enumerate(left) if place not in pairs),
        tuple(row for place, row in enumerate(right) if place not in taken),
    )


def require_alike(matching: Matching, names: tuple[str, str], allowed: Collection[str] = ()) -> None:
    """Raise Refusal where rows that would be compared are unlike in what is not `allowed`, and say in what.

    `names` are what the two sets are called; `allowed` are names of conditions.
    """
    for name in allowed:
        if name not in NAMES:
            raise Refusal(unknown("condition", name, NAMES))
    if not matching.matches:
        here, there = (
            ", ".join(dict.fromkeys(row.name for row in alone)) or "nothing"
            for alone in (matching.only_left, matching.only_right)
        )
        raise Refusal(
            f"{names[0]} and {names[1]} have nothing in common to compare: one has {here}, the other {there}",
            UNMEASURED,
        )
    refused = [difference for difference in matching.differences if difference.condition not in allowed]
    if refused:
        conditions = list(dict.fromkeys(difference.condition for difference in refused))
        raise Refusal(
            f"{names[0]} and {names[1]} are unlike in {differences_text(refused)}; "
            f"--unlike {' '.join(conditions)} compares them all the same"
        )


def differences_text(unlike: Sequence[Difference]) -> str:
    """What two sets are unlike in, with both sides of each: the first some of a condition that differs in many ways."""
    return " and in ".join(_texts_of_each(unlike))


def _texts_of_each(unlike: Sequence[Difference]) -> Iterator[str]:
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
            unlike = differences(row.record, right[theirs].record)
            yield sum(1 if each.circumstance else _ANOTHER_QUESTION for each in unlike), ours, theirs, unlike


Records = Sequence[Mapping[str, Any]]
MERGES_DIFFER = "≠"
SIDES = ("left", "right")


@dataclass(frozen=True)
class SideBySide:
    """Two sets of records under the names that they were given by, their rows matched."""

    names: tuple[str, str]
    matching: Matching

    @property
    def wrong(self) -> bool:
        """Whether any merges are wrong, or any two rows of one task learned different merges."""
        matches = self.matching.matches
        each = [row for match in matches for row in (match.left, match.right)]
        every = [*each, *self.matching.only_left, *self.matching.only_right]
        return any(map(merges_differ, matches)) or any(row.status == "mismatch" or row.disputed for row in every)


def side_by_side(left: Records, right: Records, names: tuple[str, str], allowed: Sequence[str] | None) -> SideBySide:
    """Match the rows of two sets. Raises Refusal if they are unlike in what is not allowed; no name allows all."""
    sets = SideBySide(names, matched(rows(left), rows(right)))
    require_alike(sets.matching, names, () if allowed is None else allowed or NAMES)
    return sets


def merges_differ(match: Match) -> bool:
    return (
        match.same_question
        and not match.left.counting_only
        and match.left.status == match.right.status == "ok"
        and match.left.digest != match.right.digest
    )


def comparison_of(match: Match) -> Comparison | None:
    """Right by left; None if one has no time, or if their merges differ. Without shared blocks it has no interval."""
    if merges_differ(match) or not match.left.samples or not match.right.samples:
        return None
    blocks = compare(match.right.samples, match.left.samples)
    if blocks is not None:
        return blocks
    clock = clock_of([*match.left.samples, *match.right.samples])
    left, right = (statistics.median(map(clock, side.samples)) for side in (match.left, match.right))
    return Comparison(right / left, None, None, 0, 0, "CPU" if clock is cpu_time else "wall")


def comparison_sheet(sets: SideBySide) -> Sheet:
    """A line for each match; below it what only one set has, and in what the two are unlike."""
    matches = sets.matching.matches
    sides = [match.left for match in matches], [match.right for match in matches]
    legends = Legend(sides[0]), Legend(sides[1])
    compared = [comparison_of(match) for match in matches]
    columns = [Column("counter" if sides[0][0].counting_only else "variant", legends[0].names, figures=False)]
    columns += [Column(field.title, legends[0].columns[field.title], field.figure) for field in legends[0].differing]
    columns += [
        Column(f"total {side}", [_total_text(row) for row in own]) for side, own in zip(SIDES, sides, strict=True)
    ]
    columns.append(Column("right / left", [_ratio_text(*pair) for pair in zip(matches, compared, strict=True)]))
    for side, own in zip(SIDES, sides, strict=True):
        memory = [NOT_MEASURED if row.peak_rss_bytes is None else bytes_text(row.peak_rss_bytes) for row in own]
        columns.append(Column(f"memory {side}", memory))
    columns.append(Column("merges", list(map(_merges_text, matches)), figures=False))
    if any(match.differences for match in matches):
        unlike = [", ".join(each.condition for each in match.differences) or NOT_MEASURED for match in matches]
        columns.append(Column("unlike in", unlike, figures=False))
    caption = [
        f"{side}: {name}: {'; '.join(legend.caption())}"
        for side, name, legend in zip(SIDES, sets.names, legends, strict=True)
    ]
    styles = [_style(*pair) for pair in zip(matches, compared, strict=True)]
    return Sheet(caption, columns, styles, list(_notes(sets, legends, compared)))


def _total_text(row: Row) -> str:
    if row.status == "mismatch":
        return MERGES_DIFFER
    return status_text(row) if total_text(row) == NOT_MEASURED else total_text(row)


def _ratio_text(match: Match, comparison: Comparison | None) -> str:
    if merges_differ(match):
        return MERGES_DIFFER
    if comparison is None:
        return NOT_MEASURED
    return f"{ratio_text(comparison.ratio)}{interval_text(comparison)}"


def _merges_text(match: Match) -> str:
    if merges_differ(match):
        return f"{MERGES_DIFFER} {match.left.digest}, {match.right.digest}"
    if match.left.status != "ok" or match.right.status != "ok" or match.left.counting_only:
        return NOT_MEASURED
    return f"= {match.left.digest}" if match.same_question else "another task"


def _style(match: Match, comparison: Comparison | None) -> str:
    if merges_differ(match) or "mismatch" in (match.left.status, match.right.status):
        return "red"
    if comparison is None:
        return "dim"
    return "" if match.left.confirmed and match.right.confirmed else "yellow"


def _notes(sets: SideBySide, legends: tuple[Legend, Legend], compared: Sequence[Comparison | None]) -> Iterator[str]:
    matches = sets.matching.matches
    labels = legends[0].short_labels()
    wrong = [
        f"{label} ({match.left.digest}, {match.right.digest})"
        for match, label in zip(matches, labels, strict=True)
        if merges_differ(match)
    ]
    if wrong:
        yield f"{MERGES_DIFFER} left and right learned different merges, so no ratio: {join_names(wrong)}."
    for side, legend in zip(SIDES, legends, strict=True):
        yield from (f"{side}: {note}" for note in failures(legend.rows, legend.short_labels()))
    if sets.matching.differences:
        yield f"Compared although unlike in {differences_text(sets.matching.differences)}."
    same = [
        label
        for comparison, label in zip(compared, labels, strict=True)
        if comparison is not None and comparison.different is False
    ]
    if same:
        yield f"No difference: {join_names(same)}."
    unsure = [
        label
        for comparison, label in zip(compared, labels, strict=True)
        if comparison is not None and comparison.different is None
    ]
    if unsure:
        yield f"Not measured in the same blocks, or in too few, so without an interval: {join_names(unsure)}."
    for side, alone in zip(SIDES, (sets.matching.only_left, sets.matching.only_right), strict=True):
        if alone:
            yield f"Only {side}: {join_names(Legend(alone).short_labels())}."


def comparison_frame(sets: SideBySide) -> pd.DataFrame:
    """A line for each cell of either set: raw figures of both sides, and the ratio."""
    import pandas as pd  # only here: it costs half a second, and a table for the eye needs none of it

    matches, alone = sets.matching.matches, (sets.matching.only_left, sets.matching.only_right)
    compared = [comparison_of(match) for match in matches]
    left, right = frame_of([match.left for match in matches]), frame_of([match.right for match in matches])
    figures: dict[str, Sequence[Any]] = {
        "in": ["both"] * len(matches),
        "merges_differ": [merges_differ(match) for match in matches],
        "unlike": [" ".join(difference.condition for difference in match.differences) or None for match in matches],
        **{
            name: [each and getattr(each, name) for each in compared]
            for name in ("ratio", "low", "high", "blocks", "clock")
        },
    }
    both = pd.concat([pd.DataFrame(figures), left.add_prefix("left_"), right.add_prefix("right_")], axis="columns")
    lone = [
        frame_of(rows_alone).add_prefix(f"{side}_").assign(**{"in": side})
        for side, rows_alone in zip(SIDES, alone, strict=True)
        if rows_alone
    ]
    return pd.concat([both, *lone], ignore_index=True)
