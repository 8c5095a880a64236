"""One figure of every row, laid out by fields: by two of your choice, or as two sets of records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from harness.common.errors import UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.common.targets import unknown_text
from harness.records.file import Record
from harness.results.fields import FIELD, FIELDS, value_text
from harness.results.legend import caption_of, names_of
from harness.results.ratios import Against, incomparable
from harness.results.rows import Row
from harness.results.tables import NOT_COMPARABLE, notes_below
from harness.results.writing import NOT_MEASURED, figure_text, outcome_text, times_text

if TYPE_CHECKING:
    import pandas as pd

SIDE = "gate.side"
CIRCUMSTANCES = ("data.sha256", "interpreter", "host")
"""In what rows may differ whose figures stand side by side."""


def pivot_sheet(rows: Sequence[Row], named: Sequence[str], value: str, *, whole: bool) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a
    column.

    A cell without a figure says why, and an empty one has no record. Raises Refusal for an unknown
    field or figure.
    """
    fields = fields_of(rows)
    down, across = named
    for name in named:
        if name not in fields:
            raise Refusal(unknown_text("field", name, fields))
    if down == across:
        raise Refusal(f"--pivot names {down} twice; a pivot takes two fields")

    def cells_with(names: Sequence[str]) -> int:
        return len({*zip(*(fields[name] for name in (*names, across)), strict=True)})

    chosen = [down]
    while True:
        best = max(fields, key=lambda name: cells_with([*chosen, name]))
        if cells_with([*chosen, best]) == cells_with(chosen):
            break
        chosen.append(best)
    caption = [f"{value} by {', '.join(chosen)} and {across}", *caption_of(rows)]
    columns, _ = _laid_out(rows, chosen, across, value)
    return Sheet(caption, columns, notes=notes_below(rows, whole=whole))


def with_side(records: Sequence[Record], side: str) -> list[Record]:
    """The records of one of two sets."""
    gate: Any = {"side": side, "tier": None}
    return [replace(record, cell=structs.replace(record.cell, gate=gate)) for record in records]


def compared_sheet(rows: Sequence[Row], names: Sequence[str], value: str, *, whole: bool) -> Sheet:
    """The figure `value` of two sets side by side, and the ratio of the right one to the left one.

    A line is of one cell, on whatever machine, Python or bytes it was measured. Raises Refusal if
    no cell is in both.
    """
    down, unlike = ["variant"], []
    for field in FIELDS:
        if len({row.values[field.name] for row in rows}) > 1:
            if field.name in CIRCUMSTANCES:
                unlike.append(field.name)
            elif field.names_cell and field.name not in ("variant", "params", SIDE):
                down.append(field.name)
    columns, lines = _laid_out(rows, down, SIDE, value)

    ratios = []
    for left, right in zip(lines.get("left", ()), lines.get("right", ()), strict=False):
        if left is None or right is None:
            ratios.append("")
        elif incomparable(right, left):
            ratios.append(NOT_COMPARABLE)
        else:
            ratios.append(times_text(Against(right, left).ratio(value), "") or NOT_MEASURED)
    if not any(ratios):
        raise Refusal(f"{' and '.join(names)} have no cell in common to compare", UNMEASURED)

    caption = [f"{value} by {', '.join(down)} and side"]
    for side, name in zip(("left", "right"), names, strict=True):
        of_side = [row for row in rows if row.values[SIDE] == side]
        caption.append(f"{side}: {name}: {'; '.join(caption_of(of_side))}")
    columns.append(Column("right / left", ratios))
    below = [f"The rows differ in {' and '.join(unlike)}."] if unlike else []
    return Sheet(caption, columns, notes=[*below, *notes_below(rows, whole=whole)])


def _laid_out(
    rows: Sequence[Row], down: Sequence[str], across: str, value: str
) -> tuple[list[Column], dict[str, list[Row | None]]]:
    """The columns of a pivot, and the row of each line by the value of the field across. Raises
    Refusal for an unknown figure.
    """
    # only here: it costs half a second, and a plain table needs none of it
    import pandas as pd

    figures = dict.fromkeys(name for row in rows for name in row.figures)
    if value not in figures:
        raise Refusal(unknown_text("value", value, figures))
    # rows of one variant are named by the parameters in which they differ
    fields = {**fields_of(rows), "variant": names_of(rows)}
    frame = pd.DataFrame({name: in_order(fields[name]) for name in (*down, across)})
    frame["row"] = range(len(rows))
    table = frame.pivot_table("row", list(down), across, aggfunc="last", observed=True)

    columns = []
    for name in down:
        texts = [str(text) for text in table.index.get_level_values(name)]
        columns.append(Column(name, texts, _are_numbers(fields[name])))
    heading = f"{across} " if _are_numbers(fields[across]) else ""
    lines: dict[str, list[Row | None]] = {}
    for of_column, indices in table.items():
        line = [None if math.isnan(index) else rows[int(index)] for index in indices]
        texts = [outcome_text(row, figure_text(row, value)) if row else "" for row in line]
        columns.append(Column(f"{heading}{of_column}", texts))
        lines[str(of_column)] = line
    return columns, lines


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


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(type(value) is int for value in values)
