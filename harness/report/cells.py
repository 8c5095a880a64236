"""The page's table: the columns of `harness.table`, and beside each text the figure by which it is sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.columns import column, settings
from harness.figures import figures_of
from harness.legend import Legend, status_text
from harness.report.shown import Shown
from harness.row_sheets import counting_columns, training_columns
from harness.rows import Row
from harness.sheet import Column
from harness.units import count_text

_MEANINGS = {
    "total": "seconds, counting included: the sum of the phases",
    "spread": "the longest total less the shortest, by their median",
    "CPU": "CPU seconds of counter and trainer",
    "read": "seconds of reading the file",
    "count": "seconds of counting words",
    "convert": "seconds of passing words in and merges out",
    "init": "seconds before the first maximum",
    "copy": "seconds of copying all pairs before the maximum is looked for",
    "max": "seconds of finding the most frequent pair",
    "update": "seconds of applying merges and changing counts",
    "other": "seconds that no phase covers",
    "memory": "the peak of the process",
    "merges/s": "merges by the trainer's own seconds",
    "MB/s": "bytes of the corpus by the total",
    "pre-tokens/s": "pre-tokens by the total",
    "words": "different pre-tokens",
    "instructions": "of the trainer's call alone, under callgrind",
    "proof": "the digest of the merges, and which other variants came to the same",
    "identity": "how far an outside trainer's merges are those that are defined",
    "interval": "holds the true ratio with 95 % confidence",
}

# By what a column is sorted that shows no figure of a row's, or shows one that a stopped run lacks.
_SORTED_BY: dict[str, Callable[[Row], Any]] = {
    "total": lambda row: row.total if row.total is not None else row.extrapolated.get("low_seconds"),
    "words": lambda row: row.corpus.get("words"),
    "vocab size": lambda row: row.record.get("vocab_size"),
    "min_count": lambda row: row.record.get("min_count"),
    "threads": lambda row: row.record.get("threads"),
}


@dataclass(frozen=True)
class TableColumn:
    """A column of the page: `keys` are what its cells are sorted by, None where a cell says nothing.

    Where `by_number`, they are figures, else texts.
    """

    heading: str
    meaning: str
    cells: Sequence[str]
    keys: Sequence[float | str | None]
    by_number: bool
    figures: bool


def columns_of(shown: Shown, relative_to: str | None = None) -> list[TableColumn]:
    """The columns for these rows, the first of which names them."""
    rows, legend = shown.rows, shown.legend
    counting_only = bool(rows) and all(row.counting_only for row in rows)
    named = Column("counter" if counting_only else "variant", legend.names, figures=False)
    status = Column("status", [_status(row) for row in rows], figures=False)
    sets = [Column("set", shown.sets, figures=False)] if any(shown.sets) else []
    figures = counting_columns(rows, relative_to) if counting_only else training_columns(rows, legend, relative_to)
    return [_sortable(each, rows) for each in (named, *sets, *_of_settings(legend, counting_only), status, *figures)]


def _status(row: Row) -> str:
    """A status as words; `ok` only where another family came to the same merges."""
    return "unconfirmed" if row.status == "ok" and not row.confirmed else status_text(row)


def _of_settings(legend: Legend, counting_only: bool) -> list[Column]:
    """What rows differ in; the corpus always, since pages are read without what stood around them."""
    found = settings(legend)
    if not any(each.heading == "data" for each in found):
        found.insert(0, Column("data", [str(row.corpus.get("name") or "") for row in legend.rows], figures=False))
    if counting_only and not any(each.heading == "threads" for each in found):
        found.append(column("threads", legend.rows, lambda row: row.record.get("threads"), count_text))
    return found


def _sortable(each: Column, rows: Sequence[Row]) -> TableColumn:
    heading = each.heading
    known = {name: figure.value for name, figure in figures_of(rows).items()} | _SORTED_BY
    keys: list[float | str | None]
    if heading in known:
        keys = [known[heading](row) for row in rows]
    elif each.figures:
        keys = [_number(cell) for cell in each.cells]
    else:
        keys = [cell.casefold() or None for cell in each.cells]
    return TableColumn(
        heading, _MEANINGS.get(heading, ""), each.cells, keys, heading in known or each.figures, each.figures
    )


def _number(cell: str) -> float | None:
    """The figure that a cell's text begins with, marks aside.

    >>> _number("1,203.5?"), _number(">27.4"), _number("-")
    (1203.5, 27.4, None)
    """
    try:
        return float(cell.strip(">?*~ ").replace(",", ""))
    except ValueError:
        return None
