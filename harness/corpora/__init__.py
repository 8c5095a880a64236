"""Data sets: from a card to one plain file on this machine, verified and sliced.

A card (conf/data/NAME.yaml) gives a corpus its source and facts. The checksum of a card holds wherever the file is.
A run downloads nothing; `python -m harness.corpora fetch NAME` does.

In: a card of conf/data/, or what data.path names. Out: a CorpusFile: path, digest, size, and where its members are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.common.errors import Refusal
from harness.corpora.cards import check_facts, counted_facts, find, is_table, parameters_of, with_changes_named
from harness.corpora.files import CorpusFile, Part, check_readable, cut, digest_of
from harness.corpora.local import COLUMN, kind_of, local_corpus

__all__ = ["CorpusFile", "Part", "digest_of", "prepare"]


def prepare(card: Mapping[str, Any], special_tokens: Sequence[str]) -> CorpusFile:
    """Find or make the file of a card, verify it, and cut the slice that its `bytes`, `skip`, `documents` select.

    Raises Refusal if it is missing (with its place and how to get it), unreadable, or differs from its card.
    """
    card = with_changes_named(card)
    name, own = card["name"], card["source"].get("kind") == "path"
    if is_table(card):
        from harness.corpora.word_tables import table_of  # late: NumPy is slow to import

        table = table_of(card)
        return replace(table, parameters=parameters_of(card))
    parts: tuple[Part, ...] = ()
    if card["path"] is not None:
        file_name, path, parts = local_corpus(card, special_tokens)
        name = file_name if own else name
    else:
        for key in ("column", "separator"):
            if card.get(key) is not None:
                raise Refusal(f"data.{key} has no effect on data={name}; it is for data.path=FILE, omit it")
        path = find(card)
    check_readable(path)
    facts = counted_facts(card, special_tokens)
    members = [part.path for part in parts] or [str(path)]
    remarks: tuple[str, ...] = ()
    if own and card.get("column") is None and any(kind_of(member, COLUMN) == ".csv" for member in members):
        remarks = (f"{name} is read as plain text; set data.column=NAME to train on one column",)
    whole = CorpusFile(
        name,
        path,
        path.stat().st_size,
        check_facts(name, path, card),
        parameters=parameters_of(card),
        parts=parts,
        facts=facts,
        remarks=remarks,
    )
    return cut(whole, card, special_tokens)
