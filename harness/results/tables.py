"""Sheets from rows: a narrow table for each task, its columns by name, counts of work, and ratios to a baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.common.comparison import Comparison, compare
from harness.common.errors import Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, counted_text, ratio_text
from harness.proof import BY_DESIGN, UNPROVED, WRONG
from harness.results.fields import SIGNS, figures_of, time_of
from harness.results.legend import (
    NOT_MEASURED,
    SAMPLED,
    UNPROVED_MARK,
    Legend,
    all_notes,
    incomparable,
    is_outside_table,
    notes,
    status_text,
)
from harness.results.rows import TALLIES, Row, frame_of, measured_phases
from variants.contract import GREATEST_BYTES

if TYPE_CHECKING:
    import pandas as pd

NOT_COMPARABLE = "not comparable"
DESIGN_MARK = "*"
"""Marks figures of trainers that make other merges, on purpose."""
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


class Ratio(NamedTuple):
    """How many times the baseline's figure a row has; `form` is as in Time. Several blocks may have an interval."""

    number: float
    form: str = ""
    low: float | None = None
    high: float | None = None


def ratio_of(row: Row, base: Row) -> Ratio | None:
    """How many times the total of `base` a row takes: within blocks if they share several, else by their medians.

    Every table, chart and page has its ratios from here, so that they agree.
    """
    time = time_of(row)
    if not base.total or time.number is None:
        return None
    comparison = compare(row.samples, base.samples) if row is not base else None
    if comparison is not None and comparison.blocks + comparison.left_out > 1:
        return Ratio(comparison.ratio, time.form, comparison.low, comparison.high)
    return Ratio(time.number / base.total, time.form)


def times_text(slower: Row, row: Row) -> str:
    """How many times as long the first row takes as the second, without its interval."""
    ratio = ratio_of(slower, row)
    return ratio_text(ratio.number) if ratio is not None else NOT_MEASURED


