"""Sheets from rows: a narrow table for each task; beside it counts of work, and what each outside
trainer was given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.common.errors import Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import count_text, did_you_mean
from harness.results.fields import together
from harness.results.legend import caption_of, differing_columns, names_of, titles_of
from harness.results.notes import at_most, notes
from harness.results.ratios import Against, against, clock_note
from harness.results.rows import Row, is_one_variant, phases_of, tallies_of
from harness.results.writing import (
    NOT_MEASURED,
    figure_text,
    marked,
    missing,
    proof_text,
    status_text,
    times_text,
)

MOST_NOTES = 3
NOT_COMPARABLE = "not comparable"
COUNTER, RATIO = "counter", "ratio"
GIVEN = {
    "program": "program",
    "way in": "way_in",
    "pre-tokens": "pre_tokens",
    "special tokens": "special_tokens",
    "ties": "ties",
}
"""What an outside trainer reports of how it was fed: headings and keys."""


OWN_FIGURES = ("memory", "threads")
OWN_TEXTS: Mapping[str, Callable[[Row], str]] = {
    "memory": lambda row: figure_text(row, "memory") or missing(row),
    "threads": lambda row: count_text(row.threads),
    "data": lambda row: str(row.corpus.name),
    "status": status_text,
    "proof": proof_text,
}
"""Columns that are not figures of the rows, or are written in their own way."""


class TableOptions(NamedTuple):
    """The columns of a table by name, and whether it shows all phases, the work and all notes;
    `relative_to` names the baseline.
    """

    columns: Sequence[str] = ()
    phases: bool = False
    work: bool = False
    notes: bool = False
    relative_to: str | None = None


def tables(rows: Sequence[Row], options: TableOptions | None = None) -> list[Sheet]:
    """A table for each task, with `work` a second one. Raises Refusal if no task has the baseline
    that was named.
    """
    options = options or TableOptions()
    if options.relative_to is not None:
        against(rows, options.relative_to)  # refuses a name that no row has

    sheets: list[Sheet] = []
    for task in by_task(rows):
        measured = [
            row.name for row in task if row.total is not None or row.instructions is not None
        ]
        base = options.relative_to if options.relative_to in measured else None
        sheets.append(table_of(task, options._replace(relative_to=base), rows))
        if options.work:
            sheets.append(work_sheet(task))
    if options.notes and is_outside_table(rows):
        sheets.append(given_sheet(rows))

    # a line of a caption that a table above shows is not repeated
    above: set[str] = set()
    for index, sheet in enumerate(sheets):
        caption = [line for line in sheet.caption if line not in above]
        sheets[index] = sheet._replace(caption=caption)
        above.update(sheet.caption)
    return sheets


def by_task(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each task together; rows of one variant alone stay in one table."""
    if is_one_variant(rows):
        return [list(rows)]
    return list(together([(row.question, row) for row in rows]).values())


def table_of(task: Sequence[Row], options: TableOptions, among: Sequence[Row] = ()) -> Sheet:
    """The table of some rows; `among` are all that the command shows. Raises Refusal for an unknown
    column.
    """
    compared = against(task, options.relative_to)
    fields = differing_columns(task)
    columns = {**_special_columns(task, compared, options.relative_to), **fields}

    names = options.columns or _default_columns(task, fields, options)
    figures = dict.fromkeys(name for row in task for name in row.figures)
    chosen = []
    for name in names:
        if name not in columns and name not in figures:
            there = dict.fromkeys([*columns, *figures])
            meant = did_you_mean(name, there)
            raise Refusal(f"the table has no column {name!r};{meant} it has {', '.join(there)}")
        chosen.append(columns.get(name) or _figure_column(task, name))

    below = notes_below(task, compared, whole=options.notes)
    if RATIO in names:
        below += clock_note(compared)
    return Sheet(caption_of(task, among), chosen, [style_of(row) for row in task], below)


def notes_below(rows: Sequence[Row], compared: Sequence[Against] = (), *, whole: bool) -> list[str]:
    """The first notes, or on request the whole list with explanations."""
    return notes(rows, compared=compared) if whole else at_most(MOST_NOTES, notes(rows), "--notes")


