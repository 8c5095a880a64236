"""Sheets from rows: a narrow table for each task, its columns by name, counts of work, and ratios to a baseline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from harness.common.comparison import Comparison, compare
from harness.common.errors import Refusal
from harness.common.sheet import Column, Sheet
from harness.common.units import count_text, counted_text, ratio_text, seconds_text
from harness.proof import BY_DESIGN, UNPROVED, WRONG
from harness.results.fields import SIGNS, WORK, figures_of, time_of
from harness.results.legend import (
    NOT_MEASURED,
    SAMPLED,
    UNPROVED_MARK,
    Legend,
    all_notes,
    incomparable,
    is_outside_table,
    makes_other_merges,
    notes,
    status_text,
    threads_of,
)
from harness.results.rows import Row, measured_phases
from variants.contract import COUNTING_PHASES, GREATEST_BYTES

NOT_COMPARABLE = "not comparable"
DESIGN_MARK = "*"
"""Marks figures of trainers that make other merges, on purpose."""
RATIO = "ratio"
SERIES = ("total", "count", "merge", "max", "update", "other", "memory", "threads")
"""The columns of the series: merge is everything but count, and other what is neither max nor update."""


@dataclass(frozen=True)
class TableOptions:
    """What a table shows: columns by name, all phases, the work, all notes; `relative_to` names the baseline."""

    columns: Sequence[str] = ()
    phases: bool = False
    work: bool = False
    notes: bool = False
    relative_to: str | None = None
    runs: bool = False
    series: bool = False
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
        figured = [row for row in rows if row.total is not None or row.instructions is not None]
        chosen = [row for row in figured if variant is None or row.name == variant]
        if not chosen and variant is not None:
            names = ", ".join(dict.fromkeys(row.name for row in figured)) or "none"
            raise Refusal(f"no time of {variant!r} to compare with; there are: {names}")
        self.by_task = {row.question: row for row in reversed(chosen)}

    @cached_property
    def comparisons(self) -> list[Comparison | None]:
        """How each row compares with its baseline within blocks; None for other work and for baselines."""
        return [
            compare(row.samples, base.samples) if base is not None and row is not base else None
            for row, base in ((row, self._of(row)) for row in self.rows)
        ]

    def ratios(self, figure: Callable[[Row], Any]) -> list[float | None]:
        """How many times the baseline's figure each row has; None if unknown or of other work."""
        pairs = [(figure(row), figure(base)) if (base := self._of(row)) else (None, None) for row in self.rows]
        return [ours / theirs if ours is not None and theirs else None for ours, theirs in pairs]

    @cached_property
    def totals(self) -> list[Ratio | None]:
        """The ratio of totals of each row; None if unknown or of other work."""
        return [ratio_of(row, base) if (base := self._of(row)) is not None else None for row in self.rows]

    def _of(self, row: Row) -> Row | None:
        base = self.by_task.get(row.question)
        return None if base is None or incomparable(row, base) else base

    def is_refused(self, row: Row) -> bool:
        """Whether a row has a time that no baseline of its corpus may be compared with."""
        rivals = self._rivals(row)
        return bool(rivals) and all(incomparable(row, base) for base in rivals)

    def _rivals(self, row: Row) -> list[Row]:
        corpus = row.corpus.get("sha256")
        bases = [base for base in self.by_task.values() if base.corpus.get("sha256") == corpus]
        return bases if row.total is not None else []

    def refusals(self, labels: Sequence[str]) -> list[str]:
        """Why rows have no ratio; rows with the same reason are named together."""
        reasons: dict[str, list[str]] = {}
        for row, label in zip(self.rows, labels, strict=True):
            for base in self._rivals(row):
                if row is not base and (why := incomparable(row, base)):
                    reasons.setdefault(f"Not comparable with {base.name} ({why})", []).append(label)
        return [f"{reason}: {'; '.join(dict.fromkeys(named))}." for reason, named in reasons.items()]


