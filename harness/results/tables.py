"""The sheets that rows make: times of trainers, of word counters, counts of work, and the columns of the series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from harness.common.errors import Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import (
    count_text,
    instructions_text,
    rate_text,
    seconds_texts,
    share_text,
)
from harness.records.schema import PHASES
from harness.results.baseline import Baseline
from harness.results.columns import (
    at_least,
    column,
    differing_columns,
    instructions_ratio,
    mark_of,
    memory_column,
    merges_column,
    merges_differ,
    merges_made,
    proof_column,
    ratio_columns,
    seconds_columns,
    speed_columns,
)
from harness.results.fairness import identity_notes, outside
from harness.results.fields import megabytes_per_second, pre_tokens_per_second, units_note
from harness.results.frame import WORK
from harness.results.legend import NOT_MEASURED, Legend, status_text
from harness.results.notes import findings
from harness.results.rows import Row, decimals_of
from variants.contract import COUNTING_PHASES

RATIO = "ratio"
"""What the column of ratios is called where columns are chosen."""


def main_sheet(rows: Sequence[Row], relative_to: str | None = None, every_run: bool = False) -> Sheet:
    """The table of times: of trainers, or of word counters where nothing else was measured."""
    sheet = _counting_sheet if all(row.counting_only for row in rows) else _training_sheet
    return sheet(rows, relative_to, every_run)


def only(sheet: Sheet, headings: Sequence[str]) -> Sheet:
    """The sheet with these columns alone, in this order; `ratio` is that of totals. Raises Refusal for one it lacks."""
    there = {RATIO if column.heading.startswith("total / ") else column.heading: column for column in sheet.columns}
    if lacking := [heading for heading in headings if heading not in there]:
        raise Refusal(f"the table has no column {lacking[0]!r}; it has {', '.join(there)}")
    kept = [there[heading] for heading in headings]
    before, after = (units_note([column.heading for column in columns]) for columns in (sheet.columns, kept))
    notes = [after if note == before else note for note in sheet.notes]
    return replace(sheet, columns=kept, notes=[note for note in notes if note])


def notes_of(legend: Legend, relative_to: str | None = None, columns: Sequence[Column] = ()) -> list[str]:
    """Failures by name, marks by meaning, what the times do not say, units."""
    units = units_note([column.heading for column in columns])
    found = findings(legend.rows, legend.short_labels(), relative_to)
    return [*legend.notes(), *identity_notes(legend), *found, *([units] if units else [])]


def style_of(row: Row) -> str:
    if row.status == "mismatch":
        return "red"
    return "dim" if row.status != "ok" else "" if row.confirmed else "yellow"


def _training_sheet(rows: Sequence[Row], relative_to: str | None, every_run: bool) -> Sheet:
    legend = Legend(rows)
    columns = [Column("variant", legend.names, figures=False), *differing_columns(legend)]
    columns += training_columns(rows, legend, relative_to, every_run)
    return Sheet(legend.caption(), columns, [style_of(row) for row in rows], notes_of(legend, relative_to, columns))


def training_columns(
    rows: Sequence[Row], legend: Legend, relative_to: str | None, every_run: bool = False
) -> list[Column]:
    """What is told of trainers: times, memory, rates, instructions, proof; each where a row has it."""
    columns = [merges_made(rows)] if merges_differ(rows, legend) else []
    baseline = Baseline(rows, relative_to) if relative_to is not None else None
    counted = any(row.instructions is not None for row in rows)
    from_outside = outside(rows)
    # Where instructions were counted and nothing timed, columns of times would be dashes.
    if any(row.seconds or row.extrapolated for row in rows) or not counted:
        # A trainer that takes the counts as they are converts nothing, and few copy: columns where one does.
        # Outside trainers tell none of them.
        always = [phase for phase in PHASES if phase not in ("convert", "copy") and not from_outside]
        columns += seconds_columns(rows, always, every_run)
        columns += ratio_columns(baseline) if baseline is not None else []
        columns.append(memory_column(rows))
        if any(megabytes_per_second(row) is not None for row in rows):
            columns.append(column("MB/s", rows, megabytes_per_second, rate_text, mark_of))
        columns.append(merges_column(rows))
    if any(row.record.get("tokens") for row in rows):
        columns.append(column("bytes/token", rows, bytes_per_token, lambda held: f"{held:.3f}"))
    if counted:
        columns.append(column("instructions", rows, lambda row: row.instructions, instructions_text, mark_of))
        columns += [instructions_ratio(baseline)] if baseline is not None else []
    return [*columns, proof_column(rows)]


def bytes_per_token(row: Row) -> float | None:
    """How much text a token holds on the average; None where the tokens were not counted."""
    tokens, size = row.record.get("tokens"), (row.record.get("data") or {}).get("bytes")
    return size / tokens if tokens and size else None


def _counting_sheet(rows: Sequence[Row], relative_to: str | None, every_run: bool) -> Sheet:
    legend = Legend(rows)
    columns = [Column("counter", legend.names, figures=False), *differing_columns(legend)]
    if "threads" not in legend.columns:
        columns.append(column("threads", rows, lambda row: row.record.get("threads"), count_text))
    columns += counting_columns(rows, relative_to, every_run)
    if any(row.status != "ok" for row in rows):
        columns.append(Column("status", [status_text(row) for row in rows], figures=False))
    return Sheet(legend.caption(), columns, [style_of(row) for row in rows], notes_of(legend, columns=columns))


def counting_columns(rows: Sequence[Row], relative_to: str | None, every_run: bool = False) -> list[Column]:
    """What is told of word counters."""
    return [
        *seconds_columns(rows, ["read", "count"], every_run),
        column("MB/s", rows, megabytes_per_second, rate_text),
        *(speed_columns(rows, relative_to) if relative_to is not None else []),
        column("pre-tokens/s", rows, pre_tokens_per_second, rate_text),
        column("words", rows, lambda row: row.corpus.get("words") if row.status == "ok" else None, count_text),
        memory_column(rows),
    ]


def work_sheet(rows: Sequence[Row]) -> Sheet:
    """How often each row did what: the same on every machine, so it says why one is faster than another."""
    counted = [row for row in rows if row.status == "ok"]
    names = {name for row in counted for name in row.tallies}
    if not names:
        return Sheet([], [], [], ["No work was counted."])
    legend = Legend(counted)
    columns = [Column("work", legend.names, figures=False), *differing_columns(legend)]
    columns += [
        Column(name.replace("_", " "), [_tally_text(row, name) for row in counted]) for name in WORK if name in names
    ]
    notes = [_own_tallies(row, name) for row, name in zip(counted, legend.names, strict=True)]
    return Sheet([], columns, ["" for _ in counted], [note for note in dict.fromkeys(notes) if note])


def _own_tallies(row: Row, name: str) -> str:
    """What a variant counts that the columns, which are for all, do not have."""
    own = [
        f"{tally.replace('_', ' ')} {count_text(number)}" for tally, number in row.tallies.items() if tally not in WORK
    ]
    return f"{name} also counted: {', '.join(own)}." if own else ""


def _tally_text(row: Row, name: str) -> str:
    return count_text(row.tallies[name]) if name in row.tallies else NOT_MEASURED


PARTS = ("count", "max", "update", "other")
"""What a total of the series' own tables is the sum of; merge is all of it but count."""

