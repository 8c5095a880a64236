"""One figure of every row, laid out by two fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.common.errors import Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.results.fields import FIELD, Key, value_text
from harness.results.legend import caption_of, names_of
from harness.results.notes import at_most, notes
from harness.results.rows import Row
from harness.results.tables import MOST_NOTES
from harness.results.writing import figure_text, outcome_text

Fields = Mapping[str, Sequence[Any]]
"""The value of each row by the name of a field."""


def pivot_sheet(rows: Sequence[Row], named: Sequence[str], value: str) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a
    column.

    A cell without a figure says why, and an empty one has no record. Raises Refusal for an unknown
    field or figure.
    """
    fields = fields_of(rows)
    down, across = _layout(rows, fields, named, value)
    # rows of one variant are named by the parameters in which they differ
    fields["variant"] = names_of(rows)

    cells: dict[tuple[Key, Any], str] = {}
    for index, row in enumerate(rows):
        line = tuple(fields[name][index] for name in down)
        cells[line, fields[across][index]] = outcome_text(row, figure_text(row, value))
    lines = _lines_in_order([line for line, _ in cells])

    columns = []
    for name, values in zip(down, zip(*lines, strict=True), strict=True):
        columns.append(Column(name, list(map(value_text, values)), _are_numbers(values)))
    for heading in _in_order(fields[across]):
        text = f"{across} {value_text(heading)}" if _are_numbers([heading]) else value_text(heading)
        columns.append(Column(text, [cells.get((line, heading), "") for line in lines]))

    caption = [f"{value} by {', '.join(down)} and {across}", *caption_of(rows)]
    return Sheet(caption, columns, notes=at_most(MOST_NOTES, notes(rows), "--notes"))


def fields_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Everything that rows can differ in, by name; parameters are a part of the variant as well."""
    fields: dict[str, list[Any]] = {}
    for name in ("variant", *FIELD, "status"):
        fields[name] = [row.values[name] for row in rows]
    return fields | {"variant": [row.configured for row in rows]}


def _layout(
    rows: Sequence[Row], fields: Fields, named: Sequence[str], value: str
) -> tuple[list[str], str]:
    """The fields down, as many as it takes to keep rows apart, and the field across."""
    down, across = named
    figures = dict.fromkeys(name for row in rows for name in row.figures)
    for name in named:
        if name not in fields:
            raise Refusal(unknown("field", name, fields))
    if value not in figures:
        raise Refusal(unknown("value", value, figures))
    if down == across:
        raise Refusal(f"--pivot names {down} twice; a pivot takes two fields")

    def cells_with(names: Sequence[str]) -> int:
        return len({*zip(*(fields[name] for name in (*names, across)), strict=True)})

    chosen = [down]
    while True:
        best = max(fields, key=lambda name: cells_with([*chosen, name]))
        if cells_with([*chosen, best]) == cells_with(chosen):
            return chosen, across
        chosen.append(best)


def _lines_in_order(lines: Sequence[Key]) -> list[Key]:
    """Each line once, by its first value, then by its second, and so on."""
    orders = [_in_order(values) for values in zip(*lines, strict=True)]

    def ranks_of(line: Key) -> list[int]:
        return [order.index(value) for order, value in zip(orders, line, strict=True)]

    return sorted({*lines}, key=ranks_of)


def _in_order(values: Sequence[Any]) -> list[Any]:
    """Each value once: numbers in order if there are only numbers, all else as it first appeared."""
    distinct = list(dict.fromkeys(values))
    return sorted(distinct) if _are_numbers(distinct) else distinct


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(type(value) is int for value in values)
