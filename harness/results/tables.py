"""Sheets from rows: a narrow table for each task; beside it counts of work, and what each outside
trainer was given. Also one figure of every row, laid out by two fields or as two sets of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.common.errors import UNMEASURED, Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import count_text, did_you_mean
from harness.common.values import one_of
from harness.records.schema import PHASES
from harness.results.fields import FIELD, FIELDS, value_text
from harness.results.notes import at_most, notes
from harness.results.ratios import Against, against, clock_note, compared, tasks_of, unlike
from harness.results.rows import TALLIES, Row, figures_of, is_one_variant
from harness.results.writing import (
    NOT_MEASURED,
    caption_of,
    differing_columns,
    figure_text,
    marked,
    missing,
    names_of,
    outcome_text,
    proof_text,
    status_text,
    times_text,
    titles_of,
)

if TYPE_CHECKING:
    import pandas as pd

MOST_NOTES = 3
RATIO = "ratio"
RATIOS = {RATIO: "total", "instructions ratio": "instructions"}
"""The columns of ratios, each with its figure."""
GIVEN = {
    "program": "program",
    "way in": "way_in",
    "pre-tokens": "pre_tokens",
    "special tokens": "special_tokens",
    "ties": "ties",
}
"""What an outside trainer reports of how it was fed: headings and keys."""


OWN: Mapping[str, tuple[bool, Callable[[Row], str]]] = {
    "memory": (True, lambda row: figure_text(row, "memory") or missing(row)),
    "threads": (True, lambda row: count_text(row.threads)),
    "data": (False, lambda row: str(row.corpus.name)),
    "status": (False, status_text),
    "proof": (False, proof_text),
}
"""Columns that are not figures of the rows, or are written in their own way: whether they hold
figures, and their text.
"""


SIDE = "gate.side"
CIRCUMSTANCES = ("data.sha256", "interpreter", "host")
"""In what rows may differ whose figures stand side by side."""
LINES = [
    field.name
    for field in FIELDS
    if field.names_cell and field.name not in (*CIRCUMSTANCES, "variant", "params", SIDE)
]
"""What distinguishes the lines of two sets, beside the variant with its parameters."""


class TableOptions(NamedTuple):
    """The columns of a table by name, and whether it shows all phases, the work and all notes;
    `relative_to` names the baseline.
    """

    columns: Sequence[str] = ()
    phases: bool = False
    work: bool = False
    notes: bool = False
    relative_to: str | None = None


PLAIN = TableOptions()


def tables(rows: Sequence[Row], options: TableOptions = PLAIN) -> list[Sheet]:
    """A table for each task, with `work` a second one. Raises Refusal if no row has a figure of the
    baseline that was named.
    """
    if options.relative_to is not None:
        one_of("--relative-to", options.relative_to, _bases(rows))

    sheets = []
    for task in by_task(rows):
        sheets.append(table_of(task, options, rows))
        if options.work:
            sheets.append(work_sheet(task))
    if options.notes and is_outside_table(rows):
        sheets.append(given_sheet(rows))

    # a line of a caption that a table above shows is not repeated
    above = set[str]()
    for index, sheet in enumerate(sheets):
        caption = [line for line in sheet.caption if line not in above]
        sheets[index] = sheet._replace(caption=caption)
        above.update(sheet.caption)
    return sheets


def _bases(rows: Sequence[Row]) -> list[str]:
    """The names of the rows with which others can be compared."""
    return list(dict.fromkeys(row.name for row in rows if row.has_cost))


def by_task(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each task together; rows of one variant alone stay in one table."""
    return [list(rows)] if is_one_variant(rows) else tasks_of(rows, ["host"])


