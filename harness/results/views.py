"""Further views of rows: one figure by two fields, and two sets side by side."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.common.comparison import Comparison, clock_of, compare, cpu_time
from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.common.units import ratio_text
from harness.records.fields import COMPARED, FIELDS, Difference, Record, differences, fixed, value_text
from harness.results.legend import Legend, failures, join_names, notes
from harness.results.ratios import Baseline, interval_text, times_of
from harness.results.rows import FINISHED, NOT_MEASURED, Row, is_wrong, rows
from harness.results.tables import NOT_COMPARABLE, memory_text

DIFFERENT = "≠"
SIDES = ("left", "right")
UNLIKE = tuple(field.unlike for field in COMPARED)
"""In what two sets can be unlike, by the names that `--unlike` takes."""
Key = tuple[Any, ...]
Fields = dict[str, list[Any]]


def pivot_sheet(rows: Sequence[Row], named: Sequence[str], value: str, relative_to: str | None = None) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a column.

    A cell without a figure says why, and a blank has no record. Raises Refusal for an unknown field or figure.
    """
    fields = fields_of(rows)
    down, across = _layout(rows, fields, named, value)
    legend = Legend(rows)
    baseline = Baseline(rows, relative_to) if relative_to is not None else None
    keys = list(zip(zip(*(fields[name] for name in down), strict=True), fields[across], strict=True))
    cells = dict(zip(keys, _pivot_texts(rows, value, baseline), strict=True))
    lines = _in_order(line for line, _ in keys)
    columns = [
        Column(name, list(map(value_text, values)), figures=all(map(_is_number, values)))
        for name, values in zip(down, zip(*lines, strict=True), strict=True)
    ]
    for (place,) in _in_order((place,) for _, place in keys):
        heading = f"{across} {value_text(place)}" if _is_number(place) else value_text(place)
        columns.append(Column(heading, [cells.get((line, place), "") for line in lines]))
    heading = value if baseline is None else f"{value} / {baseline.variant}"
    caption = [f"{heading} by {', '.join(down)} and {across}", *legend.caption()]
    refusals = baseline.refusals(legend.labels) if baseline is not None else []
    return Sheet(caption, columns, ["" for _ in lines], [*notes(legend), *refusals])


def fields_of(rows: Sequence[Row]) -> Fields:
    """Everything that rows can differ in, by name; the parameters are those that any of the rows has."""
    params = dict.fromkeys(name for row in rows for name in row.record.get("params") or {})
    names = [field.name for field in FIELDS if field.name not in ("variant", "params")]
    return {
        "variant": [row.name for row in rows],
        **{f"params.{name}": [fixed((row.record.get("params") or {}).get(name)) for row in rows] for name in params},
        **{name: [row.values[name] for row in rows] for name in (*names, "status")},
    }


def _layout(rows: Sequence[Row], fields: Fields, named: Sequence[str], value: str) -> tuple[list[str], str]:
    """The fields down, as many as it takes to keep rows apart, and the field across."""
    down, across = named
    figures = dict.fromkeys(name for row in rows for name in row.figures)
    for kind, name, there in (("field", down, fields), ("field", across, fields), ("value", value, figures)):
        if name not in there:
            raise Refusal(unknown(kind, name, there))
    if down == across:
        raise Refusal(f"--pivot names {down} twice; a pivot takes two fields")
    chosen = [down]
    while crowded := _crowded([fields[name] for name in (*chosen, across)]):
        distinguishing = [name for name, values in fields.items() if len({values[place] for place in crowded}) > 1]
        if not distinguishing:
            names = ", ".join(rows[place].name for place in crowded)
            raise Refusal(f"{names} differ in no field, so a pivot cannot show both; leave one out")
        chosen.append(distinguishing[0])
    return chosen, across


def _crowded(fields: Sequence[Sequence[Any]]) -> list[int]:
    """The places of the first rows that share a cell."""
    cells: dict[Key, list[int]] = {}
    for place, key in enumerate(zip(*fields, strict=True)):
        cells.setdefault(key, []).append(place)
    return next((together for together in cells.values() if len(together) > 1), [])


def _in_order(keys: Iterable[Key]) -> list[Key]:
    """Numbers in order if there are only numbers, all else as it first appeared."""
    once = list(dict.fromkeys(keys))
    first = {value: place for place, value in enumerate(dict.fromkeys(value for key in once for value in key))}
    numeric = [all(map(_is_number, column)) for column in zip(*once, strict=True)]
    return sorted(once, key=lambda key: [v if n else first[v] for v, n in zip(key, numeric, strict=True)])


def _is_number(value: Any) -> bool:
    return type(value) is int


