"""The sheets that rows make: times of trainers, of word counters, counts of work, and the columns of the series."""

from __future__ import annotations

from collections.abc import Sequence

from harness.columns import (
    column,
    instructions_ratio,
    mark_of,
    memory_column,
    merges_column,
    merges_differ,
    merges_made,
    proof_column,
    ratio_columns,
    seconds_columns,
    settings,
    speed_columns,
)
from harness.fairness import identity_column, identity_notes, outside
from harness.figures import megabytes_per_second, pre_tokens_per_second, units_note
from harness.findings import findings
from harness.frame import WORK
from harness.legend import NOT_MEASURED, Legend, status_text
from harness.rows import PHASES, Row
from harness.sheet import Column, Sheet
from harness.units import count_text, instructions_text, rate_text


def main_sheet(shown: Sequence[Row], relative_to: str | None = None, every_run: bool = False) -> Sheet:
    """The table of times: of trainers, or of word counters where nothing else was measured."""
    sheet = _counting_sheet if all(row.counting_only for row in shown) else _training_sheet
    return sheet(shown, relative_to, every_run)


def notes_of(legend: Legend, relative_to: str | None = None, columns: Sequence[Column] = ()) -> list[str]:
    """Failures by name, marks by meaning, what the times do not say, units."""
    units = units_note([column.heading for column in columns])
    found = findings(legend.rows, legend.short_labels(), relative_to)
    return [*legend.notes(), *identity_notes(legend), *found, *([units] if units else [])]


def style_of(row: Row) -> str:
    if row.status == "mismatch":
        return "red"
    return "dim" if row.status != "ok" else "" if row.confirmed else "yellow"


def _training_sheet(shown: Sequence[Row], relative_to: str | None, every_run: bool) -> Sheet:
    legend = Legend(shown)
    columns = [Column("variant", legend.names, figures=False), *settings(legend)]
    columns += training_columns(shown, legend, relative_to, every_run)
    return Sheet(legend.caption(), columns, [style_of(row) for row in shown], notes_of(legend, relative_to, columns))


def training_columns(
    shown: Sequence[Row], legend: Legend, relative_to: str | None, every_run: bool = False
) -> list[Column]:
    """What is told of trainers: times, memory, rates, instructions, proof; each where a row has it."""
    columns = [merges_made(shown)] if merges_differ(shown, legend) else []
    counted = any(row.instructions is not None for row in shown)
    # Where instructions were counted and nothing timed, columns of times would be dashes.
    if any(row.seconds or row.extrapolated for row in shown) or not counted:
        # A trainer that takes the counts as they are converts nothing, and few copy: columns where one does.
        # Outside trainers tell none of them.
        always = [phase for phase in PHASES if phase not in ("convert", "copy") and not outside(shown)]
        columns += seconds_columns(shown, always, every_run)
        columns += ratio_columns(shown, relative_to) if relative_to is not None else []
        columns.append(memory_column(shown))
        if any(megabytes_per_second(row) is not None for row in shown):
            columns.append(column("MB/s", shown, megabytes_per_second, rate_text, mark_of))
        columns.append(merges_column(shown))
    if counted:
        columns.append(column("instructions", shown, lambda row: row.instructions, instructions_text, mark_of))
        columns += [instructions_ratio(shown, relative_to)] if relative_to is not None else []
    columns += [identity_column(shown)] if outside(shown) else []
    return [*columns, proof_column(shown)]


def _counting_sheet(shown: Sequence[Row], relative_to: str | None, every_run: bool) -> Sheet:
    legend = Legend(shown)
    columns = [Column("counter", legend.names, figures=False), *settings(legend)]
    if "threads" not in legend.columns:
        columns.append(column("threads", shown, lambda row: row.record.get("threads"), count_text))
    columns += counting_columns(shown, relative_to, every_run)
    if any(row.status != "ok" for row in shown):
        columns.append(Column("status", [status_text(row) for row in shown], figures=False))
    return Sheet(legend.caption(), columns, [style_of(row) for row in shown], notes_of(legend, columns=columns))


def counting_columns(shown: Sequence[Row], relative_to: str | None, every_run: bool = False) -> list[Column]:
    """What is told of word counters."""
    return [
        *seconds_columns(shown, ["read", "count"], every_run),
        column("MB/s", shown, megabytes_per_second, rate_text),
        *(speed_columns(shown, relative_to) if relative_to is not None else []),
        column("pre-tokens/s", shown, pre_tokens_per_second, rate_text),
        column("words", shown, lambda row: row.corpus.get("words") if row.status == "ok" else None, count_text),
        memory_column(shown),
    ]


def work_sheet(shown: Sequence[Row]) -> Sheet:
    """How often each row did what: the same on every machine, so it says why one is faster than another."""
    counted = [row for row in shown if row.status == "ok"]
    names = {name for row in counted for name in row.tallies}
    if not names:
        return Sheet([], [], [], ["No work was counted."])
    legend = Legend(counted)
    columns = [Column("work", legend.names, figures=False), *settings(legend)]
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
