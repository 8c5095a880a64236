"""Data sets: from a card to one plain file on this machine, verified and sliced.

A card (conf/data/NAME.yaml) gives a corpus its source and facts. The checksum of a card holds
wherever the file is. A run downloads nothing; `python -m harness.corpora fetch NAME` does.

In: a card of conf/data/, or what data.path names. Out: a CorpusFile: path, digest, size, and where
its members are; or the documents themselves, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from harness.common import cache
from harness.common.cards import (
    Addressed,
    DataCard,
    Generated,
    Library,
    Packaged,
    RareWords,
    YourWords,
    ZipfWords,
)
from harness.common.errors import UNMEASURED, Refusal
from harness.corpora import cards
from harness.corpora.files import CorpusFile, Part, card_slice, digest_of
from harness.corpora.local import local_corpus, named_places

__all__ = ["CorpusFile", "Part", "digest_of", "inputs_of", "is_table", "prepare"]


def prepare(card: DataCard, special_tokens: Sequence[str], errors: str = "strict") -> CorpusFile:
    """Find or make the file of a card, verify it, and cut the slice that its `bytes`, `skip`,
    `documents` select.

    Raises Refusal if it is missing (with its place and how to get it), unreadable, or differs from
    its card.
    """
    card = cards.with_changes_named(card)
    parameters = None
    if card.path is None and isinstance(card.source, Generated):
        parameters = msgspec.to_builtins(card.source)
        parameters = {"generator": parameters.pop("kind"), **parameters}
    if is_table(card):
        from harness.corpora.word_tables import word_table  # late, as few need it

        return replace(word_table(card), parameters=parameters)

    name, whole_path = card.name, ""
    parts: tuple[Part, ...] = ()
    if card.path is None:
        path = find(card)
    else:
        text, path, parts = local_corpus(card, special_tokens, errors)
        name, whole_path = name if card.facts.sha256 else text.name, text.whole_path
    whole = CorpusFile(
        name,
        path,
        path.stat().st_size,
        cards.check_facts(path, card),
        parameters=parameters,
        parts=parts,
        whole_path=whole_path,
        facts=cards.counted_facts(card, special_tokens),
    )
    return card_slice(whole, card, special_tokens)


def inputs_of(card: DataCard) -> list[Path]:
    """The files of this machine that a card reads, and the folders that it reads whole: no output
    may go there.
    """
    if card.path is not None:
        return named_places(card.path)
    if not isinstance(card.source, Addressed | Packaged):
        return []
    return [cache.place(cards.fetched_kind(card.name), card.name)]


def is_table(card: DataCard) -> bool:
    """Whether a card is a table of words that are counted already, from a generator or from a
    file.
    """
    return isinstance(card.source, YourWords | ZipfWords | RareWords)


def find(card: DataCard) -> Path:
    """The file of a card, generated if missing. Raises Refusal if it is not on this machine."""
    source, name = card.source, card.name
    if isinstance(source, Library):
        return cards.standard_library()
    if isinstance(source, Generated):
        from harness.corpora.random_text import text_file  # late: NumPy is slow to import

        return text_file(card)
    if not isinstance(source, Addressed | Packaged):
        raise Refusal(f"data={name} needs data.path=FILE")

    entry = cache.find(cards.fetched_kind(name), name)
    if entry is None:
        place = cache.place(cards.fetched_kind(name), name)
        advice = f"get it with python -m harness.corpora fetch {name}, or set data.path=FILE where you have it"
        raise Refusal(f"data={name}: not found in {place}, or damaged; {advice}", UNMEASURED)
    return Path(entry.path, source.file)