def table_of(task: Sequence[Row], options: TableOptions, among: Sequence[Row] = ()) -> Sheet:
    """The table of some rows; `among` are all that the command shows. Raises Refusal for an unknown
    column.
    """
    comparisons = against(task, options.relative_to)
    fields = differing_columns(task)
    columns = {**_special_columns(task, comparisons, options.relative_to), **fields}
    first, *_ = columns

    names = options.columns or [first, *_default_columns(task, fields, options)]
    figures = figures_of(task)
    chosen = []
    for name in names:
        if name not in columns and name not in figures:
            there = dict.fromkeys([*columns, *figures])
            meant = did_you_mean(name, there)
            raise Refusal(f"the table has no column {name!r};{meant} it has {', '.join(there)}")
        chosen.append(
            columns.get(name) or Column(name, [marked(row, figure_text(row, name)) for row in task])
        )

    below = notes_below(task, comparisons, whole=options.notes)
    if RATIO in names:
        below += clock_note(comparisons)
    return Sheet(caption_of(task, among), chosen, list(map(style_of, task)), below)


def notes_below(
    rows: Sequence[Row], comparisons: Sequence[Against] = (), *, whole: bool
) -> list[str]:
    """The first notes, or on request the whole list with explanations."""
    return (
        notes(rows, compared=comparisons) if whole else at_most(MOST_NOTES, notes(rows), "--notes")
    )


def _default_columns(
    task: Sequence[Row], fields: dict[str, Column], options: TableOptions
) -> list[str]:
    """The columns after the first, if none are named; they follow from the settings, not from what
    was measured.
    """
    names = titles_of(task, fields)
    if task[0].counting_only:
        if "threads" not in fields:
            names.append("threads")
        names += ["total", RATIO, "MB/s", "words", "memory"]
        return names if {row.status for row in task} == {"ok"} else [*names, "status"]

    phases = [phase for phase in PHASES if any(row.seconds.get(phase) for row in task)]
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
    task: Sequence[Row], comparisons: Sequence[Against], relative_to: str | None
) -> dict[str, Column]:
    """The names of the rows, the columns with texts of their own, and the ratios to the baseline,
    with the interval if there are enough blocks.
    """
    first = "counter" if task[0].counting_only else "variant"
    special = {first: Column(first, names_of(task), figures=False)}
    for heading, (figures, text) in OWN.items():
        special[heading] = Column(heading, list(map(text, task)), figures)

    is_named = relative_to in _bases(task)
    for heading, figure in RATIOS.items():
        texts = [ratio_cell(each, figure, "" if is_named else "× ") for each in comparisons]
        special[heading] = Column(f"{figure} / {relative_to}" if is_named else RATIO, texts)
    return special


def ratio_cell(comparison: Against, figure: str, sign: str = "") -> str:
    if comparison.refused:
        return "not comparable"
    return marked(comparison.row, times_text(comparison.ratio(figure), sign))


def style_of(row: Row) -> str:
    """The colour of a line: red for wrong merges, dim for what failed, yellow for what is not
    proved.
    """
    if row.status == "mismatch":
        return "red"
    if row.status != "ok":
        return "dim"
    return "" if row.confirmed else "yellow"


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
    notes = ["No work was counted."]
    for name in dict.fromkeys([*TALLIES, *(name for row in counted for name in row.tallies)]):
        if _any_has(counted, name):
            cells = [figure_text(row, name) or NOT_MEASURED for row in counted]
            columns.append(Column(name.replace("_", " "), cells))
            notes = []
    return Sheet([], columns, notes=notes)


def given_sheet(rows: Sequence[Row]) -> Sheet:
    """A table of the inputs that outside trainers report: a row for each way, whatever the corpora
    were.
    """
    ways = {("trainer", *GIVEN): None}
    for row in rows:
        feeding = row.record.cell.feeding
        if feeding:
            way = [str(feeding.get(key) or NOT_MEASURED) for key in GIVEN.values()]
            ways[(row.name, *way)] = None

    columns = []
    for heading, *cells in zip(*ways, strict=True):
        columns.append(Column(heading, cells, figures=False))
    return Sheet([], columns)


# One figure by fields