EXPLAINED = (
    "total = count + merge, merge = max + update + other: reading is in count; converting, everything before the first "
    "maximum and copying are in other."
)


def series_sheet(rows: Sequence[Row], every_run: bool = False) -> Sheet:
    """The rows in the series' form; with `every_run` each time is that of every run, as a/b/c, else a median."""
    legend = Legend(rows)
    decimals = decimals_of(rows)
    times = [_times(row, every_run, decimals) for row in rows]
    data = [str(row.corpus.get("name", NOT_MEASURED)) for row in rows]
    columns = [Column("variant", legend.names, figures=False), Column("data", data, figures=False)]
    for name in ("total", "count", "merge", "max", "update", "other"):
        columns.append(Column(name, [text.get(name, NOT_MEASURED) for text in times]))
        if name == "total" and not every_run and any(len(row.samples) > 1 for row in rows):
            columns.append(column("spread", rows, lambda row: row.spread, share_text))
    columns += [memory_column(rows), column("threads", rows, lambda row: row.record.get("threads"), count_text)]
    for title, texts in legend.columns.items():
        if title not in ("data", "threads"):
            columns.append(Column(title, texts, figures=False))
    notes = [*notes_of(legend), EXPLAINED, units_note([each.heading for each in columns])]
    return Sheet(legend.caption(), columns, [style_of(row) for row in rows], notes)


def _times(row: Row, every_run: bool, decimals: int) -> Mapping[str, str]:
    if not row.seconds:
        return {"total": "≠" if row.status == "mismatch" else at_least(row) or status_text(row)}
    runs = [_run(seconds, decimals) for seconds in (row.each if every_run and row.each else [row.seconds])]
    return {name: "/".join(run[name] for run in runs) + mark_of(row) for name in runs[0]}


def _run(seconds: Mapping[str, float], decimals: int) -> dict[str, str]:
    """The parts of one run, written so that they add up as written."""
    parts = dict.fromkeys(PARTS, 0.0)
    for phase, spent in seconds.items():
        parts["count" if phase in COUNTING_PHASES else phase if phase in PARTS else "other"] += spent
    total, texts = seconds_texts(list(parts.values()), decimals)
    merge = sum(Decimal(text.replace(",", "")) for text in texts[1:])
    return {"total": total, "merge": f"{merge:,}", **dict(zip(PARTS, texts, strict=True))}