def _pivot_texts(rows: Sequence[Row], value: str, baseline: Baseline | None) -> list[str]:
    """The cell of each row: its figure, how many times the baseline's that is, or why there is none."""
    if baseline is None:
        texts = [row.texts.get(value) for row in rows]
        stopped = [row.time.text if value == "total" else "" for row in rows]
    elif value == "total":
        texts = [ratio_text(ratio.number) if ratio and ratio.form in FINISHED else None for ratio in baseline.totals]
        stopped = [times_of(ratio, "") if ratio else "" for ratio in baseline.totals]
    else:
        texts = [None if ratio is None else ratio_text(ratio) for ratio in baseline.ratios(value)]
        stopped = ["" for _ in rows]
    refused = baseline.refused if baseline is not None else [None for _ in rows]
    cells = []
    for row, text, estimate, refusal in zip(rows, texts, stopped, refused, strict=True):
        if refusal is not None:
            cells.append(NOT_COMPARABLE)
        elif text is not None:
            cells.append(text + row.mark)
        elif row.status == "mismatch":
            cells.append(DIFFERENT)
        else:
            cells.append(estimate or (NOT_MEASURED if row.status == "ok" else row.status_text))
    return cells


# Two sets side by side


@dataclass(frozen=True)
class Match:
    """A row of each set about the same variant or counter, and all in which they are unlike."""

    left: Row
    right: Row
    differences: tuple[Difference, ...] = ()

    @cached_property
    def same_question(self) -> bool:
        """Whether the same merges were to be learned, so that merges that differ are a fault."""
        return not any(difference.field.decides_merges for difference in self.differences)

    @cached_property
    def learned(self) -> bool:
        return self.left.status == self.right.status == "ok" and not self.left.counting_only

    @cached_property
    def merges_differ(self) -> bool:
        return self.learned and self.same_question and self.left.digest != self.right.digest

    @cached_property
    def comparison(self) -> Comparison | None:
        """Right by left; None without both times, or if merges differ. Without shared blocks it has no interval."""
        if self.merges_differ or not self.left.samples or not self.right.samples:
            return None
        blocks = compare(self.right.samples, self.left.samples)
        if blocks is not None:
            return blocks
        clock = clock_of([*self.left.samples, *self.right.samples])
        left, right = (statistics.median(map(clock, side.samples)) for side in (self.left, self.right))
        return Comparison(right / left, None, None, 0, 0, "CPU" if clock is cpu_time else "wall")


@dataclass(frozen=True)
class SideBySide:
    """Two sets of records by their names: the rows that belong together, and those that only one set has."""

    names: Sequence[str]
    matches: tuple[Match, ...]
    only_left: tuple[Row, ...]
    only_right: tuple[Row, ...]

    @property
    def wrong(self) -> bool:
        """Whether any merges are wrong, or any two rows of one task learned different merges."""
        paired = [row for match in self.matches for row in (match.left, match.right)]
        return any(match.merges_differ for match in self.matches) or is_wrong(
            [*paired, *self.only_left, *self.only_right]
        )

    @property
    def differences(self) -> list[Difference]:
        return list(dict.fromkeys(difference for match in self.matches for difference in match.differences))


def side_by_side(
    left: Sequence[Record], right: Sequence[Record], names: Sequence[str], allowed: Sequence[str] | None
) -> SideBySide:
    """Match the rows of two sets. Raises Refusal if they are unlike in what is not allowed; no name allows all."""
    sets = matched(rows(left), rows(right), names)
    require_alike(sets, () if allowed is None else allowed or UNLIKE)
    return sets


def matched(left: Sequence[Row], right: Sequence[Row], names: Sequence[str] = SIDES) -> SideBySide:
    """Put the rows of one variant side by side, those alike in everything first.

    Two rows of different tasks are a match only if the variant has no match of one task.
    """
    candidates = []
    for ours, row in enumerate(left):
        for theirs, other in enumerate(right):
            if (row.counting_only, row.name) == (other.counting_only, other.name):
                unlike = differences(row.record, other.record)
                tasks = sum(not each.circumstance for each in unlike)
                candidates.append((tasks, len(unlike) - tasks, ours, theirs, unlike))
    pairs: dict[int, Match] = {}
    taken: set[int] = set()
    joined: set[str] = set()
    for tasks, _, ours, theirs, unlike in sorted(candidates, key=lambda candidate: candidate[:4]):
        name = left[ours].name
        if not (ours in pairs or theirs in taken or (tasks and name in joined)):
            pairs[ours] = Match(left[ours], right[theirs], unlike)
            taken.add(theirs)
            joined |= set() if tasks else {name}
    return SideBySide(
        names,
        tuple(pairs[ours] for ours in sorted(pairs)),
        tuple(row for place, row in enumerate(left) if place not in pairs),
        tuple(row for place, row in enumerate(right) if place not in taken),
    )


