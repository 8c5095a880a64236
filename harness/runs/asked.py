"""What commands about words and merges are asked to look at, said as python -m harness is told it.

The words are those that a run of the overrides would train on; merges are those in a file, or those that a variant
comes to on the words.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.units import bytes_text, count_text
from harness.runs import store
from harness.runs.cells import Reading, TrainCell, count_key
from harness.runs.extension import EXTENDS
from harness.runs.resume import Block
from harness.runs.running import planned
from harness.runs.schedule import Run
from harness.runs.settings import Settings
from harness.tokenizers.merges_file import MergesFile
from harness.worker import word_store
from harness.worker.calling import OWN
from variants.contract import WordCounts


def counted_words(overrides: Sequence[str]) -> Path:
    """The folder of the words: kept ones, or counted now and kept."""
    return words_of(*only_cell(overrides))


def words_of(cell: TrainCell, settings: Settings) -> Path:
    """The folder of a cell's words. Raises Refusal if they cannot be had."""
    words = store.words_of(cell.reading)
    if words is not None:
        return words
    if cell.reading.file.table:
        raise Refusal(f"{cell.reading.file.name}: its words were damaged meanwhile; run the same again", UNMEASURED)
    if not cell.counting_chosen:  # nobody is interested in the time
        cell = replace(cell, count=replace(cell.count, counter=registry.default_counter()))
    with temporary_folder() as folder:
        run = Run([cell], settings, folder)
        counted = run.count(cell.count, Block(0))
    if counted.words is None:
        raise Refusal("; ".join(run.disagreements or [str(counted.failed_by)]), UNMEASURED)
    return counted.words


def only_cell(overrides: Sequence[str]) -> tuple[TrainCell, Settings]:
    """The one cell that these overrides make, and their settings. Raises Refusal if its words are not the only."""
    cells, settings = planned(overrides)
    if len({cell.reading.key for cell in cells}) != 1:
        raise Refusal("name one data set at a time, read in one way")
    return cells[0], settings


class WordsAsked(NamedTuple):
    """The words with their counts, and the cell that trains on them; `said` is what was said of it."""

    word_counts: WordCounts
    cell: TrainCell
    said: tuple[str, ...]

    @property
    def reading(self) -> Reading:
        return self.cell.reading

    def is_said(self, key: str) -> bool:
        return any(override.lstrip("+").partition("=")[0] == key for override in self.said)

    def described(self) -> str:
        """The data set in a line, for people."""
        file, words = self.reading.file, f"{count_text(len(self.word_counts))} words"
        if file.table:
            return f"{file.name}: {words}, given with their counts"
        special_tokens = " ".join(self.reading.corpus.special_tokens) or "none"
        return (
            f"{file.name}: {bytes_text(file.bytes)}, {words}, pattern {self.reading.pattern_name}, "
            f"special tokens {special_tokens}"
        )

    def record(self) -> dict[str, Any]:
        """The data set as records tell it."""
        file = self.reading.file
        return {
            "name": file.name,
            "sha256": file.sha256,
            "bytes": file.bytes,
            "words": len(self.word_counts),
            "pattern": None if file.table else self.reading.pattern_name,
            "special_tokens": list(self.reading.corpus.special_tokens),
        }


def add_words_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what says the words; read it with `parse_intermixed_args`, for overrides may stand anywhere."""
    parser.add_argument(
        "overrides", metavar="NAME=VALUE", nargs="*", help="as for python -m harness: pattern=gpt4, vocab_size=1000 ..."
    )
    parser.add_argument("--data", metavar="NAME|FILE", help="a data set or a file (default: that of python -m harness)")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="one more NAME=VALUE")


def words_asked(asked: argparse.Namespace) -> WordsAsked:
    """Count the words that are asked for, or take the kept ones."""
    said = [*data_override(asked.data), *asked.overrides, *asked.set]
    for override in said:
        if "=" not in override:
            raise Refusal(f"{override!r} is not of the form NAME=VALUE")
    # No variant is run, so any that extends will do.
    extender = next(card.name for card in registry.variants().values() if EXTENDS in card.tags)
    cell, settings = only_cell([f"variant={extender}", *said])
    return WordsAsked(word_store.read(words_of(cell, settings))[0], cell, tuple(said))


def data_override(data: str | None) -> list[str]:
    """What --data means: a name of a card before a file of that name."""
    if data is None:
        return []
    if data not in registry.cards("data") and Path(data).exists():
        return [f"data.path={data}"]
    if registry.looks_like_a_file(data):
        raise Refusal(f"there is no file {data}, and no data set of that name")
    return [f"data={data}"]


def is_variant(name: str) -> bool:
    """Whether it names a variant by its card or its target; else it must be a file of merges that is there."""
    if registry.variant(name) is not None:
        return True
    if Path(name).exists():
        return False
    if ":" in name:
        return True
    if registry.looks_like_a_file(name):
        raise Refusal(f"there is no file of merges {name}, and no variant of that name")
    raise Refusal(
        f"{registry.unknown('variant', name, registry.variants())}; a function of your own is written "
        "package.module:function, and there is no file of merges of that name"
    )


def merges_of_variant(name: str, words: WordsAsked, num_merges: int) -> MergesFile:
    """Train a variant on the words, in a process of its own as any measured one.

    `num_merges` is the number to ask for where vocab_size is not said. Where tie_break is not said either, it is the
    one that is the trainer's own by default. Raises Refusal if it comes to no merges.
    """
    card = registry.variant(name)
    said = [*words.said, "measure=proof", f"variant._target_={name}" if card is None else f"variant={name}"]
    if not words.is_said("tie_break"):
        said.append(f"tie_break={OWN}")
    if not words.is_said("vocab_size"):
        said.append(f"vocab_size={256 + len(words.reading.corpus.special_tokens) + num_merges}")
    cell, settings = only_cell(said)
    with temporary_folder() as folder:
        run = Run([cell], settings, folder)
        run.counts[count_key(cell.count)] = run.count(cell.count, Block(0))
        trained = run.train(cell, Block(0))
    if trained.answer["status"] != "ok" or trained.merges is None:
        raise Refusal(f"{name} made no merges ({trained.answer['reason']})", UNMEASURED)
    return MergesFile(trained.merges, f"trained with tie_break={trained.tie_break}, vocab_size={cell.vocab_size}")