class Baseline:
    """The rows of `variant` that others are compared with, the first for each task; without a name the first row.

    Raises Refusal if a named variant has no figure.
    """

    def __init__(self, rows: Sequence[Row], variant: str | None = None) -> None:
        self.rows, self.variant = rows, variant
        measured = [row for row in rows if row.total is not None or row.instructions is not None]
        chosen = [row for row in measured if variant is None or row.name == variant]
        if not chosen and variant is not None:
            names = ", ".join(dict.fromkeys(row.name for row in measured)) or "none"
            raise Refusal(f"no time of {variant!r} to compare with; there are: {names}")
        self.by_task = {row.question: row for row in reversed(chosen)}

    def ratios(self, figure: Callable[[Row], Any]) -> list[float | None]:
        """How many times the baseline's figure each row has; None if unknown or of other work."""
        pairs = [(figure(row), figure(base)) if base else (None, None) for row, base in self.pairs]
        return [ours / theirs if ours is not None and theirs else None for ours, theirs in pairs]

    @cached_property
    def totals(self) -> list[Ratio | None]:
        """The ratio of totals of each row; None if unknown or of other work."""
        return [ratio_of(row, base) if base is not None else None for row, base in self.pairs]

    @cached_property
    def pairs(self) -> list[tuple[Row, Row | None]]:
        """Each row with its baseline; None if that is of other work."""
        bases = [(row, self.by_task.get(row.question)) for row in self.rows]
        return [(row, None if base is None or incomparable(row, base) else base) for row, base in bases]

    def refusal(self, row: Row) -> tuple[str, str] | None:
        """The name of the baseline of a row's corpus and why their times cannot be compared; None if one can."""
        corpus = row.corpus.get("sha256")
        rivals = [base for base in self.by_task.values() if base.corpus.get("sha256") == corpus]
        reasons = [(base.name, incomparable(row, base)) for base in rivals if row.total is not None]
        return None if not reasons or None in dict(reasons).values() else (reasons[0][0], str(reasons[0][1]))

    def refusals(self, labels: Sequence[str]) -> list[str]:
        """Why rows have no ratio; rows with the same reason are named together."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for row, label in zip(self.rows, labels, strict=True):
            if (reason := self.refusal(row)) is not None:
                reasons.setdefault(reason, []).append(label)
        return [
            f"Not comparable with {base} ({why}): {'; '.join(dict.fromkeys(named))}."
            for (base, why), named in reasons.items()
        ]


def paired_frame(rows: Sequence[Row], relative_to: str | None) -> pd.DataFrame:
    """The rows for programs; with a baseline also how each compares with it within blocks."""
    import pandas as pd  # only here: it costs half a second

    frame = frame_of(rows)
    if relative_to is not None:
        compared = [
            compare(row.samples, base.samples) if base is not None and row is not base else None
            for row, base in Baseline(rows, relative_to).pairs
        ]
        for name, kind in (("ratio", "float64"), ("low", "float64"), ("high", "float64"), ("clock", "string")):
            figures = [comparison and getattr(comparison, name) for comparison in compared]
            frame[f"paired_{name}"] = pd.Series(figures, dtype=kind)
    return frame


def tables(rows: Sequence[Row], options: TableOptions | None = None) -> list[Sheet]:
    """A table for each task, with `work` a second one. Raises Refusal if no task has the baseline that was named."""
    options = options or TableOptions()
    if options.relative_to is not None:
        Baseline(rows, options.relative_to)  # refuses a name that no row has
    sheets: list[Sheet] = []
    for task in [list(rows)] if options.joined else by_task(rows):
        measured = {row.name for row in task if row.total is not None or row.instructions is not None}
        known = options if options.relative_to in measured else replace(options, relative_to=None)
        sheets += _sheets_of(task, rows, known)
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
        made.append(replace(sheet, caption=[line for line in sheet.caption if line not in above]))
        above.update(sheet.caption)
    return made


def _sheets_of(task: Sequence[Row], rows: Sequence[Row], options: TableOptions) -> list[Sheet]:
    legend, baseline = Legend(task, rows), Baseline(task, options.relative_to)
    labels = legend.short_labels()
    first = Column("counter" if all(row.counting_only for row in task) else "variant", legend.names, figures=False)
    names = options.columns or [first.heading, *legend.titles(), *_default_columns(task, legend, options)]
    below = [*all_notes(legend, labels), *baseline.refusals(labels)] if options.notes else notes(task, labels)
    styles = [style_of(row) for row in task]
    main = Sheet(legend.caption(), _named(names, legend, baseline, first), styles, below)
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


def _named(names: Sequence[str], legend: Legend, baseline: Baseline, first: Column) -> list[Column]:
    """The columns of these names. Raises Refusal for an unknown name."""
    rows, figures = legend.rows, figures_of(legend.rows)
    special: Mapping[str, Callable[[], Column]] = {
        first.heading: lambda: first,
        "total": lambda: Column("total", [total_text(row) for row in rows]),
        RATIO: lambda: _ratio_column(baseline),
        "memory": lambda: Column("memory", [memory_text(row) for row in rows]),
        "threads": lambda: Column("threads", [count_text(row.threads) for row in rows]),
        "data": lambda: Column("data", [str(row.corpus.get("name")) for row in rows], figures=False),
        "instructions ratio": lambda: _instructions_ratio(baseline),
        "status": lambda: Column("status", [status_text(row) for row in rows], figures=False),
        "proof": lambda: Column("proof", [proof_text(row) for row in rows], figures=False),
    }
    differing = {field.title: field for field in legend.differing}
    columns = []
    for name in names:
        if name in differing:
            columns.append(Column(name, legend.columns[name], differing[name].figure))
        elif name in special:
            columns.append(special[name]())
        elif name in figures:
            value, text = figures[name]
            columns.append(Column(name, [_figure_text(row, value(row), text) for row in rows]))
        else:
            there = ", ".join(dict.fromkeys([*special, *differing, *figures]))
            raise Refusal(f"the table has no column {name!r}; it has {there}")
    return columns


def _figure_text(row: Row, value: Any, text: Callable[[Any], str]) -> str:
    return _missing(row) if value is None else text(value) + mark_of(row)


def total_text(row: Row) -> str:
    """The total as it is written in every table, estimates marked; a dash if there is none."""
    text = time_of(row).text
    return text + mark_of(row) if text else _missing(row)


def memory_text(row: Row) -> str:
    if row.peak_rss_bytes is None:
        return _missing(row)
    return (SAMPLED if row.memory_is_sampled else "") + bytes_text(row.peak_rss_bytes)


def _ratio_column(baseline: Baseline) -> Column:
    """How many times the baseline's total each row takes, with the interval if there are enough blocks."""
    sign, texts = "" if baseline.variant else "× ", []
    for row, ratio in zip(baseline.rows, baseline.totals, strict=True):
        if baseline.refusal(row) is not None:
            texts.append(NOT_COMPARABLE)
        else:
            texts.append(_missing(row) if ratio is None else times_of(ratio, sign) + mark_of(row))
    return Column(RATIO if baseline.variant is None else f"total / {baseline.variant}", texts)


