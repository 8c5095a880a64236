"""The table of a page: its columns with the essential ones first, its cells and what they are sorted by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common.sheet import Column
from harness.common.units import count_text, ratio_text
from harness.results.columns import column, differing_columns, mark_of, nothing
from harness.results.fields import MEANINGS, figures_of, value_of
from harness.results.legend import Legend, status_text
from harness.results.page.page_rows import PageRows
from harness.results.page.ranking import times_the_fastest
from harness.results.rows import Row
from harness.results.tables import counting_columns, training_columns
from harness.runs.fields import COLUMNS

# By what a column is sorted that shows no figure of a row's, or shows one that a stopped run lacks.
_SORTED_BY: dict[str, Callable[[Row], Any]] = {
    "total": lambda row: row.total if row.total is not None else row.extrapolated.get("low_seconds"),
    "words": lambda row: row.corpus.get("words"),
    **{field.title: value_of(field) for field in COLUMNS if field.figure},
}


@dataclass(frozen=True)
class TableColumn:
    """A column of the page: `keys` are what its cells are sorted by, None where a cell says nothing.

    Where `by_number`, they are figures, else texts. A narrow page leaves out what is `minor`.
    """

    heading: str
    meaning: str
    cells: Sequence[str]
    keys: Sequence[float | str | None]
    by_number: bool
    figures: bool
    minor: bool = False


RATIO = "ratio"
_NAMES = ("variant", "counter", "set")
_FIRST = (*_NAMES, *(field.title for field in COLUMNS), "total", RATIO, "interval", "memory", "proof")
"""The columns that come first, in this order; ratios to a variant that was named stand where `ratio` does."""
_KEPT = (*_NAMES, "total", "proof")
"""What is a column even where all its cells are alike."""


def columns_of(page_rows: PageRows, relative_to: str | None = None) -> list[TableColumn]:
    """The columns for these rows, the first of which names them; what is the same of all rows is no column."""
    rows, legend = page_rows.rows, page_rows.legend
    counting_only = bool(rows) and all(row.counting_only for row in rows)
    named = Column("counter" if counting_only else "variant", legend.names, figures=False)
    status = Column("status", [_status(row) for row in rows], figures=False)
    sets = [Column("set", page_rows.sets, figures=False)] if any(page_rows.sets) else []
    figures = counting_columns(rows, relative_to) if counting_only else training_columns(rows, legend, relative_to)
    times = times_the_fastest(page_rows)
    ratio = Column(RATIO, [_times_text(row, number) for row, number in zip(rows, times, strict=True)])
    own = [] if any(_is_ratio(one.heading) for one in figures) else [ratio]
    known = {name: figure.value for name, figure in figures_of(rows).items()} | _SORTED_BY
    everything = [named, *sets, *_asked(legend, counting_only), *figures, *own, status]
    kept = [one for one in everything if one.heading in _KEPT or len(rows) < 2 or len(set(one.cells)) > 1]
    return [_sortable(one, rows, known.get(one.heading)) for one in sorted(kept, key=_precedence)]


def _is_ratio(heading: str) -> bool:
    return heading == RATIO or heading.startswith(("total / ", "times "))


def _precedence(one: Column) -> int:
    heading = RATIO if _is_ratio(one.heading) else one.heading
    return _FIRST.index(heading) if heading in _FIRST else len(_FIRST)


def _times_text(row: Row, times: float | None) -> str:
    return nothing(row) if times is None else ratio_text(times) + mark_of(row)


def _status(row: Row) -> str:
    """A status as words; `ok` only if the merges are proved."""
    return "unconfirmed" if row.status == "ok" and not row.confirmed else status_text(row)


def _asked(legend: Legend, counting_only: bool) -> list[Column]:
    """What rows differ in."""
    columns = differing_columns(legend)
    if counting_only and not any(one.heading == "threads" for one in columns):
        columns.append(column("threads", legend.rows, lambda row: row.record.get("threads"), count_text))
    return columns


def _sortable(one: Column, rows: Sequence[Row], value: Callable[[Row], Any] | None) -> TableColumn:
    """A column, sorted by a value of each row's where there is one, else by what its cells say."""
    keys: list[float | str | None]
    if value is not None:
        keys = list(map(value, rows))
    elif one.figures:
        keys = [_number(cell) for cell in one.cells]
    else:
        keys = [cell.casefold() or None for cell in one.cells]
    by_number = value is not None or one.figures
    minor = one.heading not in (*_NAMES, "data", "total") and not _is_ratio(one.heading)
    meaning = MEANINGS[one.heading].full if one.heading in MEANINGS else ""
    return TableColumn(one.heading, meaning, one.cells, keys, by_number, one.figures, minor)


def _number(cell: str) -> float | None:
    """The figure that a cell's text begins with, marks aside.

    >>> _number("1,203.5?"), _number(">27.4"), _number("-")
    (1203.5, 27.4, None)
    """
    try:
        return float(cell.strip(">?*~ ").replace(",", ""))
    except ValueError:
        return None
