"""One figure of every row, laid out by two fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.common.errors import Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.results.fields import FIELDS, Key, value_text
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
    named_fields = {**fields, "variant": names_of(rows)}
    lines = list(zip(*(named_fields[name] for name in down), strict=True))
    headings = [(heading,) for heading in named_fields[across]]
    below = at_most(MOST_NOTES, notes(rows), "--notes")
    if relative_to is None:
        title = value
        texts = [outcome_text(row, _text(row, value)) for row in rows]
    else:
        title = f"{value} / {relative_to}"
        compared = against(rows, relative_to)
        below += refusals(compared, labels_of(rows))
        below += clock_note(compared) if value == "total" else []
        texts = []
        for comparison in compared:
            ratio = times_text(comparison.ratio(value), "", interval=False)
            texts.append(
                NOT_COMPARABLE if comparison.refused else outcome_text(comparison.row, ratio)
            )

    cells = dict(zip(zip(lines, headings, strict=True), texts, strict=True))
    ordered = _in_order(lines)
    columns = []
    for name, values in zip(down, zip(*ordered, strict=True), strict=True):
        are_numbers = all(_is_number(number) for number in values)
        columns.append(Column(name, [value_text(each) for each in values], are_numbers))
    for heading in _in_order(headings):
        text = value_text(heading[0])
        if _is_number(heading[0]):
            text = f"{across} {text}"
        columns.append(Column(text, [cells.get((line, heading), "") for line in ordered]))

    caption = [f"{title} by {', '.join(down)} and {across}", *caption_of(rows)]
    return Sheet(caption, columns, [""] * len(ordered), below)


def fields_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Everything that rows can differ in, by name."""
    fields: dict[str, list[Any]] = {"variant": [row.configured for row in rows]}
    for name in (*(field.name for field in FIELDS), "status"):
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
    distinct = list(dict.fromkeys(keys))
    ranks: list[dict[Any, Any]] = []
    for values in zip(*distinct, strict=True):
        rank_of = {value: rank for rank, value in enumerate(dict.fromkeys(values))}
        if all(_is_number(value) for value in rank_of):
            rank_of = {value: value for value in rank_of}
        ranks.append(rank_of)
    return sorted(
        distinct,
        key=lambda key: [rank_of[value] for rank_of, value in zip(ranks, key, strict=True)],
    )


def _is_number(value: Any) -> bool:
    return type(value) is int


def _text(row: Row, value: str) -> str | None:
    return time_text(row.time) if value == "total" else figure_text(row, value)