def times_of(ratio: Ratio, sign: str = "× ") -> str:
    """A ratio with its sign and its interval, such as `~× 180` or `× 1.50 (1.40 to 1.61)`."""
    return f"{SIGNS.get(ratio.form, '')}{sign}{ratio_text(ratio.number)}{interval_text(ratio)}"


def interval_text(ratio: Ratio | Comparison) -> str:
    """
    >>> interval_text(Ratio(1.5, "", 1.4, 1.61)), interval_text(Ratio(1.5))
    (' (1.40 to 1.61)', '')
    """
    if ratio.low is None or ratio.high is None:
        return ""
    return f" ({ratio_text(ratio.low)} to {ratio_text(ratio.high)})"


def _instructions_ratio(baseline: Baseline) -> Column:
    ratios = zip(baseline.rows, baseline.ratios(lambda row: row.instructions), strict=True)
    texts = [_missing(row) if ratio is None else f"× {ratio_text(ratio)}" + mark_of(row) for row, ratio in ratios]
    return Column(RATIO if baseline.variant is None else f"instructions / {baseline.variant}", texts)


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
        return f"{row.digest} {UNPROVED_MARK}"
    if row.by_design:
        return BY_DESIGN.replace("_", " ") if row.other_merges else "identical on its own words"
    if not row.proved:
        return UNPROVED
    tie_break = identity.get("tie_break") or GREATEST_BYTES.value
    return str(identity["kind"]).replace("_", " ") + (f" ({tie_break})" if tie_break != GREATEST_BYTES.value else "")


def _missing(row: Row) -> str:
    """A dash means "not measured"; wrong merges were measured, and none of it counts."""
    return "" if row.status == "mismatch" else NOT_MEASURED


def mark_of(row: Row) -> str:
    return DESIGN_MARK if row.status == "ok" and row.by_design else doubt_of(row)


def doubt_of(row: Row) -> str:
    """The mark of a figure whose merges nobody has proved."""
    return UNPROVED_MARK if row.status == "ok" and not row.confirmed and not row.by_design else ""


def style_of(row: Row) -> str:
    if row.status == "mismatch":
        return "red"
    return "dim" if row.status != "ok" else "" if row.confirmed else "yellow"


def work_sheet(rows: Sequence[Row]) -> Sheet:
    """How many times each row did what: the same on every machine, so it explains why one is faster than another."""
    counted = [row for row in rows if row.status == "ok"]
    names = {name for row in counted for name in row.tallies}
    if not names:
        return Sheet([], [], [], ["No work was counted."])
    legend = Legend(counted)
    columns = [Column("work", legend.names, figures=False)]
    columns += [Column(field.title, legend.columns[field.title], field.figure) for field in legend.differing]
    for name in dict.fromkeys([*TALLIES, *(name for row in counted for name in row.tallies)]):
        if name in names:
            texts = [count_text(row.tallies[name]) if name in row.tallies else NOT_MEASURED for row in counted]
            columns.append(Column(name.replace("_", " "), texts))
    return Sheet([], columns, ["" for _ in counted], [])


def given_sheet(rows: Sequence[Row]) -> Sheet:
    """What each outside trainer was given, and how: a row for each way, whatever the corpora and threads were."""
    headings = ("program", "way in", "pre-tokens", "special tokens", "ties")
    ways: dict[tuple[str, ...], set[int]] = {}
    fed = {row.name for row in rows if row.record.get("feeding")}
    for row in rows:
        feeding = row.record.get("feeding") or {}
        if row.name in fed and not feeding:
            continue  # it was stopped before it could report, and another row of it has
        way = row.name, *(str(feeding.get(heading.replace(" ", "_").replace("-", "_")) or "-") for heading in headings)
        ways.setdefault(way, set()).update(filter(None, [threads_of(row)]))
    names = [", ".join([way[0], *_threads_text(sorted(threads))]) for way, threads in ways.items()]
    columns = [Column("trainer", names, figures=False)]
    columns += [Column(name, [way[place] for way in ways], figures=False) for place, name in enumerate(headings, 1)]
    return Sheet([], columns, ["" for _ in names], [])


def threads_of(row: Row) -> int | None:
    """How many of the run's threads it could use; None if nobody recorded that."""
    takes, threads = row.record.get("takes_threads"), row.record.get("threads")
    return None if takes is None or threads is None else (threads if takes else 1)


def _threads_text(threads: Sequence[int]) -> list[str]:
    if not threads:
        return []
    return [" and ".join([*map(count_text, threads[:-1]), counted_text(threads[-1], "thread")])]
