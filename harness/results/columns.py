"""Columns of a table about rows: seconds by phase, ratios with their intervals, memory, rates, the proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.common.comparison import Comparison, compare
from harness.common.errors import Refusal
from harness.common.sheet import Column
from harness.common.units import (
    bytes_text,
    count_text,
    duration_text,
    floor_to_tenth,
    rate_text,
    ratio_text,
    seconds_texts,
    share_text,
)
from harness.proof import BY_DESIGN, UNPROVED, WRONG
from harness.records.schema import PHASES
from harness.results.baseline import Baseline
from harness.results.fairness import NOT_COMPARABLE, outside
from harness.results.legend import NOT_MEASURED, SAMPLED, UNCONFIRMED, Legend, status_text
from harness.results.rows import Row, decimals_of, measured_phases
from variants.contract import GREATEST_BYTES

NO_DIFFERENCE = "no difference"


def column(
    heading: str,
    rows: Sequence[Row],
    figure: Callable[[Row], Any],
    text: Callable[[Any], str],
    mark: Callable[[Row], str] = lambda _: "",
) -> Column:
    """One figure of every row, a dash where it is not known."""
    figures = [(row, figure(row)) for row in rows]
    return Column(heading, [nothing(row) if value is None else text(value) + mark(row) for row, value in figures])


def differing_columns(legend: Legend) -> list[Column]:
    """What rows differ in."""
    return [Column(field.title, legend.columns[field.title], field.figure) for field in legend.differing]


def seconds_columns(rows: Sequence[Row], always: Sequence[str], every_run: bool = False) -> list[Column]:
    """The total and its phases: those of `always`, and any other in which some row spent time.

    Where a row was timed several times, how much its totals spread and their CPU time stand beside the total.
    """
    spent = [phase for phase in measured_phases(rows) if any(row.seconds.get(phase) for row in rows)]
    usual = [phase for phase in PHASES if phase in always or phase in spent]
    phases = usual + [phase for phase in spent if phase not in PHASES]
    decimals = decimals_of(rows)
    texts = []
    for row in rows:
        total, parts = seconds_texts(list(row.seconds.values()), decimals)
        written = dict(zip(("total", *row.seconds), (total, *parts), strict=True)) if row.seconds else {}
        marked = {name: text + mark_of(row) for name, text in written.items()}
        texts.append(marked or ({"total": at_least(row)} if at_least(row) else {}))
    total_column, *phase_columns = (
        Column(name, [text.get(name, nothing(row)) for row, text in zip(rows, texts, strict=True)])
        for name in ("total", *phases)
    )
    beside = []
    if any(len(row.samples) > 1 for row in rows):
        beside.append(column("spread", rows, lambda row: row.spread, share_text))
    told = any(len(row.samples) > 1 for row in rows) or outside(rows)
    if told and any(row.cpu_seconds is not None for row in rows):
        beside.append(column("CPU", rows, lambda row: row.cpu_seconds, lambda cpu: f"{cpu:,.{decimals}f}", mark_of))
    if every_run:
        beside.append(Column("runs", [_runs_text(row, decimals) for row in rows]))
    return [total_column, *beside, *phase_columns]


def at_least(row: Row) -> str:
    """The total of a row that a limit ended: the lower end of what it would have been, if that is known."""
    low = row.extrapolated.get("low_seconds")
    return f">{duration_text(low, floor_to_tenth)}" if low else ""


def _runs_text(row: Row, decimals: int) -> str:
    """Every total in the order in which they were measured, as the series writes its three."""
    return "/".join(f"{sample.wall_seconds:,.{decimals}f}" for sample in row.samples) or nothing(row)


def ratio_columns(baseline: Baseline) -> list[Column]:
    """How many times a row's total is that of the baseline on the same corpus, to the same vocabulary.

    With several blocks it is the median of the ratios within them, and with enough its interval stands beside it.
    """
    texts, intervals = [], []
    told = zip(baseline.rows, baseline.total_ratios, baseline.comparisons, baseline.refused, strict=True)
    for row, ratio, comparison, refused in told:
        least = baseline.least_ratio(row)
        if refused:
            texts.append(NOT_COMPARABLE)
        elif ratio is not None:
            texts.append(ratio_text(ratio) + mark_of(row))
        else:
            texts.append(f">{ratio_text(least)}" if least else nothing(row))
        intervals.append(nothing(row) if refused or comparison is None else interval_text(comparison))
    columns = [Column(f"total / {baseline.variant}", texts)]
    if any(comparison is not None and comparison.different is not None for comparison in baseline.comparisons):
        columns.append(Column("interval", intervals, figures=False))
    return columns


def speed_columns(rows: Sequence[Row], names: str) -> list[Column]:
    """How many times as fast a row is as the first row of each name, by the blocks that they share."""
    return [_speed_column(rows, name) for name in names.split(",")]


def _speed_column(rows: Sequence[Row], name: str) -> Column:
    baselines = {row.question: row for row in reversed(rows) if row.name == name and row.samples}
    if not baselines:
        raise Refusal(
            f"no time of {name!r} to compare with; there are: {', '.join(dict.fromkeys(row.name for row in rows))}"
        )
    compared = [
        compare(baselines[row.question].samples, row.samples) if row.question in baselines else None for row in rows
    ]
    return Column(
        f"times {name}",
        [
            nothing(row) if comparison is None else ratio_text(comparison.ratio)
            for row, comparison in zip(rows, compared, strict=True)
        ],
    )


def interval_text(comparison: Comparison) -> str:
    """From where to where the ratio may lie, and whether that is any difference.

    >>> interval_text(Comparison(1.5, 1.4, 1.61, 10, 0, "CPU")), interval_text(Comparison(1, 0.98, 1.02, 10, 0, "CPU"))
    ('1.40 to 1.61', '0.98 to 1.02, no difference')
    """
    if comparison.low is None or comparison.high is None:
        return NOT_MEASURED
    text = f"{ratio_text(comparison.low)} to {ratio_text(comparison.high)}"
    return text if comparison.different else f"{text}, {NO_DIFFERENCE}"


def instructions_ratio(baseline: Baseline) -> Column:
    """How many times a row's instructions are those of the baseline."""
    counted = baseline.ratios(lambda row: row.instructions)
    texts = [
        nothing(row) if ratio is None else ratio_text(ratio) + mark_of(row)
        for row, ratio in zip(baseline.rows, counted, strict=True)
    ]
    return Column(f"instructions / {baseline.variant}", texts)


