"""Two sets of records side by side: what one machine, version or day measured, and another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.common.comparison import differ
from harness.common.errors import UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.records.file import Record
from harness.results.fields import FIELDS, Difference, Key, differences, together
from harness.results.legend import caption_of, differing_columns, labelled, labels_of, names_of
from harness.results.notes import failures
from harness.results.ratios import Against, Ratio, clock_note, ratio_of
from harness.results.rows import Row, is_wrong, rows
from harness.results.tables import first_heading, style_of
from harness.results.writing import (
    DIFFERENT,
    NOT_MEASURED,
    figure_text,
    join_names,
    outcome_text,
    times_text,
)

Sides = Mapping[str, Sequence[Row]]
"""The rows of the left set and of the right one."""


class Match(NamedTuple):
    """A row of each set about one cell, and the circumstances in which they are unlike."""

    left: Row
    right: Row
    differences: tuple[Difference, ...]

    @property
    def merges_differ(self) -> bool:
        """Whether both learned merges of one task, and not the same ones."""
        if self.left.counting_only or not self.left.status == self.right.status == "ok":
            return False
        of_one_task = not any(difference.field.decides_merges for difference in self.differences)
        return of_one_task and self.left.digest != self.right.digest

    @property
    def ratio(self) -> Ratio | None:
        """Right by left, without an interval unless both ran in the same blocks; None if merges
        differ.
        """
        return None if self.merges_differ else ratio_of(self.right, self.left)


def compared(
    left: Sequence[Record],
    right: Sequence[Record],
    names: Sequence[str],
    allow_different: bool = False,
) -> tuple[Sheet, bool]:
    """Rows of two sets that differ in nothing but circumstances, side by side; and whether any
    merges are wrong.

    Below them is what only one set has. Raises Refusal if no cell is in both, or if they are unlike
    and may not be.
    """
    every: Sides = {"left": rows(left), "right": rows(right)}
    matches, alone = _matched(every)
    if not matches:
        raise _nothing_in_common(names, alone["left"][0], alone["right"][0])
    differing = _differences_text(
        [difference for match in matches for difference in match.differences]
    )
    if differing and not allow_different:
        sets = " and ".join(names)
        raise Refusal(f"{sets} differ in {differing}; --allow-different compares them all the same")

    left_rows, right_rows, _ = zip(*matches, strict=True)
    sides: Sides = {"left": left_rows, "right": right_rows}
    captions, notes = [], [*_notes_on_matches(matches, sides, differing)]
    both = [*every["left"], *every["right"]]
    labels = dict(zip(both, labels_of(both, circumstances=False), strict=True))
    for (side, side_rows), name in zip(sides.items(), names, strict=True):
        captions.append(f"{side}: {name}: {'; '.join(caption_of(side_rows))}")
        if alone[side]:
            notes.append(f"Only {side}: {join_names([labels[row] for row in alone[side]])}.")

    styles = []
    for match in matches:
        styles.append("red" if match.merges_differ else style_of(match.left, match.right))
    is_bad = "red" in styles or is_wrong(both)
    return Sheet(captions, _columns(matches, sides), styles, notes), is_bad


def _nothing_in_common(names: Sequence[str], left: Row, right: Row) -> Refusal:
    why = _differences_text(differences(left.record, right.record))
    sets = f"{' and '.join(names)} have no cell in common to compare"
    return Refusal(f"{sets}: their first rows differ in {why}", UNMEASURED)


def _columns(matches: Sequence[Match], sides: Sides) -> list[Column]:
    left = sides["left"]
    columns = [Column(first_heading(left), names_of(left), figures=False)]
    columns += differing_columns(left).values()
    for side, side_rows in sides.items():
        times = [outcome_text(row, figure_text(row, "total")) for row in side_rows]
        columns.append(Column(f"total {side}", times))

    ratios = []
    for match in matches:
        ratio = DIFFERENT if match.merges_differ else times_text(match.ratio, "")
        ratios.append(ratio or NOT_MEASURED)
    columns.append(Column("right / left", ratios))
    for side, side_rows in sides.items():
        peaks = [figure_text(row, "memory") or NOT_MEASURED for row in side_rows]
        columns.append(Column(f"memory {side}", peaks))
    return columns


def _matched(every: Sides) -> tuple[list[Match], dict[str, list[Row]]]:
    """The rows of one cell together, and those that are alone in either set."""
    partners = together([(_cell_of(row), row) for row in every["right"]])
    matches, alone = list[Match](), list[Row]()
    for row in every["left"]:
        candidates = partners.get(_cell_of(row))
        if candidates:
            other = candidates.pop(0)
            matches.append(Match(row, other, differences(row.record, other.record)))
        else:
            alone.append(row)
    left_over = [row for candidates in partners.values() for row in candidates]
    return matches, {"left": alone, "right": left_over}


def _cell_of(row: Row) -> Key:
    """Return the key of its cell without circumstances and without the digest of its corpus."""
    fields = [field.name for field in FIELDS if field.names_cell and not field.circumstance]
    return tuple(row.values[name] for name in fields if name != "data.sha256")


def _differences_text(unlike: Sequence[Difference]) -> str:
    """Each condition with both sides; the first few of one that differs in many ways."""
    sides = together(
        [
            (difference.field.name, f"{difference.left} / {difference.right}")
            for difference in unlike
        ]
    )
    texts = []
    for name, values in sides.items():
        condition = "corpus" if name == "data.sha256" else name
        texts.append(f"{condition} ({join_names([*dict.fromkeys(values)])})")
    return " and in ".join(texts)


def _notes_on_matches(matches: Sequence[Match], sides: Sides, differing: str) -> Iterator[str]:
    wrong, same, unsure = list[str](), list[str](), list[str]()
    for match, label in zip(matches, labels_of(sides["left"]), strict=True):
        if match.merges_differ:
            wrong.append(f"{label} ({match.left.digest}, {match.right.digest})")
        elif match.ratio is not None:
            low, high = match.ratio.low, match.ratio.high
            if low is None or high is None:
                unsure.append(label)
            elif not differ(low, high):
                same.append(label)

    if wrong:
        yield f"{DIFFERENT} left and right learned different merges, so no ratio: {join_names(wrong)}."
    for side, side_rows in sides.items():
        for failure in failures(labelled(side_rows)):
            yield f"{side}: {failure}"
    if differing:
        yield f"Compared although they differ in {differing}."
    if same:
        yield f"No difference: {join_names(same)}."
    yield from clock_note([Against(match.right, match.left) for match in matches])
    if unsure:
        separate = "Not measured in the same blocks, or in too few, so without an interval"
        yield f"{separate}: {join_names(unsure)}."
