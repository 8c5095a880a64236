"""What the samples of a run say of its cells' ratios, for the rule of precision.py."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from harness.common.comparison import Sample, sample_of
from harness.runs.cells import TrainCell
from harness.runs.outcome import Block, Trained
from harness.runs.precision import GAVE_UP, Known, Precision, Rule
from harness.runs.record_of import train_record


class RatiosKnown:
    """Which cells are still to be run, and what is known of each: a function of what was measured."""

    def __init__(self, rule: Rule, cells: Sequence[TrainCell]) -> None:
        self.rule = rule
        self.names = {cell.key(): cell.variant.name for cell in cells}
        questions = {cell.key(): question_of(cell) for cell in cells}
        self.precision = Precision(rule, list(questions), questions.__getitem__)
        self._samples: dict[int, tuple[Trained, Sample | None]] = {}

    def wanted(self, block: Block, trained: Sequence[Trained]) -> set[str]:
        """The keys of the cells that a block has to hold, by the blocks before it."""
        return {str(key) for key in self.precision.wanted(block.number, self.samples(trained))}

    def foreseen(self, trained: Sequence[Trained]) -> dict[str, int]:
        """In how many blocks each cell will probably have run, by its key."""
        return {str(key): blocks for key, blocks in self.precision.foreseen(self.samples(trained)).items()}

    def told(self, trained: Sequence[Trained]) -> dict[str, dict[str, Any]]:
        """What the records of each cell say of it, by its key."""
        return {
            str(key): {
                "asked": self.rule.within,
                "most": self.rule.most,
                "reference": self.names[str(reference)],
                **self.in_the_end(known, trained)._asdict(),
            }
            for key, (known, reference) in self.precision.all_known(self.samples(trained)).items()
        }

    def in_the_end(self, known: Known, trained: Sequence[Trained]) -> Known:
        """The same; where disturbed blocks do not count, the last block may come before the last look."""
        last = any(each.block == Block(self.rule.most - 1) for each in trained)
        return known._replace(stopped=GAVE_UP) if known.stopped is None and last else known

    def samples(self, trained: Sequence[Trained]) -> dict[Hashable, list[Sample]]:
        """The times of whole blocks after warm-up, by the cell's key."""
        found: dict[Hashable, list[Sample]] = {}
        for each in trained:
            if each.block.warm_up or each.cut_short or each.answer["status"] != "ok":
                continue
            sample = self.sample(each)
            if sample is not None:
                found.setdefault(each.cell.key(), []).append(sample)
        return {key: sorted(listed, key=lambda sample: sample.block) for key, listed in found.items()}

    def sample(self, trained: Trained) -> Sample | None:
        """The sample, as tables make it of the record."""
        if id(trained) not in self._samples:
            self._samples[id(trained)] = trained, sample_of(train_record(trained, {}))
        return self._samples[id(trained)][1]


def question_of(cell: TrainCell) -> Hashable:
    """What cells have in common that are compared with each other."""
    asked = cell.vocab_size, cell.tie_break, cell.min_count, cell.threads, cell.extension.digest()
    return cell.reading.key, *asked
