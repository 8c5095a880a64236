"""One figure of every row, laid out by two fields: variants down and corpora across, or any two others.

Where two rows would stand in one cell, a further field that tells them apart becomes a column before the figures: two
measurements are never made one in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.common.console import well_formed
from harness.common.errors import Refusal
from harness.common.registry import unknown
from harness.common.sheet import Column, Sheet
from harness.common.units import ratio_text
from harness.results.fields import SIGNS, Figure, fields_of, figures_of, time_of
from harness.results.legend import NOT_MEASURED, Legend, notes, status_text
from harness.results.rows import Row
from harness.results.tables import NOT_COMPARABLE, Baseline, mark_of
from harness.runs.fields import value_text

if TYPE_CHECKING:
    import pandas as pd

WRONG = "≠"

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Pivot:
    """Where each of `rows` stands: at the values of `down` (several, where one is not enough) and of `across`."""

    rows: Sequence[Row]
    down: tuple[str, ...]
    across: str
    figure: Figure
    baseline: Baseline | None
    places: Mapping[tuple[Key, Any], int]

    @property
    def lines(self) -> list[Key]:
        return _ordered(key for key, _ in self.places)

    @property
    def columns(self) -> list[Any]:
        return [value for (value,) in _ordered((value,) for _, value in self.places)]

    @cached_property
    def values(self) -> list[float | None]:
        """The figure of each row, or how many times that of the baseline it is; estimates are no figures."""
        if self.baseline is None:
            return [self.figure.value(row) for row in self.rows]
        if self.figure.name != "total":
            return self.baseline.ratios(self.figure.value)
        return [
            ratio.number if ratio is not None and row.total is not None else None
            for row, ratio in zip(self.rows, self.baseline.totals, strict=True)
        ]

    @property
    def heading(self) -> str:
        return self.figure.name if self.baseline is None else f"{self.figure.name} / {self.baseline.variant}"


def pivot(rows: Sequence[Row], named: tuple[str, str], value: str, relative_to: str | None = None) -> Pivot:
    """Lay rows out by two fields. Raises Refusal for a field or a figure that there is none of."""
    (down, across), fields, figures = named, fields_of(rows), figures_of(rows)
    for name in (down, across):
        if name not in fields:
            raise Refusal(unknown("field", name, fields))
    if value not in figures:
        raise Refusal(unknown("value", value, figures))
    if down == across:
        raise Refusal(f"--pivot names {down} twice; a pivot takes two fields")
    chosen = [down]
    while crowded := _crowded(rows, [fields[name] for name in (*chosen, across)]):
        telling = [name for name, field in fields.items() if len(set(map(field, crowded))) > 1]
        if not telling:
            alike = ", ".join(row.name for row in crowded)
            raise Refusal(f"{alike} are alike in every field that there is, so no cell holds them apart; leave one out")
        chosen.append(telling[0])
    places = {
        (tuple(fields[name](row) for name in chosen), fields[across](row)): place for place, row in enumerate(rows)
    }
    baseline = Baseline(rows, relative_to) if relative_to is not None else None
    return Pivot(rows, tuple(chosen), across, figures[value], baseline, places)


def _crowded(rows: Sequence[Row], fields: Sequence[Callable[[Row], Any]]) -> list[Row]:
    """The first rows that would stand in one cell."""
    cells: dict[Key, list[Row]] = {}
    for row in rows:
        cells.setdefault(tuple(field(row) for field in fields), []).append(row)
    return next((together for together in cells.values() if len(together) > 1), [])


def _ordered(keys: Iterable[Key]) -> list[Key]:
    """Numbers from the small to the large where there are only numbers, all else as it first appeared."""
    once = list(dict.fromkeys(keys))
    first = {value: place for place, value in enumerate(dict.fromkeys(value for key in once for value in key))}
    numeric = [all(map(is_number, column)) for column in zip(*once, strict=True)]

    def rank(key: Key) -> list[int]:
        return [value if number else first[value] for value, number in zip(key, numeric, strict=True)]

    return sorted(once, key=rank)


def is_number(value: Any) -> bool:
    return type(value) is int


def pivot_sheet(laid: Pivot) -> Sheet:
    """The pivot as a sheet; a cell without a figure says why, and a blank has no record."""
    legend = Legend(laid.rows)
    texts = [_cell(laid, place) for place in range(len(laid.rows))]
    lines = laid.lines
    columns = [
        Column(name, list(map(value_text, values)), figures=all(map(is_number, values)))
        for name, values in zip(laid.down, zip(*lines, strict=True), strict=True)
    ]
    for value in laid.columns:
        places = [laid.places.get((line, value)) for line in lines]
        heading = f"{laid.across} {value_text(value)}" if is_number(value) else value_text(value)
        columns.append(Column(heading, ["" if place is None else texts[place] for place in places]))
    refusals = laid.baseline.refusals(legend.short_labels()) if laid.baseline is not None else []
    caption = [f"{laid.heading} by {', '.join(laid.down)} and {laid.across}", *legend.caption()]
    return Sheet(caption, columns, ["" for _ in lines], [*notes(laid.rows, legend.short_labels()), *refusals])


def _cell(laid: Pivot, place: int) -> str:
    row, value = laid.rows[place], laid.values[place]
    if laid.baseline is not None and laid.baseline.is_refused(row):
        return NOT_COMPARABLE
    if value is not None:
        return (laid.figure.text if laid.baseline is None else ratio_text)(value) + mark_of(row)
    if row.status in ("mismatch", "ok"):
        return WRONG if row.status == "mismatch" else NOT_MEASURED
    if laid.figure.name == "total" and laid.baseline is None:
        return time_of(row).text or status_text(row)
    if laid.figure.name == "total" and laid.baseline is not None and (ratio := laid.baseline.totals[place]):
        return f"{SIGNS.get(ratio.form, '')}{ratio_text(ratio.number)}"
    return status_text(row)


def pivot_frame(laid: Pivot) -> pd.DataFrame:
    """The pivot for programs: across each value a column of raw figures, one of what came of it, and why."""
    import pandas as pd  # only here: it costs half a second, and a table for the eye needs none of it

    lines, values = laid.lines, laid.values
    columns: dict[str, Any] = {
        name: [well_formed(value) if isinstance(value, str) else value for value in of_lines]
        for name, of_lines in zip(laid.down, zip(*lines, strict=True), strict=True)
    }
    for value in laid.columns:
        places = [laid.places.get((line, value)) for line in lines]
        rows = [None if place is None else laid.rows[place] for place in places]
        named = f"{laid.across}={value if is_number(value) else well_formed(value_text(value))}"
        columns[f"{named} {laid.heading}"] = pd.Series(
            [None if place is None else values[place] for place in places], dtype="float64"
        )
        columns[f"{named} status"] = pd.Series([row and row.status for row in rows], dtype="string")
        reasons = [row and (well_formed(row.reason) or None) for row in rows]
        columns[f"{named} reason"] = pd.Series(reasons, dtype="string")
    return pd.DataFrame(columns)
