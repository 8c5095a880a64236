"""Two sets of records side by side: what one machine, version or day measured, and another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from harness.common.comparison import differ
from harness.common.errors import UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.records.file import Record
from harness.results.fields import FIELDS, Difference, Key, differences, together
from harness.results.legend import caption_of, columns_of, labelled, labels_of, names_of
from harness.results.notes import failures
from harness.results.ratios import Against, Ratio, clock_note, ratio_of
from harness.results.rows import Row, is_wrong, rows
from harness.results.tables import first_heading, style_of
from harness.results.writing import (
    DIFFERENT,
    NOT_MEASURED,
    join_names,
    memory_text,
    outcome_text,
    time_text,
    times_text,
)


class Match(NamedTuple):
    """A row of each set about one cell, and the circumstances in which they are unlike."""

    left: Row
    right: Row
    differences: tuple[Difference, ...]

    @property
    def merges(self) -> str:
        """The digest that both learned, or both digests; a dash if they cannot be compared."""
        left, right = self.left, self.right
        learned = left.status == right.status == "ok" and not left.counting_only
        if not learned or any(difference.field.decides_merges for difference in self.differences):
            return NOT_MEASURED
        if left.digest == right.digest:
            return f"= {left.digest}"
        return f"{DIFFERENT} {left.digest}, {right.digest}"

    @property
    def merges_differ(self) -> bool:
        return self.merges.startswith(DIFFERENT)

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
    left_rows, right_rows = rows(left), rows(right)
    matches, alone = _matched(left_rows, right_rows)
    if not matches:
        raise _nothing_in_common(names, alone["left"][0], alone["right"][0])
    differing = _differences_text(list(chain(*(match.differences for match in matches))))
    if differing and not allow_different:
        sets = " and ".join(names)
        raise Refusal(f"{sets} differ in {differing}; --allow-different compares them all the same")

    notes = [*_notes(matches, differing)]
    for side, lonely in alone.items():
        if lonely:
            notes.append(f"Only {side}: {join_names(labels_of(lonely))}.")
    is_bad, styles = is_wrong([*left_rows, *right_rows]), []
    for match in matches:
        styles.append("red" if match.merges_differ else style_of(match.left, match.right))
        is_bad |= match.merges_differ
    return Sheet(_caption(matches, names), _columns(matches), styles, notes), is_bad


def _nothing_in_common(names: Sequence[str], left: Row, right: Row) -> Refusal:
    why = _differences_text(differences(left.record, right.record))
    return Refusal(
        f"{' and '.join(names)} have no cell in common to compare: their first rows differ in "
        f"{why or f'{left.name} and {right.name}'}",
        UNMEASURED,
    )


def _caption(matches: Sequence[Match], names: Sequence[str]) -> list[str]:
    captions = []
    for side, name in zip(("left", "right"), names, strict=True):
        captions.append(f"{side}: {name}: {'; '.join(caption_of(_side(matches, side)))}")
    return captions


def _side(matches: Sequence[Match], side: str) -> list[Row]:
    return [match.left if side == "left" else match.right for match in matches]


def _columns(matches: Sequence[Match]) -> list[Column]:
    left = _side(matches, "left")
    columns = [
        Column(first_heading(left), names_of(left), figures=False),
        *columns_of(left).values(),
    ]
    for side in ("left", "right"):
        times = [outcome_text(row, time_text(row.time)) for row in _side(matches, side)]
        columns.append(Column(f"total {side}", times))

    ratios = []
    for match in matches:
        ratio = DIFFERENT if match.merges_differ else times_text(match.ratio, "")
        ratios.append(ratio or NOT_MEASURED)
    columns.append(Column("right / left", ratios))
    for side in ("left", "right"):
        peaks = [memory_text(row) or NOT_MEASURED for row in _side(matches, side)]
        columns.append(Column(f"memory {side}", peaks))
    return [*columns, Column("merges", [match.merges for match in matches], figures=False)]


def _matched(left: Sequence[Row], right: Sequence[Row]) -> tuple[list[Match], dict[str, list[Row]]]:
    """The rows of one cell together, and those that are alone in either set."""
    others = together([(_cell_of(row), row) for row in right])
    matches, alone = list[Match](), list[Row]()
    for row in left:
        candidates = others.get(_cell_of(row))
        if candidates:
            other = candidates.pop(0)
            matches.append(Match(row, other, differences(row.record, other.record)))
        else:
            alone.append(row)
    lonely = [row for candidates in others.values() for row in candidates]
    return matches, {"left": alone, "right": lonely}


def _cell_of(row: Row) -> Key:
    """Return the key of its cell without circumstances, with the name of the corpus in place of its
    digest.
    """
    fields = [field.name for field in FIELDS if field.names_cell and not field.circumstance]
    return tuple(row.values["data" if name == "data.sha256" else name] for name in fields)


def _differences_text(unlike: Sequence[Difference]) -> str:
    """Each condition with both sides; the first few of one that differs in many ways."""
    sides = together([(each.field.unlike, f"{each.left} / {each.right}") for each in unlike])
    texts = []
    for condition, values in sides.items():
        texts.append(f"{condition} ({join_names([*dict.fromkeys(values)])})")
    return " and in ".join(texts)


def _notes(matches: Sequence[Match], differing: str) -> Iterator[str]:
    labels = labels_of(_side(matches, "left"))
    wrong, same, unsure = list[str](), list[str](), list[str]()
    for match, label in zip(matches, labels, strict=True):
        if match.merges_differ:
            wrong.append(label)
        elif match.ratio is not None:
            low, high = match.ratio.low, match.ratio.high
            if low is None or high is None:
                unsure.append(label)
            elif not differ(low, high):
                same.append(label)

    if wrong:
        differ_text = f"{DIFFERENT} left and right learned different merges, so no ratio"
        yield f"{differ_text}: {join_names(wrong)}."
    for side in ("left", "right"):
        for failure in failures(labelled(_side(matches, side))):
            yield f"{side}: {failure}"
    if differing:
        yield f"Compared although they differ in {differing}."
    if same:
        yield f"No difference: {join_names(same)}."
    yield from clock_note([Against(match.right, match.left) for match in matches])
    if unsure:
        separate = "Not measured in the same blocks, or in too few, so without an interval"
        yield f"{separate}: {join_names(unsure)}."
