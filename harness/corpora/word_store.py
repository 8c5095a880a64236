"""Tables of words that are counted already, generated or from files, as word stores of the cache.

A count of 0 drops a word, and the counts of repeated words are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from harness.common import cache
from harness.common.cards import DataCard, Generated, YourWords
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora.cards import difference
from harness.corpora.files import CorpusFile, digest_of
from harness.corpora.local import members_of, name_of
from harness.corpora.word_tables import items_in
from harness.worker import exchange
from variants.contract import WordCounts


def word_table(card: DataCard) -> CorpusFile:
    """The table of a card as a word store. Raises Refusal if it is unreadable or differs from the
    card.
    """
    name = card.name
    for slicing in ("bytes", "skip", "documents"):
        if getattr(card, slicing) is not None:
            raise Refusal(
                f"data={name} is a table of words, not a text that data.{slicing} can cut; omit it"
            )

    if card.path is not None:
        paths = members_of(card.path)
        key = cache.key_of(exchange.FORMAT, *map(digest_of, paths))
        entry = cache.kept(
            "counts", key, lambda part: exchange.write_words(part, from_files(paths))
        )
        name = name_of(card.path, paths) if isinstance(card.source, YourWords) else name
    elif isinstance(card.source, Generated):
        entry = generated(card)
    else:
        raise Refusal(f"data={name} needs data.path=FILE, a table of words with their counts")

    word_counts, manifest = exchange.read_words(entry.path)
    actual = {**manifest, "bytes": len(word_counts.data)}
    if wrong := difference(card.facts, actual):
        raise Refusal(
            f"data={name}: its table {wrong}; use another table with data=words", UNMEASURED
        )
    return CorpusFile(name, entry.path, actual["bytes"], manifest["sha256"], table=True)


def generated(card: DataCard) -> cache.Entry:
    """The generated table of a card, made if missing."""
    from harness.corpora import random_text  # late: NumPy is slow to import

    def make(folder: Path) -> dict[str, Any]:
        return exchange.write_words(folder, random_text.words_of(card))

    key = cache.key_of(exchange.FORMAT, random_text.VERSION, msgspec.to_builtins(card.source))
    return cache.kept("counts", key, make)


def from_files(paths: Sequence[Path]) -> WordCounts:
    """The tables in files as one. Raises Refusal if one is not a table of words."""
    try:
        return WordCounts.from_items(chain.from_iterable(map(items_in, paths)))
    except ValueError as error:
        raise Refusal(f"{', '.join(map(str, paths))}: {error}", UNMEASURED) from error
