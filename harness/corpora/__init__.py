"""Data sets: from a card to one plain file on this machine, verified and sliced.

A card (conf/data/NAME.yaml) gives a corpus its source and facts. The checksum of a card holds wherever the file is.
A run downloads nothing; `python -m harness.corpora fetch NAME` does.

In: a card of conf/data/, or what data.path names. Out: a CorpusFile: path, digest, size, and where its members are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.corpora.cards import check_facts, counted_facts, find, is_table, parameters_of, with_changes_named
from harness.corpora.files import CorpusFile, Part, check_readable, cut, digest_of
from harness.corpora.local import local_corpus

__all__ = ["CorpusFile", "Part", "digest_of", "prepare"]


def prepare(card: Mapping[str, Any], special_tokens: Sequence[str]) -> CorpusFile:
    """Find or make the file of a card, verify it, and cut the slice that its `bytes`, `skip`, `documents` select.

    Raises Refusal if it is missing (with its place and how to get it), unreadable, or differs from its card.
    """
    card = with_changes_named(card)
    name = card["name"]
    if is_table(card):
        from harness.corpora.word_tables import table_of  # late: NumPy is slow to import

        table = table_of(card)
        return replace(table, parameters=parameters_of(card))
    parts: tuple[Part, ...] = ()
    if card["path"] is None:
        path = find(card)
    else:
        file_name, path, parts = local_corpus(card, special_tokens)
        name = file_name if card["source"].get("kind") == "path" else name
    check_readable(path)
    sha256 = check_facts(name, path, card)
    facts = counted_facts(card, special_tokens)
    whole = CorpusFile(
        name, path, path.stat().st_size, sha256, parameters=parameters_of(card), parts=parts, facts=facts
    )
    return cut(whole, card, special_tokens)
