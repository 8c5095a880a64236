"""One figure of every row, laid out by two fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.common.errors import Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.results.fields import FIELD, value_text
from harness.results.legend import caption_of, names_of
from harness.results.notes import at_most, notes
from harness.results.rows import Row
from harness.results.tables import MOST_NOTES
from harness.results.writing import figure_text, outcome_text

if TYPE_CHECKING:
    import pandas as pd

Fields = Mapping[str, Sequence[Any]]
"""The value of each row by the name of a field."""


def pivot_sheet(rows: Sequence[Row], named: Sequence[str], value: str) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a
    column.

    A cell without a figure says why, and an empty one has no record. Raises Refusal for an unknown
    field or figure.
    """
    # only here: it costs half a second, and a plain table needs none of it
    import pandas as pd

    fields = fields_of(rows)
    down, across = _layout(rows, fields, named, value)
    # rows of one variant are named by the parameters in which they differ
    fields["variant"] = names_of(rows)

    frame = pd.DataFrame({name: in_order(fields[name]) for name in (*down, across)})
    frame["text"] = [outcome_text(row, figure_text(row, value)) for row in rows]
    table = frame.pivot_table("text", down, across, aggfunc="last", observed=True).fillna("")

    columns = []
    for name in down:
        names = [str(text) for text in table.index.get_level_values(name)]
        columns.append(Column(name, names, _are_numbers(fields[name])))
    heading = f"{across} " if _are_numbers(fields[across]) else ""
    for text, cells in table.items():
        columns.append(Column(f"{heading}{text}", list(cells)))

    caption = [f"{value} by {', '.join(down)} and {across}", *caption_of(rows)]
    return Sheet(caption, columns, notes=at_most(MOST_NOTES, notes(rows), "--notes"))


def in_order(values: Sequence[Any]) -> pd.Categorical[Any]:
    """The values as texts, which sort as numbers if all are numbers, and else as they first
    appeared.
    """
    import pandas as pd

    distinct = list(dict.fromkeys(values))
    if _are_numbers(distinct):
        distinct.sort()
    order = dict.fromkeys(map(value_text, distinct))
    return pd.Categorical(list(map(value_text, values)), list(order), ordered=True)


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


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(type(value) is int for value in values)
