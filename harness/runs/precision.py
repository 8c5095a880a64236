"""measure.precision: the spread of the first six blocks says how many are needed; so many are measured and no more.

Each cell is compared with the first of its task that has as many threads, which is measured as often as any other needs
it. The number is computed once, from how far the ratios lie apart and never from where they lie, so it moves no ratio.
A cell that takes over 20 times as long as its reference is measured three times, and has no interval.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from harness.common.comparison import Sample, clock_of, compare, interval, sample_of
from harness.records.file import Record
from harness.runs.cells import TrainCell
from harness.runs.settings import Rule

FAR, BLOCKS_OF_THE_FAR = 20, 3


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


def wanted(
    cells: Sequence[TrainCell], block: int, rule: Rule | None, trained: Sequence[Record], *, warm_up: bool = False
) -> set[str]:
    """The keys of the cells that a block has to hold: all, or those whose ratios are not precise enough yet."""
    keys = {cell.key() for cell in cells}
    if rule is None or warm_up:
        return keys
    samples = samples_before(block, trained)
    if block < rule.fewest:
        return {cell.key() for cell in cells if not is_far(cell, cells, samples)}
    unsure = {cell.key() for cell in cells if needs_more(cell, cells, samples, rule)}
    return unsure | {reference_of(cell, cells).key() for cell in cells if cell.key() in unsure}


def reference_of(cell: TrainCell, cells: Sequence[TrainCell]) -> TrainCell:
    """What a cell is compared with: the first of its task that has as many threads."""
    return next(other for other in cells if other.threads == cell.threads)


def needs_more(cell: TrainCell, cells: Sequence[TrainCell], samples: Mapping[str, list[Sample]], rule: Rule) -> bool:
    ratios = log_ratios(cell, cells, samples)
    if is_far(cell, cells, samples):
        return False
    return 0 < len(ratios) < blocks_needed(ratios[: rule.fewest], rule.within, rule.fewest, rule.most)


def is_far(cell: TrainCell, cells: Sequence[TrainCell], samples: Mapping[str, list[Sample]]) -> bool:
    """Whether three blocks are enough, since it takes over 20 times as long as its reference."""
    ratios = log_ratios(cell, cells, samples)
    return len(ratios) >= BLOCKS_OF_THE_FAR and statistics.median(ratios) > math.log(FAR)


def log_ratios(cell: TrainCell, cells: Sequence[TrainCell], samples: Mapping[str, list[Sample]]) -> list[float]:
    """By block. A reference that others are compared with has none; one that is alone, its own times."""
    own, reference = samples.get(cell.key(), []), reference_of(cell, cells).key()
    if reference != cell.key():
        compared = compare(own, samples.get(reference, []))
        return list(map(math.log, compared.ratios)) if compared is not None and compared.blocks else []
    alone = sum(reference_of(other, cells).key() == cell.key() for other in cells) == 1
    return [math.log(clock_of(own)(sample)) for sample in own] if alone else []


def samples_before(block: int, trained: Sequence[Record]) -> dict[str, list[Sample]]:
    """The times of the whole blocks before this one, by the cell's key."""
    samples: dict[str, list[Sample]] = {}
    for record in sorted(trained, key=lambda record: int(record["block"])):
        if not record["warm_up"] and record["block_whole"] and record["block"] < block:
            samples.setdefault(record["run_key"], []).extend(filter(None, [sample_of(record)]))
    return samples


def precision_of(cell: TrainCell, cells: Sequence[TrainCell], rule: Rule | None) -> dict[str, Any] | None:
    """What records say of it."""
    if rule is None:
        return None
    return {"asked": rule.within, "most": rule.most, "reference": reference_of(cell, cells).variant.name}
