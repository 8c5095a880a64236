"""Rows beside those of one variant that did the same: how many times its time each takes, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from harness.common.comparison import Comparison, compare
from harness.common.errors import Refusal
from harness.results.fairness import incomparable
from harness.results.rows import Row


class Baseline:
    """The rows of `variant` that others are compared with, the first for each question; every list is of all rows.

    Raises Refusal if none of its rows has a figure.
    """

    def __init__(self, rows: Sequence[Row], variant: str) -> None:
        self.rows, self.variant = rows, variant
        known = [row for row in rows if row.total is not None or row.instructions is not None]
        self.by_question = {row.question: row for row in reversed(known) if row.record.get("variant") == variant}
        if not self.by_question:
            names = dict.fromkeys(str(row.record.get("variant")) for row in known)
            raise Refusal(f"no time of {variant!r} to compare with; there are: {', '.join(names) or 'none'}")

    @cached_property
    def comparisons(self) -> list[Comparison | None]:
        """How each row compares block by block; None beside other work, and for those that are compared with."""
        return [
            compare(row.samples, base.samples) if base is not None and row is not base else None
            for row, base in zip(self.rows, self._fair, strict=True)
        ]

    @cached_property
    def _fair(self) -> list[Row | None]:
        """Whom each row may be compared with."""
        bases = [self.by_question.get(row.question) for row in self.rows]
        return [
            None if base is None or incomparable(row, base) else base
            for row, base in zip(self.rows, bases, strict=True)
        ]

    def ratios(self, figure: Callable[[Row], Any]) -> list[float | None]:
        """How many times a row's figure is that of the baseline; None where that is not known, or of other work."""
        ratios: list[float | None] = []
        for row, base in zip(self.rows, self._fair, strict=True):
            ours, theirs = map(figure, (row, base)) if base is not None else (None, None)
            ratios.append(ours / theirs if ours is not None and theirs else None)
        return ratios

    @cached_property
    def total_ratios(self) -> list[float | None]:
        """The ratios of totals: within blocks where there are several, else of the totals as they are shown."""
        plain = self.ratios(lambda row: row.total)
        return [
            comparison.ratio if comparison is not None and comparison.blocks + comparison.left_out > 1 else ratio
            for ratio, comparison in zip(plain, self.comparisons, strict=True)
        ]

    def least_ratio(self, row: Row) -> float | None:
        """How many times the baseline's total a row takes at least that a limit ended, counting included."""
        base, least = self.by_question.get(row.question), row.extrapolated.get("low_seconds")
        return least / base.total if least and base is not None and base.total else None

    @cached_property
    def refused(self) -> list[bool]:
        """Whether a row has a time, and all those of its corpus that it would be compared with did other work."""
        return [
            bool(rivals := self._rivals(row)) and all(incomparable(row, base) for base in rivals) for row in self.rows
        ]

    def _rivals(self, row: Row) -> list[Row]:
        """Those of the row's corpus, if it has a time."""
        corpus = row.corpus.get("sha256")
        bases = [base for base in self.by_question.values() if base.corpus.get("sha256") == corpus]
        return bases if row.total is not None else []

    def refusals(self, labels: Sequence[str]) -> list[str]:
        """Why rows have no ratio, those of one reason together; `labels` name the rows."""
        by_reason: dict[str, list[str]] = {}
        for row, label in zip(self.rows, labels, strict=True):
            for base in self._rivals(row):
                if row is not base and (why := incomparable(row, base)):
                    by_reason.setdefault(why, []).append(label)
        return [
            f"Not comparable with {self.variant}, which did other work ({why}): {'; '.join(dict.fromkeys(labelled))}."
            for why, labelled in by_reason.items()
        ]
