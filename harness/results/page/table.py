"""The rows of a page and its table: whose each row is and what it was to do, its cells and what they are sorted by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common.sheet import Column
from harness.common.units import count_text
from harness.results.columns import column, differing_columns
from harness.results.fairness import incomparable
from harness.results.fields import figures_of, value_of
from harness.results.legend import Legend, status_text
from harness.results.rows import Row, rows
from harness.results.tables import counting_columns, training_columns
from harness.runs.fields import COLUMNS, WORK


@dataclass(frozen=True)
class PageRows:
    """Rows in the order of the table; every list has an item for each of them.

    `labels` name them, no two alike; `brief` does so beside rows of one task. `tasks` are what they were to do: the
    times of rows of one task are there to be compared. `sets` say whose they are, empty where there is one set alone.
    """

    rows: Sequence[Row]
    legend: Legend
    labels: Sequence[str]
    brief: Sequence[str]
    tasks: Sequence[str]
    sets: Sequence[str]

    def comparable(self, place: int, other: int) -> bool:
        """Whether the times of two rows may be ranked: of the same work, of one set, on machines of one kind."""
        row, beside = self.rows[place], self.rows[other]
        same_host = row.record.get("host") == beside.record.get("host")
        same_work = row.question == beside.question and incomparable(row, beside) is None
        return same_host and same_work and self.sets[place] == self.sets[other]


def rows_of_page(sets: Mapping[str, Sequence[Mapping[str, Any]]]) -> PageRows:
    """The rows of sets of records, by the name of each set; cells of two sets never become one row."""
    named = _beside_each_other([(name, row) for name, records in sets.items() for row in rows(records)])
    everything = [row for _, row in named]
    legend = Legend(everything)
    owners = [name for name, _ in named]
    tasks = [_task(legend, place) for place in range(len(everything))]
    brief = [""] * len(everything)
    by_task: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        by_task.setdefault(task, []).append(place)
    for places in by_task.values():
        labels = Legend([everything[place] for place in places]).short_labels()
        for place, label in zip(places, _owned(labels, [owners[place] for place in places]), strict=True):
            brief[place] = label
    return PageRows(everything, legend, _owned(legend.short_labels(), owners), brief, tasks, owners)


def _beside_each_other(named: Sequence[tuple[str, Row]]) -> list[tuple[str, Row]]:
    """The same cells of several sets one after the other, in the order of the first set."""
    labels = Legend([row for _, row in named]).short_labels()
    first = {label: place for place, label in reversed([*enumerate(labels)])}
    return [named[place] for place in sorted(range(len(named)), key=lambda place: (first[labels[place]], place))]


def _owned(labels: Sequence[str], owners: Sequence[str]) -> list[str]:
    """Labels with whose rows they name, no two alike."""
    return _told_apart([f"{label} · {name}" if name else label for label, name in zip(labels, owners, strict=True)])


def _task(legend: Legend, place: int) -> str:
    """A task in words: its corpus, and what else decides the work where the rows differ in it."""
    row = legend.rows[place]
    corpus = legend.columns["data"][place] if "data" in legend.columns else str(row.corpus.get("name"))
    differing = [field.name for field in WORK if field in legend.differing and field.name in row.words]
    return ", ".join(filter(None, (corpus, *(row.words[name].said for name in differing))))


def _told_apart(labels: Sequence[str]) -> list[str]:
    """The labels with a number behind those that have occurred before.

    >>> _told_apart(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: dict[str, int] = {}
    apart = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        apart.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return apart


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
    **{field.title: value_of(field) for field in COLUMNS if field.figure},
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


def columns_of(page_rows: PageRows, relative_to: str | None = None) -> list[TableColumn]:
    """The columns for these rows, the first of which names them."""
    rows, legend = page_rows.rows, page_rows.legend
    counting_only = bool(rows) and all(row.counting_only for row in rows)
    named = Column("counter" if counting_only else "variant", legend.names, figures=False)
    status = Column("status", [_status(row) for row in rows], figures=False)
    sets = [Column("set", page_rows.sets, figures=False)] if any(page_rows.sets) else []
    figures = counting_columns(rows, relative_to) if counting_only else training_columns(rows, legend, relative_to)
    known = {name: figure.value for name, figure in figures_of(rows).items()} | _SORTED_BY
    everything = (named, *sets, *_asked(legend, counting_only), status, *figures)
    return [_sortable(one, rows, known.get(one.heading)) for one in everything]


def _status(row: Row) -> str:
    """A status as words; `ok` only where another family came to the same merges."""
    return "unconfirmed" if row.status == "ok" and not row.confirmed else status_text(row)


def _asked(legend: Legend, counting_only: bool) -> list[Column]:
    """What rows differ in; the corpus always, since pages are read without what stood around them."""
    columns = differing_columns(legend)
    if not any(one.heading == "data" for one in columns):
        columns.insert(0, Column("data", [str(row.corpus.get("name") or "") for row in legend.rows], figures=False))
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
    return TableColumn(one.heading, _MEANINGS.get(one.heading, ""), one.cells, keys, by_number, one.figures)


def _number(cell: str) -> float | None:
    """The figure that a cell's text begins with, marks aside.

    >>> _number("1,203.5?"), _number(">27.4"), _number("-")
    (1203.5, 27.4, None)
    """
    try:
        return float(cell.strip(">?*~ ").replace(",", ""))
    except ValueError:
        return None
