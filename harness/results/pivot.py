"""One figure of every row, laid out by two fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.common.errors import Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.results.fields import FIELD, Key, value_text
from harness.results.legend import caption_of, labels_of, names_of
from harness.results.notes import at_most, notes, refusals
from harness.results.ratios import against, clock_note
from harness.results.rows import Row
from harness.results.tables import MOST_NOTES, NOT_COMPARABLE
from harness.results.writing import figure_text, outcome_text, time_text, times_text

Fields = Mapping[str, Sequence[Any]]


def pivot_sheet(
    rows: Sequence[Row], named: Sequence[str], value: str, relative_to: str | None = None
) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a
    column.

    A cell without a figure says why, and an empty one has no record. Raises Refusal for an unknown
    field or figure.
    """
    fields = fields_of(rows)
    down, across = _layout(rows, fields, named, value)
    # rows of one variant are named by the parameters in which they differ
    fields["variant"] = names_of(rows)
    lines = list(zip(*map(fields.__getitem__, down), strict=True))
    headings = [(heading,) for heading in fields[across]]
    title = value if relative_to is None else f"{value} / {relative_to}"
    texts, below = _texts(rows, value, relative_to)
    cells = dict(zip(zip(lines, headings, strict=True), texts, strict=True))

    ordered, columns = _in_order(lines), []
    for name, values in zip(down, zip(*ordered, strict=True), strict=True):
        columns.append(Column(name, list(map(value_text, values)), all(map(_is_number, values))))
    for heading in _in_order(headings):
        text = value_text(heading[0])
        if _is_number(heading[0]):
            text = f"{across} {text}"
        columns.append(Column(text, [cells.get((line, heading), "") for line in ordered]))
    caption = [f"{title} by {', '.join(down)} and {across}", *caption_of(rows)]
    return Sheet(caption, columns, notes=below)


def _texts(rows: Sequence[Row], value: str, relative_to: str | None) -> tuple[list[str], list[str]]:
    """The text of each row's cell, and the notes below the table."""
    below = at_most(MOST_NOTES, notes(rows), "--notes")
    if relative_to is None:
        return [outcome_text(row, _figure_text(row, value)) for row in rows], below

    compared, texts = against(rows, relative_to), []
    for comparison in compared:
        ratio = times_text(comparison.ratio(value), "", interval=False)
        text = NOT_COMPARABLE if comparison.refused else outcome_text(comparison.row, ratio)
        texts.append(text)
    below += refusals(compared, labels_of(rows))
    return texts, [*below, *clock_note(compared)] if value == "total" else below


def fields_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Everything that rows can differ in, by name."""
    fields: dict[str, list[Any]] = {"variant": [row.configured for row in rows]}
    for name in (*FIELD, "status"):
        if name not in ("variant", "params"):
            fields[name] = [row.values[name] for row in rows]
    return fields


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


def _in_order(keys: Iterable[Key]) -> list[Key]:
    """Numbers in order if there are only numbers, all else as it first appeared."""
    distinct, ranks = list(dict.fromkeys(keys)), []
    for values in zip(*distinct, strict=True):
        ordered = sorted(set(values)) if all(map(_is_number, values)) else dict.fromkeys(values)
        ranks.append({value: rank for rank, value in enumerate(ordered)})

    def ranks_of(key: Key) -> list[int]:
        return [rank_of[value] for rank_of, value in zip(ranks, key, strict=True)]

    return sorted(distinct, key=ranks_of)


def _is_number(value: Any) -> bool:
    return type(value) is int


def _figure_text(row: Row, value: str) -> str | None:
    return time_text(row.time) if value == "total" else figure_text(row, value)
