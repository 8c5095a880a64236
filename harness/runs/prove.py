"""The proof of merges as soon as they are there: judged once for each list of a task, by the compiled replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.proof import BY_DESIGN
from harness.proof.prove import Identity, MergeList, prove, tokens_left
from harness.runs import store
from harness.runs.cells import Reading, TrainCell
from harness.runs.outcome import Trained
from harness.runs.resume import STOPPED
from harness.worker import word_store
from harness.worker.calling import OWN
from harness.worker.merges_bytes import merges_sha256
from variants.contract import TieBreak

CountWords = Callable[[TrainCell, Reading], Path | None]


class Prover:
    """Judges lists of merges; a list that was judged in this task is not judged again."""

    def __init__(self, count_words: CountWords, *, tokens: bool) -> None:
        self.count_words = count_words
        self.tokens = tokens
        self.judged: dict[tuple[Any, ...], Identity] = {}
        self.left: dict[str, int] = {}

    def prove(self, trained: Trained) -> None:
        """Set the identity of the merges, and how many tokens they leave if that is wanted.

        Merges of a trainer that failed are not judged, nor those whose words are gone from the cache.
        """
        words = store.words_of(trained.cell.reading)
        if trained.answer["status"] not in ("ok", *STOPPED) or trained.merges is None or words is None:
            return
        listed, sha256 = merge_list(trained), merges_sha256(trained.merges)
        key = (sha256, listed.needed, listed.tie_break, listed.by_design, trained.cell.min_count)
        if key not in self.judged:
            extending = trained.cell.extension.keywords()
            (identity,) = prove(word_store.read(words)[0], [listed], trained.cell.min_count, **extending)
            if identity.kind == BY_DESIGN:
                identity = replace(identity, of_own_words=self.kind_on_own_words(trained))
            self.judged[key] = identity
        trained.identity = self.judged[key]
        if self.tokens and trained.answer["status"] == "ok":
            if sha256 not in self.left:
                self.left[sha256] = tokens_left(word_store.read(words)[0], trained.merges)
            trained.tokens = self.left[sha256]

    def kind_on_own_words(self, trained: Trained) -> str | None:
        """The kind of merges on the words of the trainer's own pattern; None if it has none."""
        pattern = (trained.answer.get("feeding") or {}).get("own_words")
        cell = trained.cell
        if pattern is None or cell.extension.is_asked:
            return None
        reading = Reading(cell.reading.file, OWN, replace(cell.reading.corpus, pattern=pattern, special_tokens=()))
        words = self.count_words(cell, reading)
        if words is None:
            return None
        listed = replace(merge_list(trained), tie_break=None, by_design=None)
        (found,) = prove(word_store.read(words)[0], [listed], cell.min_count)
        return in_words(found)


def merge_list(trained: Trained) -> MergeList:
    cell, tie_break = trained.cell, trained.tie_break
    return MergeList(
        f"{cell.variant.name} on {cell.reading.file.name}",
        trained.merges or [],
        cell.num_merges,
        None if tie_break is None else TieBreak(tie_break),
        trained.answer["status"] == "ok",
        (trained.answer.get("feeding") or {}).get("by_design"),
    )


def in_words(identity: Identity) -> str:
    tie_break = f" ({identity.tie_break})" if identity.tie_break else ""
    return identity.kind.replace("_", " ") + tie_break