def pivot_sheet(rows: Sequence[Row], named: Sequence[str], value: str, *, whole: bool) -> Sheet:
    """The figure `value` of rows by two fields; if two rows share a cell, one more field becomes a
    column.

    A cell without a figure says why, and an empty one has no record. Raises Refusal for an unknown
    field or figure.
    """
    fields = fields_of(rows)
    down, across = named
    for name in named:
        one_of("field", name, list(map(str, fields)))
    if down == across:
        raise Refusal(f"--pivot names {down} twice; a pivot takes two fields")

    def number_of_cells(names: Sequence[str]) -> int:
        return len(fields[[*names, across]].drop_duplicates())

    chosen = [down]
    while True:
        finest = max(map(str, fields), key=lambda name: number_of_cells([*chosen, name]))
        if number_of_cells([*chosen, finest]) == number_of_cells(chosen):
            break
        chosen.append(finest)
    caption = [f"{value} by {', '.join(chosen)} and {across}", *caption_of(rows)]
    columns, _ = _laid_out(rows, chosen, across, value)
    return Sheet(caption, columns, notes=notes_below(rows, whole=whole))


def compared_sheet(rows: Sequence[Row], names: Sequence[str], value: str, *, whole: bool) -> Sheet:
    """The figure `value` of two sets side by side, and the ratio of the right one to the left one.

    A line is of one cell, on whatever machine, Python or bytes it was measured. Raises Refusal if
    no cell is in both.
    """
    down = ["variant", *unlike(rows, LINES)]
    columns, lines = _laid_out(rows, down, SIDE, value)

    ratios = []
    for left, right in zip(lines.get("left", ()), lines.get("right", ()), strict=False):
        text = ""
        if left and right:
            text = ratio_cell(compared(right, left), value) or NOT_MEASURED
        ratios.append(text)
    if not any(ratios):
        raise Refusal(f"{' and '.join(names)} have no cell in common to compare", UNMEASURED)

    caption = [f"{value} by {', '.join(down)} and side"]
    for side, name in zip(("left", "right"), names, strict=True):
        of_side = [row for row in rows if row.values[SIDE] == side]
        caption.append(f"{side}: {name}: {'; '.join(caption_of(of_side))}")
    columns.append(Column("right / left", ratios))
    below = notes_below(rows, whole=whole)
    elsewhere = unlike(rows, CIRCUMSTANCES)
    if elsewhere:
        below.insert(0, f"The rows differ in {' and '.join(elsewhere)}.")
    return Sheet(caption, columns, notes=below)


def _laid_out(
    rows: Sequence[Row], down: Sequence[str], across: str, value: str
) -> tuple[list[Column], dict[str, list[Row | None]]]:
    """The columns of a pivot, and the row of each line by the value of the field across. Raises
    Refusal for an unknown figure.
    """
    one_of("value", value, list(figures_of(rows)))
    fields: Any = fields_of(rows)
    fields["row"] = rows
    table = fields.pivot_table("row", [*down], across, "last", observed=True)

    columns = []
    for name in down:
        texts = list(map(value_text, table.index.get_level_values(name).tolist()))
        columns.append(Column(name, texts, fields[name].dtype != "category"))
    heading = f"{across} " if fields[across].dtype != "category" else ""
    lines: dict[str, list[Row | None]] = {}
    for of_column, cells in table.items():
        line = [cell if isinstance(cell, Row) else None for cell in cells]
        texts = [outcome_text(row, figure_text(row, value)) if row else "" for row in line]
        columns.append(Column(heading + value_text(of_column), texts))
        lines[str(of_column)] = line
    return columns, lines


def fields_of(rows: Sequence[Row]) -> pd.DataFrame:
    """Everything that rows can differ in, by name: numbers, and texts in the order in which they
    appear. Parameters are a part of the variant as well.
    """
    # only here: it costs half a second, and a plain table needs none of it
    import pandas as pd

    fields: dict[str, Any] = {"variant": names_of(rows)}
    for name in (*FIELD, "status"):
        fields.setdefault(name, [row.values[name] for row in rows])
    for name, values in fields.items():
        if any(type(value) is not int for value in values):
            texts = list(map(value_text, values))
            fields[name] = pd.Categorical(texts, list(dict.fromkeys(texts)), ordered=True)
    return pd.DataFrame(fields)
