"""A/A runs: one variant against itself in interleaved pairs, each sample in a fresh process as in any measurement."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import word_store
from harness.command_line import compose
from harness.comparison import Sample, sample_of
from harness.errors import UNMEASURED, Refusal
from harness.jobs import train_job
from harness.measure import measure
from harness.plan import TrainCell
from harness.registry import resolve
from harness.resolution import Pair
from harness.running import planned

USUAL = ("data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60")
"""A sample of some 100 ms, long enough for a clock and short enough for hundreds of pairs."""


class SelfComparison:
    """One cell, measured again and again; its words are counted once, untimed."""

    def __init__(self, overrides: Sequence[str], folder: Path) -> None:
        """Compose the cell: the usual one, with the overrides of whoever wants another."""
        cells, settings = planned(compose([*usual_beside(overrides), *overrides]) or [])
        if len(cells) != 1:
            raise Refusal(
                f"an A/A run is of one cell, and these are {len(cells)}; name one variant, one corpus, one width"
            )
        self.cell: TrainCell = cells[0]
        self.folder = folder
        words = folder / "words"
        counter = resolve(self.cell.count.counter.target)
        word_store.write(words, counter(self.cell.reading.corpus(), **self.cell.count.counter.params))
        cell = self.cell
        affinity = list(settings.affinity) if settings.affinity is not None else None
        self.job = {**train_job(cell, cell.variant, cell.num_merges, words, cell.interpreter), "affinity": affinity}

    def sample(self, block: int) -> Sample:
        """Measure it once. Raises Refusal if it cannot be measured: a comparison of failures says nothing."""
        answer = self.answer()
        found = sample_of(
            {
                **answer,
                "run_id": "self",
                "block": block,
                "threads": self.cell.threads,
                "seconds": {"total": answer.get("total")},
            }
        )
        if answer["status"] != "ok" or found is None:
            told = f"{answer['status']}: {answer['reason']}"
            raise Refusal(f"{self.cell.variant.name} could not be compared with itself ({told})", UNMEASURED)
        return found

    def answer(self) -> Mapping[str, Any]:
        output = self.folder / "sample"
        try:
            return measure(self.job, output, self.cell.limits)
        finally:
            shutil.rmtree(output, ignore_errors=True)

    def pair(self, block: int, order: random.Random) -> Pair:
        """Two samples of one block; chance decides which of the two that are the same is called the first."""
        pair = self.sample(block), self.sample(block)
        return pair if order.random() < 0.5 else (pair[1], pair[0])

    def described(self) -> dict[str, Any]:
        """What was compared with itself, for whoever reads the figures later."""
        file = self.cell.reading.file
        return {
            "variant": self.cell.variant.name,
            "params": dict(self.cell.variant.params),
            "threads": self.cell.threads,
            "data": {"name": file.name, "bytes": file.bytes, "sha256": file.sha256},
            "pattern": self.cell.reading.pattern_name,
            "vocab_size": self.cell.vocab_size,
        }


def usual_beside(overrides: Sequence[str]) -> list[str]:
    """What is usual, as far as the overrides say nothing of it.

    >>> usual_beside(["data=owt", "variant=flat"])
    ['vocab_size=1000', 'limits.wall=60']
    """
    said = {override.lstrip("+~").partition("=")[0].partition(".")[0] for override in overrides}
    return [override for override in USUAL if override.partition("=")[0].partition(".")[0] not in said]
