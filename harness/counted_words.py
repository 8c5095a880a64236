"""The words that a run of some overrides would train on, for commands that look at words instead of training."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import kept, registry
from harness.command_line import compose
from harness.errors import UNMEASURED, Refusal
from harness.outcome import Block
from harness.plan import TrainCell, cells_of
from harness.schedule import Run
from harness.settings import settings_of

# What counts unless counting=NAME is said: nobody is interested in the time.
COUNTER = "native"


def counted_words(said: Sequence[str]) -> Path:
    """The folder of the words: kept ones, or counted now and kept."""
    return words_of(*only_cell(said))


def words_of(cell: TrainCell, config: Mapping[str, Any]) -> Path:
    """The folder of a cell's words. Raises Refusal if they cannot be had."""
    words = kept.words_of(cell.reading)
    if words is not None and config["counts"] == "kept":
        return words
    if cell.reading.file.table:
        raise Refusal(f"{cell.reading.file.name}: its words were damaged meanwhile; run the same again", UNMEASURED)
    if config["counting"]["_target_"] is None:
        cell = replace(cell, count=replace(cell.count, counter=registry.counters()[COUNTER]))
    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        run = Run([cell], settings_of(config), Path(folder))
        counted = run.count(cell.count, Block(0))
    if counted.words is None:
        raise Refusal("; ".join(run.disagreements or [str(counted.failed_by)]), UNMEASURED)
    return counted.words


def only_cell(said: Sequence[str]) -> tuple[TrainCell, dict[str, Any]]:
    """The one cell that these overrides make, and their configuration. Raises Refusal if its words are not the only."""
    composed = compose(said) or []
    cells = [(cell, each.config) for each in composed for cell in cells_of(each.config, each.said)]
    if len({cell.reading.key() for cell, _ in cells}) != 1:
        raise Refusal("name one data set at a time, read in one way")
    return cells[0]
