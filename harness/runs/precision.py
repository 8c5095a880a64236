"""measure.precision: the spread of the first six blocks says how many are needed; so many are measured and no more.

Each cell is compared with the first of its task that has as many threads, which is measured as often as any other needs
it. The number is computed once, from how far the ratios lie apart and never from where they lie, so it moves no ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harness.common.comparison import Sample, clock_of, compare, interval
from harness.runs.cells import TrainCell
from harness.runs.outcome import Block, Trained
from harness.runs.record_of import sample
from harness.runs.settings import Rule


def blocks_needed(log_ratios: Sequence[float], within: float, fewest: int, most: int) -> int:
    """How many blocks make the interval that narrow, from the ratios of the first ones.

    >>> blocks_needed([0.0, 0.01, 0.02, 0.03, 0.04, 0.05], 0.05, 6, 20), blocks_needed([0.0] * 5 + [0.15], 0.05, 6, 20)
    (6, 15)
    """
    low, high = interval(log_ratios)
    if low is None or high is None:
        return fewest
    needed = len(log_ratios) * ((high - low) / 2 / math.log1p(within)) ** 2
    return max(fewest, min(math.ceil(needed), most))


class Precision:
    """Which cells of one task a block has to hold, by what the blocks before it have shown."""

    def __init__(self, rule: Rule, cells: Sequence[TrainCell]) -> None:
        self.rule = rule
        self.references = {cell.key(): next(one for one in cells if one.threads == cell.threads) for cell in cells}

    def wanted(self, block: Block, trained: Sequence[Trained]) -> set[str]:
        """The keys of the cells that a block has to hold."""
        if block.number < self.rule.fewest:
            return set(self.references)
        samples = samples_before(block, trained)
        unsure = {key for key in self.references if self.needs_more(key, samples)}
        return unsure | {self.references[key].key() for key in unsure}

    def needs_more(self, key: str, samples: dict[str, list[Sample]]) -> bool:
        ratios, rule = self.log_ratios(key, samples), self.rule
        return 0 < len(ratios) < blocks_needed(ratios[: rule.fewest], rule.within, rule.fewest, rule.most)

    def log_ratios(self, key: str, samples: dict[str, list[Sample]]) -> list[float]:
        """By block. A reference that others are compared with has none; one that stands alone, its own times."""
        own, reference = samples.get(key, []), self.references[key].key()
        if reference != key:
            compared = compare(own, samples.get(reference, []))
            return list(map(math.log, compared.ratios)) if compared is not None and compared.blocks else []
        alone = sum(cell.key() == key for cell in self.references.values()) == 1
        return [math.log(clock_of(own)(each)) for each in own] if alone else []

    def record(self, cell: TrainCell) -> dict[str, Any]:
        """What records say of it."""
        reference = self.references[cell.key()].variant.name
        return {"asked": self.rule.within, "most": self.rule.most, "reference": reference}


def samples_before(block: Block, trained: Sequence[Trained]) -> dict[str, list[Sample]]:
    """The times of the whole blocks before this one, by the cell's key."""
    samples: dict[str, list[Sample]] = {}
    for each in sorted(trained, key=lambda each: each.block.number):
        if not (each.block.warm_up or each.cut_short) and each.block.number < block.number:
            samples.setdefault(each.cell.key(), []).extend(filter(None, [sample(each)]))
    return samples
