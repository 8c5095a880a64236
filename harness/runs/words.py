"""The words that other commands work on: those that a run of the overrides of python -m harness would train on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.units import bytes_text, count_text
from harness.records.file import RunLog
from harness.runs.blocks import Session, count, now
from harness.runs.cells import Block, Settings, Task, TrainCell
from harness.runs.extension import EXTENDS
from harness.runs.plan import planned
from harness.worker import exchange
from variants.contract import WordCounts


def counted_words(overrides: Sequence[str]) -> tuple[WordCounts, dict[str, Any]]:
    """The words that the overrides name, in the cache or counted now. Raises Refusal if they cannot be counted."""
    return words_of(*only_cell(overrides))


def words_of(cell: TrainCell, settings: Settings) -> tuple[WordCounts, dict[str, Any]]:
    if cell.reading.words() is None:
        with temporary_folder() as folder:
            session = Session(settings, RunLog(None, now()), folder)
            counted = count(cell.count, Block(0), Task(0, [cell]), session)
        if counted.words is None:
            raise Refusal(f"{cell.count.label} failed: {counted.answer['reason']}", UNMEASURED)
    return exchange.read_words(cell.reading.folder)


def only_cell(overrides: Sequence[str]) -> tuple[TrainCell, Settings]:
    """The one cell that these overrides make, and their settings. Raises Refusal if they read several corpora."""
    plan = planned(overrides)
    if len({cell.reading.key for cell in plan.cells}) != 1:
        raise Refusal("pass one data set at a time, read in one way")
    return plan.cells[0], plan.settings


class CorpusWords(NamedTuple):
    """The words with their counts, the cell that trains on them, and the overrides that named it."""

    word_counts: WordCounts
    cell: TrainCell
    overrides: tuple[str, ...]

    def sets(self, key: str) -> bool:
        """Whether the overrides set this key."""
        return any(override.lstrip("+").partition("=")[0] == key for override in self.overrides)

    def described(self) -> str:
        """The data set in a line, for people."""
        reading, words = self.cell.reading, f"{count_text(len(self.word_counts))} words"
        if reading.file.table:
            return f"{reading.file.name}: {words}, given with their counts"
        special_tokens = " ".join(reading.corpus.special_tokens) or "none"
        return (
            f"{reading.file.name}: {bytes_text(reading.file.bytes)}, {words}, pattern {reading.pattern_name}, "
            f"special tokens {special_tokens}"
        )


def add_words_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name words; parse with `parse_intermixed_args`, for overrides may be anywhere."""
    parser.add_argument(
        "overrides", metavar="NAME=VALUE", nargs="*", help="as for python -m harness: pattern=gpt4, vocab_size=1000 ..."
    )
    parser.add_argument("--data", metavar="NAME|FILE", help="a data set or a file (default: that of python -m harness)")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="one more NAME=VALUE")


def corpus_words(options: argparse.Namespace) -> CorpusWords:
    """The words that the options name, in the cache or counted now."""
    overrides = [*data_override(options.data), *options.overrides, *options.set]
    for override in overrides:
        if "=" not in override:
            raise Refusal(f"{override!r} is not of the form NAME=VALUE")
    # No variant is run, so any that extends will do.
    extender = next(card.name for card in registry.variants().values() if EXTENDS in card.tags)
    cell, settings = only_cell([f"variant={extender}", *overrides])
    return CorpusWords(words_of(cell, settings)[0], cell, tuple(overrides))


def data_override(data: str | None) -> list[str]:
    """The override of --data: a name of a card before a file of that name."""
    if data is None:
        return []
    if data not in registry.cards("data") and Path(data).exists():
        return [f"data.path={data}"]
    if registry.looks_like_a_file(data):
        raise Refusal(f"{data} is neither a file nor a data set")
    return [f"data={data}"]