def tables(rows: Sequence[Row], options: TableOptions | None = None) -> list[Sheet]:
    """A table for each task, with `work` a second one. Raises Refusal if no task has the baseline that was named."""
    options = options or TableOptions()
    tasks = [list(rows)] if options.joined else by_task(rows)
    sheets, refused = list[Sheet](), list[Refusal]()
    for task in tasks:
        try:
            sheets += _sheets_of(task, rows, options)
        except Refusal as refusal:
            if options.relative_to is None or "no time of" not in str(refusal):
                raise
            refused.append(refusal)
            sheets += _sheets_of(task, rows, replace(options, relative_to=None))
    if refused and len(refused) == len(tasks):
        raise refused[0]
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
    if options.columns:
        columns = _named(options.columns, legend, baseline, first)
    else:
        fields = [title for title in legend.columns if legend.distinguishes(title)]
        names = [first.heading, *fields, *_names(task, legend, options)]
        columns = _named(names, legend, baseline, first, options.series)
    if options.runs:
        columns.append(Column("runs", [_runs_text(row) for row in task]))
    below = [*all_notes(task, labels, legend), *baseline.refusals(labels)] if options.notes else notes(task, labels)
    main = Sheet(legend.caption(), columns, [style_of(row) for row in task], below)
    return [main, work_sheet(task)] if options.work else [main]


def _names(rows: Sequence[Row], legend: Legend, options: TableOptions) -> list[str]:
    """The columns that a table has if none are named; they follow from what was asked, not from what was measured."""
    if options.series:
        return [name for name in SERIES if name not in legend.columns]
    if all(row.counting_only for row in rows):
        threads = [] if "threads" in legend.columns else ["threads"]
        status = ["status"] if any(row.status != "ok" for row in rows) else []
        return [*threads, "total", RATIO, "MB/s", "words", "memory", *status]
    if any(row.instructions is not None for row in rows) and not any(row.seconds for row in rows):
        return ["instructions", "instructions ratio", "proof"]
    phases = [phase for phase in measured_phases(rows) if any(row.seconds.get(phase) for row in rows)]
    usual = phases if options.phases else [] if is_outside_table(rows) else ["max", "update"]
    counted = ["instructions"] if any(row.instructions is not None for row in rows) else []
    merges = {row.merges for row in rows if row.merges is not None}
    made = ["merges"] if len(merges) > 1 and "vocab size" not in legend.columns else []
    clocks = ["spread", "CPU"] if options.phases else []
    tokens = ["bytes/token"] if any(row.record.get("tokens") is not None for row in rows) else []  # tokens=true
    return [*made, "total", RATIO, *clocks, *usual, *tokens, "memory", *counted, "proof"]


