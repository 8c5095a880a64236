"""Predicting what a cell takes before it runs, from slices of its words, where limits.wall asks for a budget.

A slice is every k-th word with its count, so that the same pairs are frequent in it, and it is trained for as many
merges as the whole. Slices grow until what they take would pass a tenth of limits.wall, or half a minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import word_store
from harness.extrapolation import Estimate, from_curve, from_slices
from harness.kept_costs import MEASURED, exact_cost, keep_cost
from harness.measure import Answer, Limits
from harness.plan import TrainCell
from variants.contract import WordCounts

SHARE_OF_LIMIT = 0.1
MOST_SECONDS = 30.0
SECONDS_TO_START = 0.25
"""What a process takes besides the call."""
SMALLEST_SYMBOLS = 3_000
SHARE_OF_SLICE = 0.4
"""The share of what is left that one slice may take, so that the first is not the last."""
LARGEST_SYMBOLS = 4_000_000
MOST_SLICES = 6

RunSlice = Callable[[TrainCell, Path, Limits], Answer]


@dataclass(frozen=True)
class Slice:
    """A part of a table of words; its size is the bytes of its distinct words."""

    words: Path
    size: int


class Slices:
    """The slices of the tables of one run, made when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[tuple[Path, int], Slice] = {}

    def steps(self, words: Path) -> list[int]:
        """Which k-th words to take, the smallest slice first: from some thousand bytes up to a half of the table."""
        whole = size_of(words)
        smallest = max(1.0, math.log2(max(1.0, whole / SMALLEST_SYMBOLS)))
        largest = max(1.0, math.log2(max(1.0, whole / LARGEST_SYMBOLS)))
        places = [smallest + (largest - smallest) * place / (MOST_SLICES - 1) for place in range(MOST_SLICES)]
        return sorted({round(2**place) for place in places}, reverse=True)

    def every(self, words: Path, step: int) -> Slice:
        """Every step-th word."""
        if (words, step) not in self.made:
            table, _ = word_store.read(words)
            offsets, counts = table.offsets, table.counts
            chosen = range(0, len(counts), step)
            spelled = [bytes(table.data[offsets[place] : offsets[place + 1]]) for place in chosen]
            folder = self.folder / f"slice{len(self.made)}"
            word_store.write(folder, WordCounts.from_columns(spelled, [counts[place] for place in chosen]))
            self.made[words, step] = Slice(folder, sum(map(len, spelled)))
        return self.made[words, step]


def size_of(words: Path) -> int:
    return len(word_store.read(words)[0].data)


def predicted(cell: TrainCell, words: Path, slices: Slices, run_slice: RunSlice) -> Estimate | None:
    """What the trainer would take for the whole table; None if its slices do not show it.

    The merges of a slice are not proved: they are another question's.
    """
    wall = cell.limits.wall_seconds
    assert wall is not None, "without a limit there is no budget"
    left = min(SHARE_OF_LIMIT * wall, MOST_SECONDS)
    whole = size_of(words)
    known: list[tuple[int, Estimate]] = []
    for step in slices.steps(words):
        if SECONDS_TO_START + next_cost(known, whole // step) > left:
            break
        part = slices.every(words, step)
        own = SHARE_OF_SLICE * left
        answer = run_slice(cell, part.words, replace(cell.limits, wall_seconds=own + SECONDS_TO_START))
        left -= SECONDS_TO_START + min(answer.get("total") or 0.0, own)
        if answer["status"] == "rejected" or (answer["status"] == "ok" and answer["merges_done"] < cell.num_merges):
            continue  # its clocks disagreed, or it ran out of pairs, which the whole will not
        estimate = estimate_of(answer, cell.num_merges)
        if estimate is None:
            break
        known.append((part.size, estimate))
    return from_slices(known, whole)


def next_cost(known: Sequence[tuple[int, Estimate]], size: int) -> float:
    """What a slice of this size would take; with less than two before it, nothing that would keep it from running."""
    estimate = from_slices(known[-2:], size)
    return estimate.seconds if estimate is not None else 0.0


def estimate_of(answer: Answer, num_merges: int) -> Estimate | None:
    """What a trainer took, or would have taken had it not been stopped; None if it failed otherwise."""
    if answer["status"] == "ok":
        return Estimate(answer["total"], answer["total"], answer["total"], None, MEASURED)
    return from_curve(answer["curve"], num_merges) if answer["status"] == "timeout" and answer.get("curve") else None


class Forecast:
    """What the cells of a run would take, each predicted once, from what is kept or from slices."""

    def __init__(self, machine: str, folder: Path, run_slice: RunSlice) -> None:
        self.machine = machine
        self.slices = Slices(folder)
        self.run_slice = run_slice
        self.known: dict[str, Estimate | None] = {}

    def of(self, cell: TrainCell, words: Path | None) -> Estimate | None:
        if cell.key() not in self.known and words is not None:
            estimate = exact_cost(cell, self.machine) or predicted(cell, words, self.slices, self.run_slice)
            self.known[cell.key()] = estimate
            if estimate is not None:
                keep_cost(cell, self.machine, estimate)
        return self.known.get(cell.key())


def of_stopped(answer: Answer, num_merges: int, from_parts: Estimate | None) -> Estimate | None:
    """The total of a cell that was stopped at the limit: the more certain of what its curve and its slices say.

    Slices whose whole interval has passed by the time it was stopped have been proved wrong.
    """
    elapsed = answer.get("total") or 0.0
    own = from_curve(answer["curve"], num_merges) if answer.get("curve") else None
    told = [each for each in (own, from_parts) if each is not None and each.high > elapsed]
    if not told:
        return None
    exponent = from_parts.exponent if from_parts is not None else None
    return replace(min(told, key=lambda each: each.width).beyond(elapsed), exponent=exponent)


def extrapolated(estimate: Estimate, answer: Answer) -> dict[str, Any]:
    """What a record says of a total that was not measured; the exponent is that over sizes, where slices showed one."""
    return {
        "total_seconds": estimate.seconds,
        "low_seconds": estimate.low,
        "high_seconds": estimate.high,
        "exponent": estimate.exponent,
        "merges_done": answer.get("merges_done", 0),
        "from": estimate.source,
    }
