"""The columns of the series' own tables: the whole, counting, merging, and of merging the maximum and the updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from harness.columns import at_least, column, mark_of, memory_column
from harness.figures import COUNTED, units_note
from harness.legend import NOT_MEASURED, REUSED, Legend, status_text
from harness.row_sheets import notes_of, style_of
from harness.rows import Row
from harness.sheet import Column, Sheet
from harness.units import count_text, decimals_for, seconds_texts, share_text

PARTS = ("count", "max", "update", "other")
"""What a total is the sum of; merge is all of it but count."""

EXPLAINED = (
    "total = count + merge, merge = max + update + other: reading is in count; converting, everything before the first "
    "maximum and copying are in other."
)


def series_sheet(shown: Sequence[Row], every_run: bool = False) -> Sheet:
    """The rows in the series' form; with `every_run` each time is that of every run, as a/b/c, else a median."""
    legend = Legend(shown)
    decimals = decimals_for(row.total for row in shown if row.total is not None)
    times = [_times(row, every_run, decimals) for row in shown]
    data = [str(row.corpus.get("name", NOT_MEASURED)) for row in shown]
    columns = [Column("variant", legend.names, figures=False), Column("data", data, figures=False)]
    for name in ("total", "count", "merge", "max", "update", "other"):
        columns.append(Column(name, [text.get(name, NOT_MEASURED) for text in times]))
        if name == "total" and not every_run and any(len(row.samples) > 1 for row in shown):
            columns.append(column("spread", shown, lambda row: row.spread, share_text))
    columns += [memory_column(shown), column("threads", shown, lambda row: row.record.get("threads"), count_text)]
    for title, texts in legend.columns.items():
        if title not in ("data", "threads"):
            columns.append(Column(title, texts, figures=False))
    notes = [*notes_of(legend), EXPLAINED, units_note([each.heading for each in columns])]
    return Sheet(legend.caption(), columns, [style_of(row) for row in shown], notes)


def _times(row: Row, every_run: bool, decimals: int) -> Mapping[str, str]:
    if not row.seconds:
        return {"total": "≠" if row.status == "mismatch" else at_least(row) or status_text(row)}
    runs = [_run(seconds, decimals) for seconds in (row.each if every_run else [row.seconds])]
    reused = {"count": REUSED} if row.counts_reused else {}
    return {name: "/".join(run[name] for run in runs) + reused.get(name, "") + mark_of(row) for name in runs[0]}


def _run(seconds: Mapping[str, float], decimals: int) -> dict[str, str]:
    """The parts of one run, written so that they add up as written."""
    parts = dict.fromkeys(PARTS, 0.0)
    for phase, spent in seconds.items():
        parts["count" if phase in COUNTED else phase if phase in PARTS else "other"] += spent
    total, texts = seconds_texts(list(parts.values()), decimals)
    merge = sum(Decimal(text.replace(",", "")) for text in texts[1:])
    return {"total": total, "merge": f"{merge:,}", **dict(zip(PARTS, texts, strict=True))}
