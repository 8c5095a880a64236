"""How rows compare: the ratio of two times with its interval, who is slower, and what cannot be compared.

Every table, chart and page has its ratios from here, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.common.comparison import Comparison, compare
from harness.common.errors import Refusal
from harness.common.units import count_text, ratio_text
from harness.records.fields import WORK
from harness.results.rows import NOT_MEASURED, SIGNS, Row

ONE_RUN_DIFFERS_BY = 0.1
"""Single runs on a quiet machine differ by up to this share in either direction."""


class Ratio(NamedTuple):
    """How many times the baseline's figure a row has; `form` is as in Time. Several blocks may have an interval."""

    number: float
    form: str = ""
    low: float | None = None
    high: float | None = None


def ratio_of(row: Row, base: Row) -> Ratio | None:
    """How many times the total of `base` a row takes: within blocks if they share several, else by their medians."""
    if not base.total or row.time.number is None:
        return None
    comparison = compare(row.samples, base.samples) if row is not base else None
    if comparison is not None and comparison.blocks + comparison.left_out > 1:
        return Ratio(comparison.ratio, row.time.form, comparison.low, comparison.high)
    return Ratio(row.time.number / base.total, row.time.form)


def factor_text(slower: Row, row: Row) -> str:
    """How many times as long the first row takes as the second, without its interval."""
    ratio = ratio_of(slower, row)
    return ratio_text(ratio.number) if ratio is not None else NOT_MEASURED


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


def is_slower(slower: Row, row: Row) -> bool:
    """Whether the measurements show that the first row takes longer than the second."""
    comparison = compare(slower.samples, row.samples)
    if comparison is not None and comparison.different is not None:
        return comparison.different
    if min(len(row.samples), len(slower.samples)) > 1:
        slowest = max(sample.wall_seconds for sample in row.samples)
        return slowest < min(sample.wall_seconds for sample in slower.samples)
    return (slower.total or 0.0) > (1 + ONE_RUN_DIFFERS_BY) * (row.total or 0.0)


def incomparable(row: Row, base: Row) -> str | None:
    """Return why the times of two rows on one corpus are of different work, or None if they are comparable."""
    for field, ours, theirs in zip(WORK, row.work, base.work, strict=True):
        if ours != theirs:
            return field.other_work
    if row.by_design or base.by_design:
        others = row.other_merges or base.other_merges
        return ("different by design" if row.by_design else "the other is different by design") if others else None
    if row.merges == base.merges or None in (row.merges, base.merges):
        return None
    if row.exhausted and base.exhausted:
        return None
    return f"{count_text(row.merges or 0)} merges, not {count_text(base.merges or 0)}"


class Baseline:
    """The rows of `variant` that others are compared with, the first for each task; without a name the first row.

    Raises Refusal if a named variant has no figure.
    """

    def __init__(self, rows: Sequence[Row], variant: str | None = None) -> None:
        self.variant = variant
        measured = [row for row in rows if row.total is not None or row.instructions is not None]
        chosen = [row for row in measured if variant is None or row.name == variant]
        if not chosen and variant is not None:
            names = ", ".join(dict.fromkeys(row.name for row in measured)) or "none"
            raise Refusal(f"no time of {variant!r} to compare with; there are: {names}")
        by_task = {row.question: row for row in reversed(chosen)}
        bases = [(row, by_task.get(row.question)) for row in rows]
        self.pairs = [(row, None if base is None or incomparable(row, base) else base) for row, base in bases]
        """Each row with its baseline; None if that is of other work."""
        self.totals = [ratio_of(row, base) if base is not None else None for row, base in self.pairs]
        """The ratio of totals of each row; None if unknown or of other work."""
        self.refused = [_refusal(row, by_task.values()) for row in rows]
        """The name of the baseline of each row's corpus and why their times cannot be compared; None if one can."""

    def ratios(self, figure: str) -> list[float | None]:
        """How many times the baseline's figure each row has; None if unknown or of other work."""
        pairs = [(row.figures.get(figure), base.figures.get(figure) if base else None) for row, base in self.pairs]
        return [ours / theirs if ours is not None and theirs else None for ours, theirs in pairs]

    def refusals(self, labels: Sequence[str]) -> list[str]:
        """Why rows have no ratio; rows with the same reason are named together."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for refused, label in zip(self.refused, labels, strict=True):
            if refused is not None:
                reasons.setdefault(refused, []).append(label)
        return [
            f"Not comparable with {base} ({why}): {'; '.join(dict.fromkeys(named))}."
            for (base, why), named in reasons.items()
        ]


def _refusal(row: Row, bases: Iterable[Row]) -> tuple[str, str] | None:
    corpus = row.corpus.get("sha256")
    rivals = [base for base in bases if base.corpus.get("sha256") == corpus] if row.total is not None else []
    reasons = [(base.name, incomparable(row, base)) for base in rivals]
    return None if not reasons or None in dict(reasons).values() else (reasons[0][0], str(reasons[0][1]))