def _named(
    names: Sequence[str], legend: Legend, baseline: Baseline, first: Column, series: bool = False
) -> list[Column]:
    """The columns of these names, `series` as the series divides a total. Raises Refusal for an unknown name."""
    rows = legend.rows
    figures = figures_of(rows)
    if series:
        parts = {name: replace(figures[name], value=_series_reader(name)) for name in ("count", "other")}
        figures = {**figures, **parts}
    special: Mapping[str, Callable[[], Column]] = {
        first.heading: lambda: first,
        "total": lambda: Column("total", [total_text(row) for row in rows]),
        RATIO: lambda: ratio_column(baseline),
        "memory": lambda: Column("memory", [_memory_text(row, figures["memory"].text) for row in rows]),
        "threads": lambda: Column("threads", [count_text(row.record.get("threads") or 1) for row in rows]),
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
            texts = [_figure_text(row, figures[name].value(row), figures[name].text) for row in rows]
            columns.append(Column(name, texts))
        else:
            known = ", ".join([*special, *differing, *(each for each in figures if each not in special)])
            raise Refusal(f"the table has no column {name!r}; it has {known}")
    return columns


def _figure_text(row: Row, value: Any, text: Callable[[Any], str]) -> str:
    return nothing(row) if value is None else text(value) + mark_of(row)


def total_text(row: Row) -> str:
    """The total as it is written in every table, estimates marked; a dash if there is none."""
    text = time_of(row).text
    return text + mark_of(row) if text else nothing(row)


def _runs_text(row: Row) -> str:
    """Every total in the order in which they were measured."""
    return " / ".join(seconds_text(sample.wall_seconds) for sample in row.samples) or nothing(row)


def _memory_text(row: Row, text: Callable[[Any], str]) -> str:
    return (SAMPLED if row.memory_is_sampled else "") + _figure_text(row, row.peak_rss_bytes, text).rstrip("?*")


def ratio_column(baseline: Baseline) -> Column:
    """How many times the baseline's total each row takes, with the interval if there are enough blocks."""
    heading = RATIO if baseline.variant is None else f"total / {baseline.variant}"
    return Column(heading, [_ratio_text(baseline, place) for place in range(len(baseline.rows))])


def _ratio_text(baseline: Baseline, place: int) -> str:
    row, ratio = baseline.rows[place], baseline.totals[place]
    if baseline.is_refused(row):
        return NOT_COMPARABLE
    if ratio is None:
        return nothing(row)
    number = f"{SIGNS.get(ratio.form, '')}{'× ' if baseline.variant is None else ''}{ratio_text(ratio.number)}"
    return f"{number}{interval_text(ratio)}{mark_of(row)}"


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
    texts = [nothing(row) if ratio is None else f"× {ratio_text(ratio)}" + mark_of(row) for row, ratio in ratios]
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
        return BY_DESIGN.replace("_", " ") if makes_other_merges(row) else "identical on its own words"
    if not row.proved:
        return UNPROVED
    tie_break = identity.get("tie_break") or GREATEST_BYTES.value
    return str(identity["kind"]).replace("_", " ") + (f" ({tie_break})" if tie_break != GREATEST_BYTES.value else "")


def nothing(row: Row) -> str:
    """A dash means "not measured"; wrong merges were measured, and none of it counts."""
    return "" if row.status == "mismatch" else NOT_MEASURED


def mark_of(row: Row) -> str:
    if row.status != "ok" or row.confirmed:
        return ""
    return DESIGN_MARK if row.by_design else UNPROVED_MARK


def style_of(row: Row) -> str:
    if row.status == "mismatch":
        return "red"
    return "dim" if row.status != "ok" else "" if row.confirmed else "yellow"


def work_sheet(rows: Sequence[Row]) -> Sheet:
    """How many times each row did what: the same on every machine, so it explains why one is faster than another."""
    counted = [row for row in rows if row.status == "ok"]
    names = dict.fromkeys(name for row in counted for name in row.tallies)
    if not names:
        return Sheet([], [], [], ["No work was counted."])
    legend = Legend(counted)
    columns = [Column("work", legend.names, figures=False)]
    columns += [Column(field.title, legend.columns[field.title], field.figure) for field in legend.differing]
    for name in [*(name for name in WORK if name in names), *(name for name in names if name not in WORK)]:
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
    names = [", ".join([way[0], *_widths_text(sorted(widths))]) for way, widths in ways.items()]
    columns = [Column("trainer", names, figures=False)]
    columns += [Column(name, [way[place] for way in ways], figures=False) for place, name in enumerate(headings, 1)]
    return Sheet([], columns, ["" for _ in names], [])


def _widths_text(widths: Sequence[int]) -> list[str]:
    return [" and ".join([*map(count_text, widths[:-1]), counted_text(widths[-1], "thread")])] if widths else []


def _series_reader(name: str) -> Callable[[Row], float | None]:
    """The part of a total that the series calls count, with reading, or other: all but count, max and update."""
    apart = ("max", "update", *COUNTING_PHASES)

    def part(row: Row) -> float | None:
        spent = [seconds for phase, seconds in row.seconds.items() if _is_in(name, phase)]
        return sum(spent) if row.seconds else None

    def _is_in(name: str, phase: str) -> bool:
        return phase in COUNTING_PHASES if name == "count" else phase not in apart

    return part
