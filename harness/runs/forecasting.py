"""What a corpus of any size will need, from slices of it that are counted and trained on here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from harness.common.errors import UNMEASURED, Refusal
from harness.common.progress import bar
from harness.runs import store
from harness.runs.cells import Reading
from harness.runs.growth import KINDS, Expected, Growth, growth
from harness.runs.record import Record
from harness.runs.running import measured, planned, record
from harness.worker import word_store

BYTES_BESIDE_A_WORD = 16
"""Of a table of words: the offset and the count of each."""
Figures = dict[str, float]


class Slice(NamedTuple):
    """A measured slice of a corpus: the bytes of its text, and its figures by the names of `growth.KINDS`."""

    size: int
    figures: Figures


class Check(NamedTuple):
    """What the other slices predict for the largest, and what it had."""

    name: str
    expected: Expected
    found: float

    @property
    def held(self) -> bool:
        return self.expected.holds(self.found)


def measured_slices(overrides: Sequence[str], sizes: Sequence[str], folder: Path) -> list[Slice]:
    """Count and train on a slice of every size, as one run whose records are kept. Raises Refusal without two."""
    plan = planned(["-m", *overrides, f"data.bytes={','.join(sizes)}", "counts=fresh"])
    with measured(*plan, folder) as run, bar("reading the tables", 0, "words"):
        records = run.records()
        record(run, records)
        readings = {cell.reading.file.bytes: cell.reading for cell in run.cells}
    failed = [each for each in records if each["status"] != "ok"]
    if failed:
        raise Refusal(f"a slice could not be measured ({failed[0]['reason']}); leave it out with --sizes", UNMEASURED)
    slices = [slice_of(size, reading, records) for size, reading in sorted(readings.items())]
    if len(slices) < 2:
        raise Refusal("a forecast needs slices of two sizes; the corpus is too small, or say --sizes", UNMEASURED)
    return slices


def slice_of(size: int, reading: Reading, records: Sequence[Record]) -> Slice:
    of_it = [each for each in records if each["data"]["bytes"] == size and not each["warm_up"]]
    (counted,) = ([each for each in of_it if each["cell"] == kind] for kind in ("count",))
    trained = [each for each in of_it if each["cell"] == "train"]
    words = store.words_of(reading)
    if words is None or not counted or not trained:
        raise Refusal("the words of a slice were removed meanwhile; run the same again", UNMEASURED)
    word_counts, _ = word_store.read(words)
    repeated = int(np.count_nonzero(np.asarray(word_counts.counts) > 1))
    table = len(word_counts.data) + BYTES_BESIDE_A_WORD * len(word_counts)
    values = [
        len(word_counts),
        repeated,
        table,
        least(counted, lambda each: each["seconds"]["total"]),
        least(counted, memory_of),
        least(trained, training_seconds),
        least(trained, memory_of),
    ]
    return Slice(size, {kind.name: float(value) for kind, value in zip(KINDS, values, strict=True)})


def least(records: Sequence[Record], value: Any) -> float:
    """Of several measurements of one thing the one that was disturbed the least."""
    return float(min(map(value, records)))


def training_seconds(record: Record) -> float:
    seconds = record["seconds"]
    return float(seconds["total"] - seconds.get("read", 0.0) - seconds.get("count", 0.0))


def memory_of(record: Record) -> int:
    """Without mapped files, whose pages the system can have back."""
    return int(record["peak_private_bytes"])


def grown(slices: Sequence[Slice]) -> dict[str, Growth]:
    """The growth of every figure that the slices tell, by name."""
    found = {kind.name: growth(kind, [(each.size, each.figures[kind.name]) for each in slices]) for kind in KINDS}
    return {name: each for name, each in found.items() if each is not None}


def checked(slices: Sequence[Slice]) -> list[Check]:
    """The largest slice held against what the others predict for it; nothing without three."""
    *others, largest = slices
    if len(others) < 2:
        return []
    return [Check(name, each.expected(largest.size), largest.figures[name]) for name, each in grown(others).items()]
