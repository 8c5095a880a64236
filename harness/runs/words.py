"""The words and merges that other commands work on, named as for python -m harness.

The words are those that a run of the overrides would train on; merges are those of a file, or those that a variant
makes of the words.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.units import bytes_text, count_text
from harness.records.file import RunLog
from harness.runs.blocks import Session, count, now, train
from harness.runs.cells import Block, Settings, Task, TrainCell
from harness.runs.extension import EXTENDS
from harness.runs.plan import planned
from harness.tokenizers.merges_file import MergesFile
from harness.worker import word_store
from harness.worker.calling import OWN
from variants.contract import WordCounts


def counted_words(overrides: Sequence[str]) -> Path:
    """The folder of the words, in the cache or counted now. Raises Refusal if they cannot be counted."""
    return words_of(*only_cell(overrides))


def words_of(cell: TrainCell, settings: Settings) -> Path:
    """The folder of a cell's words, in the cache or counted now. Raises Refusal if they cannot be counted."""
    if cell.reading.words() is None:
        with temporary_folder() as folder:
            session = Session(settings, RunLog(None, now()), folder)
            counted = count(cell.count, Block(0), Task(0, [cell]), session)
        if counted.words is None:
            raise Refusal(f"{cell.count.label} failed: {counted.answer['reason']}", UNMEASURED)
    return cell.reading.folder


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
    return CorpusWords(word_store.read(words_of(cell, settings))[0], cell, tuple(overrides))


def data_override(data: str | None) -> list[str]:
    """The override of --data: a name of a card before a file of that name."""
    if data is None:
        return []
    if data not in registry.cards("data") and Path(data).exists():
        return [f"data.path={data}"]
    if registry.looks_like_a_file(data):
        raise Refusal(f"{data} is neither a file nor a data set")
    return [f"data={data}"]


def is_variant(name: str) -> bool:
    """Whether it names a variant by its card or its target; else it must be an existing file of merges."""
    if registry.variant(name) is not None:
        return True
    if Path(name).exists():
        return False
    if ":" in name:
        return True
    if registry.looks_like_a_file(name):
        raise Refusal(f"{name} is neither a file of merges nor a variant")
    raise Refusal(
        f"{registry.unknown('variant', name, registry.variants())}; a function of your own is written "
        "package.module:function, and a file of merges must exist"
    )


def merges_of_variant(name: str, words: CorpusWords, num_merges: int) -> MergesFile:
    """Train a variant on the words, in a process of its own as any measured one.

    `num_merges` is the number without vocab_size; without tie_break, ties are broken in the trainer's own default way.
    Raises Refusal if the trainer makes no merges.
    """
    variant = f"variant._target_={name}" if registry.variant(name) is None else f"variant={name}"
    overrides = [*words.overrides, "measure=proof", variant]
    if not words.sets("tie_break"):
        overrides.append(f"tie_break={OWN}")
    if not words.sets("vocab_size"):
        overrides.append(f"vocab_size={256 + len(words.cell.reading.corpus.special_tokens) + num_merges}")
    cell, settings = only_cell(overrides)
    with temporary_folder() as folder:
        session = Session(settings, RunLog(None, now()), folder)
        counted = count(cell.count, Block(0), Task(0, [cell]), session)
        trained = train(cell, Block(0), counted, session)
    if trained.answer["status"] != "ok" or trained.merges is None:
        raise Refusal(f"{name} made no merges ({trained.answer['reason']})", UNMEASURED)
    return MergesFile(trained.merges, f"trained with tie_break={trained.tie_break}, vocab_size={cell.vocab_size}")
