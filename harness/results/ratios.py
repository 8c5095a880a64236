"""How rows compare: which are of one task, and their ratios, which every table, chart and page has
from here, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

from harness.common.comparison import CPU, compare
from harness.common.units import count_text, share_text
from harness.results.fields import WORK, together
from harness.results.rows import Row

# single runs on a quiet machine differ by up to this share in either direction
ONE_RUN_DIFFERS_BY = 0.1
TASK = (*(field.name for field in WORK), "host")
"""Besides its text, what makes a task: times of one task on one machine can be compared."""


def tasks_of(rows: Sequence[Row], without: Sequence[str] = ()) -> list[list[Row]]:
    """The rows of each task on each machine, whichever way ties went; `without` are fields in which
    rows of one task may differ.
    """
    fields = [name for name in TASK if name not in without]
    keyed = []
    for row in rows:
        corpus = row.corpus.name, row.corpus.sha256
        text = base_name(row) if "data.sha256" in without else corpus
        keyed.append(((text, *[row.values[name] for name in fields]), row))
    return list(together(keyed).values())


def unlike(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    """Those of the fields in which rows differ."""
    return [name for name in names if len({row.values[name] for row in rows}) > 1]


def base_name(row: Row) -> str:
    """The name of the row's corpus, of any size: one_word of one_word(bytes=5000)."""
    return str(row.corpus.name).partition("(")[0]


class Ratio(NamedTuple):
    """How many times the baseline's figure a row has; `is_limit` is as in Time. Several blocks may
    have an interval, and have the clock by which they are compared.
    """

    number: float
    is_limit: bool = False
    low: float | None = None
    high: float | None = None
    clock: str = ""


def ratio_of(row: Row, base: Row) -> Ratio | None:
    """Return how many times the total of `base` a row takes: within blocks if they share several,
    else by their medians.
    """
    if not base.total or row.time.number is None:
        return None
    comparison = compare(row.samples, base.samples) if row is not base else None
    if comparison is not None and comparison.blocks + comparison.left_out > 1:
        return Ratio(
            comparison.ratio, low=comparison.low, high=comparison.high, clock=comparison.clock
        )
    return Ratio(row.time.number / base.total, row.time.is_limit)


def is_slower(slower: Row, row: Row) -> bool:
    """Return whether the measurements show that the first row takes longer than the second."""
    comparison = compare(slower.samples, row.samples)
    if comparison is not None and comparison.different is not None:
        return comparison.different

    if min(len(row.samples), len(slower.samples)) > 1:
        slowest = max(sample.seconds for sample in row.samples)
        return slowest < min(sample.seconds for sample in slower.samples)
    return (slower.total or 0.0) > (1 + ONE_RUN_DIFFERS_BY) * (row.total or 0.0)


def leader(rows: Sequence[Row]) -> Row | None:
    """Return the row of a task that is first: those of all other trainers are slower; None if one
    is too close.
    """
    ranked = [row for row in rows if row.is_ranked]
    first = min(ranked, key=attrgetter("order"), default=None)
    for row in ranked:
        if first and row.configured != first.configured and not is_slower(row, first):
            return None
    return first


def clock_note(compared: Sequence[Against]) -> list[str]:
    """Say which part of the totals the ratios compare, if they are of CPU time: those of records
    without net times.
    """
    shares = []
    for comparison in compared:
        ratio = comparison.ratio()
        if ratio is not None and ratio.clock == CPU:
            for row in (comparison.row, comparison.base):
                if row is not None and row.cpu_seconds and row.total:
                    shares.append(row.cpu_seconds / row.total)
    if not shares:
        return []

    ends = dict.fromkeys([share_text(min(shares)), share_text(max(shares))])
    return [f"Ratios are of CPU time, {' to '.join(ends)} of these totals."]


def incomparable(row: Row, base: Row) -> str | None:
    """Return why the times of two rows of one task are of different work, or None if they are
    comparable.
    """
    if row.doubtful:
        return "its merges are not proved"
    if base.doubtful:
        return "the other's merges are not proved"
    if base.other_merges and row is not base:
        return "the other is different by design"
    if row.by_design or base.by_design:
        return None  # a star marks the ratio

    # both may have come to the end of all pairs, each after as many merges as its ties allow
    if row.merges == base.merges or None in (row.merges, base.merges):
        return None
    if row.exhausted and base.exhausted:
        return None
    return f"{count_text(row.merges or 0)} merges, not {count_text(base.merges or 0)}"


class Against(NamedTuple):
    """A row with its baseline; or the name of that, and why their times cannot be compared."""

    row: Row
    base: Row | None = None
    refused: tuple[str, str] | None = None

    def ratio(self, figure: str = "total") -> Ratio | None:
        """Return how many times the baseline's figure the row has; None if unknown or of other
        work.
        """
        if self.base is None:
            return None
        if figure == "total":
            return ratio_of(self.row, self.base)
        number, baseline = self.row.figures.get(figure), self.base.figures.get(figure)
        return Ratio(number / baseline) if number is not None and baseline else None


def against(rows: Sequence[Row], variant: str | None = None) -> list[Against]:
    """Each row with the first row of its task that has a time, or with that of `variant` if the
    task has one.
    """
    baselines = dict[object, Row]()
    for row in sorted(rows, key=lambda row: row.name != variant):
        if row.has_cost:
            baselines.setdefault(row.question, row)
    return [compared(row, baselines.get(row.question)) for row in rows]


def compared(row: Row, base: Row | None) -> Against:
    """The row with that baseline, or why they cannot be compared."""
    why = None if base is None else incomparable(row, base)
    if base is None or why is None:
        return Against(row, base)
    return Against(row, refused=None if row.total is None else (base.name, why))