def require_alike(sets: SideBySide, allowed: Collection[str] = ()) -> None:
    """Raise Refusal if rows that would be compared are unlike in a condition that is not `allowed`."""
    for name in allowed:
        if name not in UNLIKE:
            raise Refusal(unknown("condition", name, UNLIKE))
    between = " and ".join(sets.names)
    if not sets.matches:
        here, there = (
            ", ".join(dict.fromkeys(row.name for row in alone)) or "nothing"
            for alone in (sets.only_left, sets.only_right)
        )
        raise Refusal(f"{between} have nothing in common to compare: one has {here}, the other {there}", UNMEASURED)
    refused = [difference for difference in sets.differences if difference.condition not in allowed]
    if refused:
        conditions = " ".join(dict.fromkeys(difference.condition for difference in refused))
        raise Refusal(
            f"{between} are unlike in {_differences_text(refused)}; --unlike {conditions} compares them all the same"
        )


def _differences_text(unlike: Sequence[Difference]) -> str:
    """Each condition with both sides; the first few of one that differs in many ways."""
    sides: dict[str, dict[str, None]] = {}
    for each in unlike:
        sides.setdefault(each.condition, {})[f"{each.left} / {each.right}"] = None
    return " and in ".join(f"{condition} ({join_names(list(pairs))})" for condition, pairs in sides.items())


def comparison_sheet(sets: SideBySide) -> Sheet:
    """A line for each match; below it what only one set has, and in what the two are unlike."""
    matches = sets.matches
    sides = [match.left for match in matches], [match.right for match in matches]
    legends = Legend(sides[0]), Legend(sides[1])
    columns = [Column("counter" if sides[0][0].counting_only else "variant", legends[0].names, figures=False)]
    columns += legends[0].columns.values()
    columns += [Column(f"total {side}", list(map(_total, own))) for side, own in zip(SIDES, sides, strict=True)]
    columns.append(Column("right / left", list(map(_right_by_left, matches))))
    columns += [
        Column(f"memory {side}", [memory_text(row) or NOT_MEASURED for row in own])
        for side, own in zip(SIDES, sides, strict=True)
    ]
    columns.append(Column("merges", list(map(_merges_text, matches)), figures=False))
    if sets.differences:
        unlike = [", ".join(each.condition for each in match.differences) or NOT_MEASURED for match in matches]
        columns.append(Column("unlike in", unlike, figures=False))
    caption = [
        f"{side}: {name}: {'; '.join(legend.caption())}"
        for side, name, legend in zip(SIDES, sets.names, legends, strict=True)
    ]
    return Sheet(caption, columns, list(map(_style, matches)), list(_notes_of_two(sets, legends)))


def _total(row: Row) -> str:
    if row.status == "mismatch":
        return DIFFERENT
    return row.time.text + row.mark if row.time.text else row.status_text


def _right_by_left(match: Match) -> str:
    if match.merges_differ:
        return DIFFERENT
    comparison = match.comparison
    return NOT_MEASURED if comparison is None else f"{ratio_text(comparison.ratio)}{interval_text(comparison)}"


def _merges_text(match: Match) -> str:
    if match.merges_differ:
        return f"{DIFFERENT} {match.left.digest}, {match.right.digest}"
    if not match.learned:
        return NOT_MEASURED
    return f"= {match.left.digest}" if match.same_question else "another task"


def _style(match: Match) -> str:
    if match.merges_differ or "mismatch" in (match.left.status, match.right.status):
        return "red"
    if match.comparison is None:
        return "dim"
    return "" if match.left.confirmed and match.right.confirmed else "yellow"


def _notes_of_two(sets: SideBySide, legends: tuple[Legend, Legend]) -> Iterator[str]:
    labelled = list(zip(sets.matches, legends[0].labels, strict=True))
    wrong = [f"{label} ({match.left.digest}, {match.right.digest})" for match, label in labelled if match.merges_differ]
    if wrong:
        yield f"{DIFFERENT} left and right learned different merges, so no ratio: {join_names(wrong)}."
    for side, legend in zip(SIDES, legends, strict=True):
        yield from (f"{side}: {note}" for note in failures(legend))
    if sets.differences:
        yield f"Compared although unlike in {_differences_text(sets.differences)}."
    compared = [(label, comparison) for match, label in labelled if (comparison := match.comparison) is not None]
    if same := [label for label, comparison in compared if comparison.different is False]:
        yield f"No difference: {join_names(same)}."
    if unsure := [label for label, comparison in compared if comparison.different is None]:
        yield f"Not measured in the same blocks, or in too few, so without an interval: {join_names(unsure)}."
    for side, alone in zip(SIDES, (sets.only_left, sets.only_right), strict=True):
        if alone:
            yield f"Only {side}: {join_names(Legend(alone).labels)}."
