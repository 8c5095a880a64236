"""Two sets of records side by side: what one machine, version or day measured, and another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.common.errors import UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.results.fields import FIELDS
from harness.results.legend import caption_of, differing_columns, labelled, labels_of, names_of
from harness.results.notes import failures
from harness.results.ratios import Against, clock_note, ratio_of
from harness.results.rows import Row, is_wrong
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
CIRCUMSTANCES = ("data.sha256", "interpreter", "host")
SAME = [field.name for field in FIELDS if field.names_cell and field.name not in CIRCUMSTANCES]
"""The fields in which two rows must agree to be compared."""


def compared(every: Sides, names: Sequence[str]) -> tuple[Sheet, bool]:
    """Rows of two sets that differ in nothing but circumstances, side by side; and whether any
    merges are wrong.

    Below them is what only one set has. Raises Refusal if no cell is in both.
    """
    sides = _matched(every)
    pairs = list(zip(*sides.values(), strict=True))
    if not pairs:
        firsts = labels_of([rows[0] for rows in every.values()])
        why = f"have no cell in common to compare: their first rows are {' and '.join(firsts)}"
        raise Refusal(f"{' and '.join(names)} {why}", UNMEASURED)

    ratios, styles = [], []
    for left, right in pairs:
        differ = _merges_differ(left, right)
        ratio = DIFFERENT if differ else times_text(ratio_of(right, left), "")
        ratios.append(ratio or NOT_MEASURED)
        styles.append("red" if differ else style_of(left, right))

    captions = []
    for name, (side, rows) in zip(names, sides.items(), strict=True):
        captions.append(f"{side}: {name}: {'; '.join(caption_of(rows))}")
    is_bad = "red" in styles or is_wrong([*every["left"], *every["right"]])
    notes = [*_notes_on_pairs(pairs), *_notes_on_sides(every, sides)]
    return Sheet(captions, _columns(sides, ratios), styles, notes), is_bad


def _matched(every: Sides) -> Sides:
    """The rows of each cell that both sets have, in the order of the left one."""
    partners: dict[tuple[object, ...], Row] = {}
    for row in every["right"]:
        partners.setdefault(tuple(row.values[name] for name in SAME), row)

    lefts, rights = [], []
    for row in every["left"]:
        partner = partners.pop(tuple(row.values[name] for name in SAME), None)
        if partner is not None:
            lefts.append(row)
            rights.append(partner)
    return {"left": lefts, "right": rights}


def _merges_differ(left: Row, right: Row) -> bool:
    """Return whether both learned merges of the same bytes, and not the same ones."""
    if left.counting_only or not left.status == right.status == "ok":
        return False
    return left.corpus.sha256 == right.corpus.sha256 and left.digest != right.digest


def _columns(sides: Sides, ratios: Sequence[str]) -> list[Column]:
    left = sides["left"]
    columns = [Column(first_heading(left), names_of(left), figures=False)]
    columns += differing_columns(left).values()
    for side, rows in sides.items():
        times = [outcome_text(row, figure_text(row, "total")) for row in rows]
        columns.append(Column(f"total {side}", times))

    columns.append(Column("right / left", ratios))
    for side, rows in sides.items():
        peaks = [figure_text(row, "memory") or NOT_MEASURED for row in rows]
        columns.append(Column(f"memory {side}", peaks))
    return columns


def _notes_on_pairs(pairs: Sequence[tuple[Row, Row]]) -> Iterator[str]:
    wrong, unlike = list[str](), dict[str, dict[str, None]]()
    for left, right in pairs:
        if _merges_differ(left, right):
            wrong.append(f"{left.name} ({left.digest}, {right.digest})")
        for title, column in differing_columns([left, right]).items():
            unlike.setdefault(title, {})[" / ".join(column.cells)] = None

    if wrong:
        yield f"{DIFFERENT} left and right learned different merges, so no ratio: {join_names(wrong)}."
    for title, values in unlike.items():
        yield f"Left and right differ in {title}: {join_names([*values])}."
    yield from clock_note([Against(right, left) for left, right in pairs])


def _notes_on_sides(every: Sides, sides: Sides) -> Iterator[str]:
    for side, rows in every.items():
        for failure in failures(labelled(rows)):
            yield f"{side}: {failure}"
        alone = [label for row, label in labelled(rows) if row not in sides[side]]
        if alone:
            yield f"Only {side}: {join_names(alone)}."
