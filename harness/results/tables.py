"""Sheets from rows: a narrow table for each task, its columns by name, counts of work, and what each was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.common.errors import Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import count_text
from harness.results.legend import Legend, all_notes, is_outside_table, notes
from harness.results.rows import NOT_MEASURED, SAMPLED, TALLIES, Baseline, Row, measured_phases, times_of

NOT_COMPARABLE = "not comparable"
RATIO = "ratio"


@dataclass(frozen=True)
class TableOptions:
    """What a table shows: columns by name, all phases, the work, all notes; `relative_to` names the baseline."""

    columns: Sequence[str] = ()
    phases: bool = False
    work: bool = False
    notes: bool = False
    relative_to: str | None = None
    joined: bool = False
    """One table for all tasks."""


def tables(rows: Sequence[Row], options: TableOptions | None = None) -> list[Sheet]:
    """A table for each task, with `work` a second one. Raises Refusal if no task has the baseline that was named."""
    options = options or TableOptions()
    if options.relative_to is not None:
        Baseline(rows, options.relative_to)  # refuses a name that no row has
    sheets: list[Sheet] = []
    for task in [list(rows)] if options.joined else by_task(rows):
        measured = {row.name for row in task if row.total is not None or row.instructions is not None}
        known = options if options.relative_to in measured else replace(options, relative_to=None)
        sheets += _sheets_of(task, known, rows)
    if options.notes and is_outside_table(rows):
        sheets.append(given_sheet(rows))
    return _without_repeats(sheets)


def by_task(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each task together; rows of one variant alone stay in one table."""
    tasks: dict[Any, list[Row]] = {}
    for row in rows:
        tasks.setdefault(row.question, []).append(row)
    trainers = {(row.name, *sorted(row.params.items())) for row in rows}
    return list(tasks.values()) if len(trainers) > 1 else [list(rows)]


def _without_repeats(sheets: Sequence[Sheet]) -> list[Sheet]:
    """The sheets without lines of a caption that an earlier one has."""
    above: set[str] = set()
    made = []
    for sheet in sheets:
        made.append(sheet._replace(caption=[line for line in sheet.caption if line not in above]))
        above.update(sheet.caption)
    return made


def _sheets_of(task: Sequence[Row], options: TableOptions, among: Sequence[Row]) -> list[Sheet]:
    legend, baseline = Legend(task, among), Baseline(task, options.relative_to)
    first = Column("counter" if all(row.counting_only for row in task) else "variant", legend.names, figures=False)
    names = options.columns or [first.heading, *legend.titles(), *_default_columns(task, legend, options)]
    below = [*all_notes(legend), *baseline.refusals(legend.labels)] if options.notes else notes(legend)
    special = _special(legend, baseline, first)
    known = dict.fromkeys([*special, *(name for row in task for name in row.figures), *legend.columns])
    if unknown := [name for name in names if name not in known]:
        raise Refusal(f"the table has no column {unknown[0]!r}; it has {', '.join(known)}")
    made = {**special, **legend.columns}
    columns = [made.get(name) or Column(name, [_marked(row, row.text(name)) for row in task]) for name in names]
    main = Sheet(legend.caption(), columns, [_style(row) for row in task], below)
    return [main, work_sheet(task)] if options.work else [main]


def _default_columns(rows: Sequence[Row], legend: Legend, options: TableOptions) -> list[str]:
    """The columns of a table if none are named; they follow from the settings, not from what was measured."""
    if all(row.counting_only for row in rows):
        threads = [] if "threads" in legend.columns else ["threads"]
        status = ["status"] if any(row.status != "ok" for row in rows) else []
        return [*threads, "total", RATIO, "MB/s", "words", "memory", *status]
    counted = ["instructions"] if any(row.instructions is not None for row in rows) else []
    if counted and not any(row.seconds for row in rows):
        return [*counted, "instructions ratio", "proof"]
    phases = [phase for phase in measured_phases(rows) if any(row.seconds.get(phase) for row in rows)]
    usual = phases if options.phases else [] if is_outside_table(rows) else ["max", "update"]
    several = len({row.merges for row in rows if row.merges is not None}) > 1
    merges = ["merges"] if several and "vocab size" not in legend.columns else []
    clocks = ["spread", "CPU"] if options.phases else []
    tokens = ["bytes/token"] if any(row.record.get("tokens") is not None for row in rows) else []  # tokens=true
    return [*merges, "total", RATIO, *clocks, *usual, *tokens, "memory", *counted, "proof"]