def memory_column(rows: Sequence[Row]) -> Column:
    sizes = column("memory", rows, lambda row: row.peak_rss_bytes, bytes_text)
    sampled = [SAMPLED if row.memory_is_sampled else "" for row in rows]
    return Column("memory", [mark + cell for mark, cell in zip(sampled, sizes.cells, strict=True)])


def merges_column(rows: Sequence[Row]) -> Column:
    return column("merges/s", rows, lambda row: row.merges_per_second, rate_text, mark_of)


def proof_column(rows: Sequence[Row]) -> Column:
    """Whether the merges of each row are the defined ones."""
    return Column("proof", [proof_text(row) for row in rows], figures=False)


def proof_text(row: Row) -> str:
    """
    >>> proof_text(Row({"identity": {"kind": "wrong", "merge": 12}}, "mismatch", "", 1))
    'wrong at merge 12'
    >>> proof_text(Row({"identity": {"kind": "identical", "tie_break": "raw_bytes"}}, "ok", "", 1, proved=True))
    'identical (raw_bytes)'
    """
    identity = row.identity
    if row.status == "mismatch":
        return f"wrong at merge {count_text(identity['merge'])}" if identity.get("merge") else WRONG
    if row.status != "ok":
        return status_text(row)
    if row.disputed:
        return f"{row.digest} {UNCONFIRMED}"
    if row.by_design:
        return BY_DESIGN.replace("_", " ")
    if not row.proved:
        return UNPROVED
    tie_break = identity.get("tie_break") or GREATEST_BYTES.value
    return str(identity["kind"]).replace("_", " ") + (f" ({tie_break})" if tie_break != GREATEST_BYTES.value else "")


def nothing(row: Row) -> str:
    """A dash says "not measured"; a mismatch was measured, and none of it counts."""
    return "" if row.status == "mismatch" else NOT_MEASURED


def mark_of(row: Row) -> str:
    return UNCONFIRMED if row.status == "ok" and not row.confirmed else ""


def merges_differ(rows: Sequence[Row], legend: Legend) -> bool:
    """Whether the number of merges needs a column of its own."""
    return len({row.merges for row in rows if row.merges is not None}) > 1 and "vocab size" not in legend.columns


def merges_made(rows: Sequence[Row]) -> Column:
    return column("merges", rows, lambda row: row.merges, count_text)
