"""Words for trainers whose own counter was over the wall limit: kept ones, or those that a compiled counter makes.

So a corpus that is too large for one counter still has a row for every trainer. Nobody is measured here.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness import kept, registry
from harness.jobs import count_job
from harness.measure import Limits, measure
from harness.outcome import Counted
from harness.plan import CountCell

if TYPE_CHECKING:
    from harness.schedule import Run

LENDER = "compiled"
"""The tag of counters that are asked for words where another was too slow."""
PATIENCE = 10
"""How many times limits.wall what is not measured may take: trainers run for a reference, counters for their words."""


def patient(limits: Limits) -> Limits:
    wall = limits.wall_seconds
    return replace(limits, wall_seconds=wall and wall * PATIENCE)


def with_borrowed_words(run: Run, counted: Counted, cell: CountCell) -> Counted:
    """What trainers go on with: the counter's own words, or another's where it was over the wall limit."""
    if counted.answer["status"] != "timeout":
        return counted
    words = kept.words_of(cell.reading) or made_by_another(run, cell)
    if words is None:
        return counted
    return Counted({"status": "ok", "reason": None}, reused=True, words=words)


def made_by_another(run: Run, cell: CountCell) -> Path | None:
    """Words from a quicker counter with all processors, tried once in a run; None if it fails too."""
    lenders = [card for card in registry.counters().values() if LENDER in card.tags and card.name != cell.counter.name]
    if not lenders or cell.reading.key() in run.without_words:
        return None
    run.without_words.add(cell.reading.key())
    card, threads, output = lenders[0], os.cpu_count() or 1, run.next_folder()
    lent = replace(cell, counter=card, threads=threads, limits=patient(cell.limits))
    label = f"words of {cell.reading.file.name} ({card.name})"
    with run.display.showing(label, cell.reading.file.bytes, "bytes") as on_progress:
        answer = measure(count_job(lent, run.affinity), output, lent.limits, on_progress)
    words = run.keep(lent, answer, output / "words") if answer["status"] == "ok" else None
    shutil.rmtree(output)
    return words