def _special(legend: Legend, baseline: Baseline, first: Column) -> dict[str, Column]:
    """The columns that are no figures of the rows, or are written in their own way."""
    rows = legend.rows
    return {
        first.heading: first,
        "total": Column("total", [_marked(row, row.time.text) for row in rows]),
        RATIO: _ratio_column(baseline),
        "memory": Column("memory", [memory_text(row) for row in rows]),
        "threads": Column("threads", [f"{row.threads:,}" for row in rows]),
        "data": Column("data", [str(row.corpus.get("name")) for row in rows], figures=False),
        "instructions ratio": _ratio_column(baseline, "instructions"),
        "status": Column("status", [row.status_text for row in rows], figures=False),
        "proof": Column("proof", [row.proof for row in rows], figures=False),
    }


def _marked(row: Row, text: str | None) -> str:
    return text + row.mark if text else row.missing


def memory_text(row: Row) -> str:
    if row.peak_rss_bytes is None:
        return row.missing
    return (SAMPLED if row.memory_is_sampled else "") + str(row.text("memory"))


def _ratio_column(baseline: Baseline, figure: str = "total") -> Column:
    """How many times the baseline's figure each row has, with the interval if there are enough blocks."""
    sign = "" if baseline.variant else "× "
    texts = [
        NOT_COMPARABLE if refused and figure == "total" else _marked(row, ratio and times_of(ratio, sign))
        for (row, _), ratio, refused in zip(baseline.pairs, baseline.ratios(figure), baseline.refused, strict=True)
    ]
    return Column(RATIO if baseline.variant is None else f"{figure} / {baseline.variant}", texts)


def _style(row: Row) -> str:
    if row.status == "mismatch":
        return "red"
    return "dim" if row.status != "ok" else "" if row.confirmed else "yellow"


def work_sheet(rows: Sequence[Row]) -> Sheet:
    """How many times each row did what: the same on every machine, so it explains why one is faster than another."""
    counted = [row for row in rows if row.status == "ok"]
    made = {name for row in counted for name in row.tallies}
    if not made:
        return Sheet([], [], [], ["No work was counted."])
    legend = Legend(counted)
    columns = [Column("work", legend.names, figures=False), *legend.columns.values()]
    for name in [*(name for name in TALLIES if name in made), *sorted(made - {*TALLIES})]:
        texts = [count_text(row.tallies[name]) if name in row.tallies else NOT_MEASURED for row in counted]
        columns.append(Column(name.replace("_", " "), texts))
    return Sheet([], columns, ["" for _ in counted], [])


def given_sheet(rows: Sequence[Row]) -> Sheet:
    """What each trainer that reports it was given, and how: a row for each way, whatever the corpora were."""
    headings = ("program", "way in", "pre-tokens", "special tokens", "ties")
    keys = [heading.replace(" ", "_").replace("-", "_") for heading in headings]
    fed = [(row.name, feeding) for row in rows if (feeding := row.record.get("feeding"))]
    ways = dict.fromkeys((name, *(str(feeding.get(key) or NOT_MEASURED) for key in keys)) for name, feeding in fed)
    columns = [
        Column(heading, [way[place] for way in ways], figures=False)
        for place, heading in enumerate(("trainer", *headings))
    ]
    return Sheet([], columns, ["" for _ in ways], [])
