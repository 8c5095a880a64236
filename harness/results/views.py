"""Further views of rows: one figure by two fields, two sets side by side, and the list that `harness.run` returns."""

from __future__ import annotations

import io
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness.common.comparison import Comparison, clock_of, compare, cpu_time
from harness.common.errors import UNMEASURED, Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet, print_sheet, sheets_to_html_part
from harness.common.units import ratio_text
from harness.records.fields import Difference, Record, differences, value_text
from harness.results.fields import FINISHED, fields_of, figures_of, time_of
from harness.results.legend import NOT_MEASURED, Legend, failures, join_names, notes, status_text
from harness.results.rows import Row, frame_of, rows
from harness.results.selection import UNLIKE
from harness.results.tables import (
    NOT_COMPARABLE,
    Baseline,
    interval_text,
    mark_of,
    memory_text,
    tables,
    times_of,
    total_text,
)

if TYPE_CHECKING:
    import pandas as pd

DIFFERENT = "≠"
SIDES = ("left", "right")
MOST_DIFFERENCES = 3
Key = tuple[Any, ...]


def pivot_sheet(rows: Sequence[Row], named: Sequence[str], value: str, relative_to: str | None = None) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a column.

    A cell without a figure says why, and a blank has no record. Raises Refusal for an unknown field or figure.
    """
    down, across = _layout(rows, named, value)
    legend, fields = Legend(rows), fields_of(rows)
    baseline = Baseline(rows, relative_to) if relative_to is not None else None
    texts = _pivot_texts(rows, value, baseline)
    keys = [(tuple(fields[name](row) for name in down), fields[across](row)) for row in rows]
    cells = dict(zip(keys, texts, strict=True))
    lines = _in_order(line for line, _ in keys)
    columns = [
        Column(name, list(map(value_text, values)), figures=all(map(_is_number, values)))
        for name, values in zip(down, zip(*lines, strict=True), strict=True)
    ]
    for (place,) in _in_order((place,) for _, place in keys):
        heading = f"{across} {value_text(place)}" if _is_number(place) else value_text(place)
        columns.append(Column(heading, [cells.get((line, place), "") for line in lines]))
    labels = legend.short_labels()
    heading = value if baseline is None else f"{value} / {baseline.variant}"
    caption = [f"{heading} by {', '.join(down)} and {across}", *legend.caption()]
    refusals = baseline.refusals(labels) if baseline is not None else []
    return Sheet(caption, columns, ["" for _ in lines], [*notes(rows, labels), *refusals])


def _layout(rows: Sequence[Row], named: Sequence[str], value: str) -> tuple[list[str], str]:
    """The fields down, as many as it takes to keep rows apart, and the field across."""
    (down, across), fields, figures = named, fields_of(rows), figures_of(rows)
    for name in named:
        if name not in fields:
            raise Refusal(unknown("field", name, fields))
    if value not in figures:
        raise Refusal(unknown("value", value, figures))
    if down == across:
        raise Refusal(f"--pivot names {down} twice; a pivot takes two fields")
    chosen = [down]
    while crowded := _crowded(rows, [fields[name] for name in (*chosen, across)]):
        distinguishing = [name for name, field in fields.items() if len(set(map(field, crowded))) > 1]
        if not distinguishing:
            names = ", ".join(row.name for row in crowded)
            raise Refusal(f"{names} differ in no field, so a pivot cannot show both; leave one out")
        chosen.append(distinguishing[0])
    return chosen, across


def _crowded(rows: Sequence[Row], fields: Sequence[Callable[[Row], Any]]) -> list[Row]:
    """The first rows that share a cell."""
    cells: dict[Key, list[Row]] = {}
    for row in rows:
        cells.setdefault(tuple(field(row) for field in fields), []).append(row)
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
    figure, text = figures_of(rows)[value]
    if baseline is None:
        values = [figure(row) for row in rows]
        stopped = [time_of(row).text if value == "total" else "" for row in rows]
    else:
        values, text = baseline.ratios(figure), ratio_text
        stopped = ["" for _ in rows]
        if value == "total":
            totals = list(baseline.totals)
            values = [r.number if r and r.form in FINISHED else None for r in totals]
            stopped = [times_of(ratio, "") if ratio else "" for ratio in totals]
    texts = []
    for row, number, estimate in zip(rows, values, stopped, strict=True):
        if baseline is not None and baseline.refusal(row) is not None:
            texts.append(NOT_COMPARABLE)
        elif number is not None:
            texts.append(text(number) + mark_of(row))
        elif row.status == "mismatch":
            texts.append(DIFFERENT)
        else:
            texts.append(estimate or (NOT_MEASURED if row.status == "ok" else status_text(row)))
    return texts


# Two sets side by side


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

    @property
    def merges_differ(self) -> bool:
        learned = self.left.status == self.right.status == "ok" and not self.left.counting_only
        return learned and self.same_question and self.left.digest != self.right.digest

    @property
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

    names: tuple[str, str]
    matches: tuple[Match, ...]
    only_left: tuple[Row, ...]
    only_right: tuple[Row, ...]

    @property
    def wrong(self) -> bool:
        """Whether any merges are wrong, or any two rows of one task learned different merges."""
        paired = [row for match in self.matches for row in (match.left, match.right)]
        every = [*paired, *self.only_left, *self.only_right]
        return any(match.merges_differ for match in self.matches) or any(
            row.status == "mismatch" or row.disputed for row in every
        )

    @property
    def differences(self) -> list[Difference]:
        return list(dict.fromkeys(difference for match in self.matches for difference in match.differences))


def side_by_side(
    left: Sequence[Record], right: Sequence[Record], names: tuple[str, str], allowed: Sequence[str] | None
) -> SideBySide:
    """Match the rows of two sets. Raises Refusal if they are unlike in what is not allowed; no name allows all."""
    sets = matched(rows(left), rows(right), names)
    require_alike(sets, () if allowed is None else allowed or UNLIKE)
    return sets


def matched(left: Sequence[Row], right: Sequence[Row], names: tuple[str, str] = SIDES) -> SideBySide:
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
    pairs: dict[int, tuple[int, tuple[Difference, ...]]] = {}
    taken: set[int] = set()
    joined: set[tuple[bool, str]] = set()
    for tasks, _, ours, theirs, unlike in sorted(candidates, key=lambda candidate: candidate[:4]):
        subject = (left[ours].counting_only, left[ours].name)
        if ours in pairs or theirs in taken or (tasks and subject in joined):
            continue
        pairs[ours] = theirs, unlike
        taken.add(theirs)
        if not tasks:
            joined.add(subject)
    return SideBySide(
        names,
        tuple(Match(left[ours], right[theirs], unlike) for ours, (theirs, unlike) in sorted(pairs.items())),
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
    sides: dict[str, list[str]] = {}
    for each in unlike:
        sides.setdefault(each.condition, []).append(f"{each.left} / {each.right}")
    texts = []
    for condition, pairs in sides.items():
        once = list(dict.fromkeys(pairs))
        rest = [f"and {len(once) - MOST_DIFFERENCES} more"] if len(once) > MOST_DIFFERENCES else []
        texts.append(f"{condition} ({'; '.join(once[:MOST_DIFFERENCES] + rest)})")
    return " and in ".join(texts)


def comparison_sheet(sets: SideBySide) -> Sheet:
    """A line for each match; below it what only one set has, and in what the two are unlike."""
    matches = sets.matches
    sides = [match.left for match in matches], [match.right for match in matches]
    legends = Legend(sides[0]), Legend(sides[1])
    columns = [Column("counter" if sides[0][0].counting_only else "variant", legends[0].names, figures=False)]
    columns += [Column(field.title, legends[0].columns[field.title], field.figure) for field in legends[0].differing]
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
    return status_text(row) if total_text(row) == NOT_MEASURED else total_text(row)


def _right_by_left(match: Match) -> str:
    if match.merges_differ:
        return DIFFERENT
    comparison = match.comparison
    return NOT_MEASURED if comparison is None else f"{ratio_text(comparison.ratio)}{interval_text(comparison)}"


def _merges_text(match: Match) -> str:
    if match.merges_differ:
        return f"{DIFFERENT} {match.left.digest}, {match.right.digest}"
    if match.left.status != "ok" or match.right.status != "ok" or match.left.counting_only:
        return NOT_MEASURED
    return f"= {match.left.digest}" if match.same_question else "another task"


def _style(match: Match) -> str:
    if match.merges_differ or "mismatch" in (match.left.status, match.right.status):
        return "red"
    if match.comparison is None:
        return "dim"
    return "" if match.left.confirmed and match.right.confirmed else "yellow"


def _notes_of_two(sets: SideBySide, legends: tuple[Legend, Legend]) -> Iterator[str]:
    labelled = list(zip(sets.matches, legends[0].short_labels(), strict=True))
    wrong = [f"{label} ({match.left.digest}, {match.right.digest})" for match, label in labelled if match.merges_differ]
    if wrong:
        yield f"{DIFFERENT} left and right learned different merges, so no ratio: {join_names(wrong)}."
    for side, legend in zip(SIDES, legends, strict=True):
        yield from (f"{side}: {note}" for note in failures(legend.rows, legend.short_labels()))
    if sets.differences:
        yield f"Compared although unlike in {_differences_text(sets.differences)}."
    compared = [(label, comparison) for match, label in labelled if (comparison := match.comparison) is not None]
    if same := [label for label, comparison in compared if comparison.different is False]:
        yield f"No difference: {join_names(same)}."
    if unsure := [label for label, comparison in compared if comparison.different is None]:
        yield f"Not measured in the same blocks, or in too few, so without an interval: {join_names(unsure)}."
    for side, alone in zip(SIDES, (sets.only_left, sets.only_right), strict=True):
        if alone:
            yield f"Only {side}: {join_names(Legend(alone).short_labels())}."


# What `harness.run` returns


class Records(list[dict[str, Any]]):
    """The records of a run's trainers, one for each measured run, in order; it shows itself as the table.

    `counters` holds the records of the word counters, which were measured separately: what a trainer's record says of
    reading and counting comes from there. `everything` is both, as they are stored.
    """

    def __init__(self, records: Iterable[dict[str, Any]] = ()) -> None:
        self.everything = list(records)
        super().__init__(record for record in self.everything if record.get("cell") != "count")
        self.counters = [record for record in self.everything if record.get("cell") == "count"]

    def frame(self) -> pd.DataFrame:
        """A tidy pandas data frame: one line for each measured run of a trainer, one column for each figure.

        Settings are text, seconds are floats in full precision, bytes and counts of work are Int64; what was not
        measured, or may not be shown because the merges were wrong, is missing. `block` and `repeat` say which of how
        many runs it is. docs/reference/records.md says what each column holds.
        """
        frame = frame_of([row for record in self for row in rows([record])])
        # Each line is one run of a trainer, so the figures of several are left out.
        frame = frame.drop(columns=["cell", "runs", "least_total_seconds", "most_total_seconds"])
        for place, name in enumerate(("block", "repeat")):
            frame.insert(1 + place, name, [record.get(name) for record in self])
            frame[name] = frame[name].astype("Int64")
        return frame

    def __str__(self) -> str:
        """The table that the command prints, as text at full width; `list(records)` shows the records themselves."""
        if not self.everything:
            return "no records"
        text = io.StringIO()
        for sheet in tables(rows(self.everything)):
            print_sheet(sheet, Console(file=text))
        return text.getvalue()

    def _repr_html_(self) -> str:
        """The table that the command prints, for a notebook."""
        return sheets_to_html_part(tables(rows(self.everything)), "Records") if self.everything else "<p>no records</p>"
