"""Data sets: from a card to one plain file on this machine, its digest known, its slice cut.

A card (conf/data/NAME.yaml) says what a corpus is, where it comes from and what is known of it. Whatever the source,
the rest of the harness sees a file. A checksum that stands on a card holds wherever the file lies. What comes from
elsewhere is fetched by `python -m harness.corpora fetch NAME`, never by a run.

In: a card of conf/data/, or what data.path names. Out: a CorpusFile: path, digest, size, and where its members lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.common.errors import Refusal
from harness.corpora.cards import check_fact
from harness.corpora.counted_facts import counted_facts
from harness.corpora.files import CorpusFile, Part, check_readable, digest_of, hold_or_refuse
from harness.corpora.generated import as_said, is_table, parameters_of
from harness.corpora.hints import hints
from harness.corpora.local import local_corpus
from harness.corpora.slices import cut
from harness.corpora.sources import FIND, check_source

__all__ = ["CorpusFile", "Part", "digest_of", "prepare"]


def prepare(card: Mapping[str, Any], special_tokens: Sequence[str]) -> CorpusFile:
    """Find or make the file of a card, verify it, cut the slice that is asked for.

    Raises Refusal if it is not there (with where it is expected and how to get it), cannot be read, or differs from the
    checksum on its card.
    """
    card = as_said(card)
    kind, name = card["source"].get("kind"), card["name"]
    if is_table(card):
        from harness.corpora.word_tables import table_of  # late, as generators are

        table = table_of(card)
        hold_or_refuse(table.path, table.name)
        return replace(table, parameters=parameters_of(card))
    parts: tuple[Part, ...] = ()
    if card["path"] is not None:
        own_name, path, parts = local_corpus(card, special_tokens)
        if kind == "path":
            name = own_name
    elif kind in FIND:
        path = FIND[kind](card)
    else:
        check_source(card)
        raise Refusal(f"data={name} needs data.path=FILE")
    check_readable(path)
    hold_or_refuse(path, name)
    # The size first: it is known at once, and of some corpora it is all that is known.
    check_fact(name, path, card, "bytes", path.stat().st_size)
    whole = CorpusFile(name, path, path.stat().st_size, digest_of(path), parts=parts)
    check_fact(name, path, card, "sha256", whole.sha256)
    whole = replace(whole, facts=counted_facts(card, special_tokens))
    remarks = hints(path, name) if kind == "path" else ()
    return replace(cut(whole, card, special_tokens), parameters=parameters_of(card), remarks=remarks)
