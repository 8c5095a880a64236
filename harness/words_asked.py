"""The words that a command about merges is asked to look at: one data set, said as python -m harness is told it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness import registry, word_store
from harness.counted_words import only_cell, words_of
from harness.errors import Refusal
from harness.plan import Reading, TrainCell
from harness.units import bytes_text, count_text
from variants.contract import WordCounts


class WordsAsked(NamedTuple):
    """The words with their counts, how they came about, and all that was composed; `said` is what was said of it."""

    word_counts: WordCounts
    cell: TrainCell
    config: Mapping[str, Any]
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
        special_tokens = " ".join(self.reading.special_tokens) or "none"
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
            "special_tokens": list(self.reading.special_tokens),
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
    cell, config = only_cell(said)
    return WordsAsked(word_store.read(words_of(cell, config))[0], cell, config, tuple(said))


def data_override(data: str | None) -> list[str]:
    """What --data means: a name of a card before a file of that name."""
    if data is None:
        return []
    if data in registry.cards("data") or not Path(data).exists():
        return [f"data={data}"]
    return [f"data.path={data}"]
