"""Two sets of records side by side: which row of one is which of the other, whether their times compare, and the table.

Times compare where the same was asked under the same circumstances. A cell that only one set has is no fault of either;
a cell that was measured on another machine, or on other bytes under the same name, is refused unless told otherwise.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.common.comparison import CONFIDENCE, Comparison, clock_of, compare, cpu_time
from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, counted_text, ratio_text, share_text
from harness.results.columns import at_least, column, differing_columns, interval_text, mark_of
from harness.results.fields import units_note
from harness.results.frame import frame_of
from harness.results.legend import NOT_MEASURED, Legend, status_text
from harness.results.notes import listed
from harness.results.rows import Row, decimals_of, rows
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
    return Matching(
        tuple(Match(left[ours], right[theirs], unlike) for ours, (theirs, unlike) in sorted(found.items())),
        tuple(row for place, row in enumerate(left) if place not in found),
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
class Sets:
    """Two sets of records under the names that they were given by, their rows put side by side."""

    names: tuple[str, str]
    matching: Matching

    @property
    def wrong(self) -> bool:
        """Whether any merges are wrong, or any match was to learn the same and did not."""
        rows_of_both = [row for match in self.matching.matches for row in (match.left, match.right)]
        alone = [*self.matching.only_left, *self.matching.only_right]
        return any(map(merges_differ, self.matching.matches)) or any(
            row.status == "mismatch" or row.disputed for row in (*rows_of_both, *alone)
        )


def side_by_side(left: Records, right: Records, names: tuple[str, str], allowed: Sequence[str] | None) -> Sets:
    """Match the rows of two sets. Raises Refusal where they are unlike in what is not allowed; no name allows all."""
    sets = Sets(names, matched(rows(left), rows(right)))
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
    """Right by left; None where one has no time, or where their merges differ, so that one of them is worth nothing."""
    if merges_differ(match) or not match.left.samples or not match.right.samples:
        return None
    return compare(match.right.samples, match.left.samples) or ratio_of_runs(match)


def ratio_of_runs(match: Match) -> Comparison:
    """The ratio of two medians of different runs, which no interval can hold: the machine may have changed between."""
    clock = clock_of([*match.left.samples, *match.right.samples])
    left, right = (statistics.median(map(clock, side.samples)) for side in (match.left, match.right))
    return Comparison(right / left, None, None, 0, 0, "CPU" if clock is cpu_time else "wall")


def comparison_sheet(sets: Sets) -> Sheet:
    """A line for each match, and below it what only one set has and in what the two are unlike."""
    matches = sets.matching.matches
    sides = [match.left for match in matches], [match.right for match in matches]
    legends = Legend(sides[0]), Legend(sides[1])
    compared = [comparison_of(match) for match in matches]
    decimals = decimals_of([*sides[0], *sides[1]])
    columns = [Column("counter" if sides[0][0].counting_only else "variant", legends[0].names, figures=False)]
    columns += differing_columns(legends[0])
    for side, shown in zip(SIDES, sides, strict=True):
        columns.append(Column(f"total {side}", [_total_text(row, decimals) for row in shown]))
    columns += [
        Column("right / left", [_ratio_text(match, each) for match, each in zip(matches, compared, strict=True)]),
        Column("interval", [_interval_text(match, each) for match, each in zip(matches, compared, strict=True)], False),
    ]
    for side, shown in zip(SIDES, sides, strict=True):
        columns.append(column(f"memory {side}", shown, lambda row: row.peak_rss_bytes, bytes_text))
    columns.append(Column("merges", [_merges_text(match) for match in matches], figures=False))
    if any(match.differences for match in matches):
        columns.append(Column("unlike in", [_unlike_text(match) for match in matches], figures=False))
    caption = [
        f"{side}: {name}: {'; '.join(legend.caption())}"
        for side, name, legend in zip(SIDES, sets.names, legends, strict=True)
    ]
    styles = [_style(match, each) for match, each in zip(matches, compared, strict=True)]
    return Sheet(caption, columns, styles, list(_notes(sets, legends, compared)))


def _total_text(row: Row, decimals: int) -> str:
    if row.total is not None:
        return f"{row.total:,.{decimals}f}{mark_of(row)}"
    return MERGES_DIFFER if row.status == "mismatch" else at_least(row) or status_text(row)


def _ratio_text(match: Match, comparison: Comparison | None) -> str:
    if merges_differ(match):
        return MERGES_DIFFER
    return NOT_MEASURED if comparison is None else ratio_text(comparison.ratio)


def _interval_text(match: Match, comparison: Comparison | None) -> str:
    """The interval; where there is none, why."""
    if comparison is None or comparison.different is not None:
        return NOT_MEASURED if comparison is None else interval_text(comparison)
    return _basis(match, comparison) or NOT_MEASURED


def _merges_text(match: Match) -> str:
    if merges_differ(match):
        return f"{MERGES_DIFFER} {match.left.digest}, {match.right.digest}"
    if match.left.status != "ok" or match.right.status != "ok" or match.left.counting_only:
        return NOT_MEASURED
    return f"= {match.left.digest}" if match.same_question else "another question"


def _unlike_text(match: Match) -> str:
    return ", ".join(difference.condition for difference in match.differences) or NOT_MEASURED


def _style(match: Match, comparison: Comparison | None) -> str:
    if merges_differ(match) or "mismatch" in (match.left.status, match.right.status):
        return "red"
    if comparison is None:
        return "dim"
    return "" if match.left.confirmed and match.right.confirmed else "yellow"


def _notes(sets: Sets, legends: tuple[Legend, Legend], compared: Sequence[Comparison | None]) -> Iterator[str]:
    matches = sets.matching.matches
    labelled = list(zip(matches, compared, legends[0].short_labels(), strict=True))
    wrong = [
        f"{label} ({match.left.digest}, {match.right.digest})" for match, _, label in labelled if merges_differ(match)
    ]
    if wrong:
        yield f"{MERGES_DIFFER} left and right learned other merges from the same, so no ratio: {listed(wrong)}."
    for side, legend in zip(SIDES, legends, strict=True):
        yield from (f"{side}: {note}" for note in legend.notes())
    if sets.matching.differences:
        yield f"Compared although unlike in {differences_text(sets.matching.differences)}."
    yield from _how_compared(labelled)
    for side, alone in zip(SIDES, (sets.matching.only_left, sets.matching.only_right), strict=True):
        if alone:
            yield f"Only {side}: {listed(Legend(alone).short_labels())}."
    yield units_note(["total", "memory"])


def _how_compared(labelled: Sequence[tuple[Match, Comparison | None, str]]) -> Iterator[str]:
    """What each ratio is of, and how far it can be trusted."""
    known = [(match, each, label) for match, each, label in labelled if each is not None]
    clocks = dict.fromkeys(each.clock for _, each, _ in known)
    if known:
        mixed = "CPU seconds where all ran one thread, else wall seconds"
        clock = mixed if len(clocks) > 1 else f"{next(iter(clocks))} seconds"
        yield f"right / left: of {clock}; over 1 the right is slower."
    if any(each.different is not None for _, each, _ in known):
        yield f"The interval holds the ratio with {share_text(CONFIDENCE)} confidence."
    apart = [label for _, each, label in known if not each.ratios]
    few = [label for _, each, label in known if each.ratios and each.different is None]
    if apart:
        yield f"Measured in different runs, so the ratio has no interval: {listed(apart)}."
    if few:
        yield f"Too few blocks for an interval, so a small difference means nothing: {listed(few)}."
    left_out = [f"{label}: {each.left_out}" for _, each, label in known if each.left_out]
    if left_out:
        yield f"Runs left out because the machine was too busy for wall times: {listed(left_out)}."


def comparison_frame(sets: Sets) -> pd.DataFrame:
    """A line for each cell of either set, raw figures of both sides, the ratio and what it rests on."""
    import pandas as pd  # only here: it costs half a second, and a table for the eye needs none of it

    matches, alone = sets.matching.matches, (sets.matching.only_left, sets.matching.only_right)
    compared = [comparison_of(match) for match in matches]
    left, right = frame_of([match.left for match in matches]), frame_of([match.right for match in matches])
    figures: dict[str, Sequence[Any]] = {
        "in": ["both"] * len(matches),
        "merges_differ": [merges_differ(match) for match in matches],
        "unlike": [" ".join(difference.condition for difference in match.differences) or None for match in matches],
        "basis": [_basis(match, each) for match, each in zip(matches, compared, strict=True)],
        **{name: [each and getattr(each, name) for each in compared] for name in ("ratio", "low", "high", "clock")},
    }
    both = pd.concat([pd.DataFrame(figures), left.add_prefix("left_"), right.add_prefix("right_")], axis="columns")
    lone = [
        frame_of(rows_alone).add_prefix(f"{side}_").assign(**{"in": side})
        for side, rows_alone in zip(SIDES, alone, strict=True)
        if rows_alone
    ]
    return pd.concat([both, *lone], ignore_index=True)


def _basis(match: Match, comparison: Comparison | None) -> str | None:
    """What the ratio was made of."""
    if comparison is None:
        return None
    if comparison.ratios:
        return "blocks" if comparison.different is not None else counted_text(comparison.blocks, "block")
    return "one run" if min(len(match.left.samples), len(match.right.samples)) == 1 else "different runs"