def _default_columns(
    task: Sequence[Row], fields: dict[str, Column], options: TableOptions
) -> list[str]:
    """The columns of a table if none are named; they follow from the settings, not from what was
    measured.
    """
    names = [first_heading(task), *titles_of(task, fields)]
    if names[0] == COUNTER:
        if "threads" not in fields:
            names.append("threads")
        names += ["total", RATIO, "MB/s", "words", "memory"]
        return names if {row.status for row in task} == {"ok"} else [*names, "status"]

    phases = phases_of(task)
    counted = ["instructions"] if _any_has(task, "instructions") else []
    if counted and not phases:
        return [*names, *counted, "instructions ratio", "proof"]

    if len({row.merges for row in task} - {None}) > 1 and "vocab size" not in fields:
        names.append("merges")
    names += ["total", RATIO]
    if options.phases:
        names += ["spread", "CPU", *phases]
    elif not is_outside_table(task):
        names += ["max", "update"]
    if _any_has(task, "bytes/token"):
        names.append("bytes/token")
    return [*names, "memory", *counted, "proof"]


def _any_has(task: Sequence[Row], figure: str) -> bool:
    return any(row.figures.get(figure) is not None for row in task)


def _special_columns(
    task: Sequence[Row], compared: Sequence[Against], base: str | None
) -> dict[str, Column]:
    """The names of the rows, the columns with texts of their own, and the ratios."""
    first = first_heading(task)
    special = {first: Column(first, names_of(task), figures=False)}
    for heading, text in OWN_TEXTS.items():
        special[heading] = Column(heading, list(map(text, task)), heading in OWN_FIGURES)
    special[RATIO] = _ratio_column(compared, base)
    if _any_has(task, "instructions"):
        special["instructions ratio"] = _ratio_column(compared, base, "instructions")
    return special


def first_heading(task: Sequence[Row]) -> str:
    """Return the heading of the first column: variant or counter."""
    return COUNTER if all(row.counting_only for row in task) else "variant"


def _figure_column(task: Sequence[Row], name: str) -> Column:
    return Column(name, [marked(row, figure_text(row, name)) for row in task])


def _ratio_column(compared: Sequence[Against], base: str | None, figure: str = "total") -> Column:
    """The ratios to the baseline's figure, with the interval if there are enough blocks."""
    sign = "" if base else "× "
    texts = []
    for comparison in compared:
        if comparison.refused and figure == "total":
            texts.append(NOT_COMPARABLE)
        else:
            texts.append(marked(comparison.row, times_text(comparison.ratio(figure), sign)))
    return Column(f"{figure} / {base}" if base else RATIO, texts)


def style_of(*rows: Row) -> str:
    """The colour of a line: red for wrong merges, dim for what failed, yellow for what is not
    proved.
    """
    statuses = {row.status for row in rows}
    if "mismatch" in statuses:
        return "red"
    if statuses != {"ok"}:
        return "dim"
    return "" if all(row.confirmed for row in rows) else "yellow"


def is_outside_table(rows: Sequence[Row]) -> bool:
    """Return whether any row is of a trainer that reports how it was fed."""
    return any(row.record.cell.feeding for row in rows)


def work_sheet(rows: Sequence[Row]) -> Sheet:
    """A table of counts of work: the same on every machine, so it explains why one is faster than
    another.
    """
    counted = [row for row in rows if row.status == "ok"]
    columns = [
        Column("work", names_of(counted), figures=False),
        *differing_columns(counted).values(),
    ]
    names = [name for name in tallies_of(counted) if _any_has(counted, name)]
    for name in names:
        cells = [figure_text(row, name) or NOT_MEASURED for row in counted]
        columns.append(Column(name.replace("_", " "), cells))
    return Sheet([], columns, notes=[] if names else ["No work was counted."])


def given_sheet(rows: Sequence[Row]) -> Sheet:
    """A table of the inputs that outside trainers report: a row for each way, whatever the corpora
    were.
    """
    ways: dict[tuple[str, ...], None] = {}
    for row in rows:
        feeding = row.record.cell.feeding
        if feeding:
            way = [str(feeding.get(key) or NOT_MEASURED) for key in GIVEN.values()]
            ways[(row.name, *way)] = None

    columns = []
    for index, heading in enumerate(("trainer", *GIVEN)):
        columns.append(Column(heading, [way[index] for way in ways], figures=False))
    return Sheet([], columns)
