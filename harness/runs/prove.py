"""The proof of a run: the merges of all its trainers, judged task by task."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.proof import BY_DESIGN
from harness.proof.prove import Identity, MergeList, prove, tokens_left
from harness.runs import store
from harness.runs.cells import Reading, TrainCell
from harness.runs.outcome import STOPPED, Trained
from harness.worker import word_store
from harness.worker.calling import OWN
from harness.worker.merges_bytes import merges_sha256
from variants.contract import TieBreak

PROVABLE = ("ok", *STOPPED)
"""A trainer whose merges are judged was measured to the end, or stopped at limits.wall."""

CountWords = Callable[[TrainCell, Reading], Path | None]


def prove_all(trained: Iterable[Trained], count_words: CountWords) -> None:
    """Set the identity of every list of merges; `count_words` counts a corpus that is read in another way."""
    judged = [each for each in trained if each.answer["status"] in PROVABLE and each.merges is not None]
    for _, group in itertools.groupby(sorted(judged, key=task_of), task_of):
        prove_task(list(group))
    own_kinds: dict[tuple[str, str, int], str | None] = {}
    for each in judged:
        if each.identity is not None and each.identity.kind == BY_DESIGN:
            key = each.cell.reading.key, merges_sha256(each.merges or []), each.cell.min_count
            if key not in own_kinds:
                own_kinds[key] = kind_on_own_words(each, count_words)
            each.identity = replace(each.identity, of_own_words=own_kinds[key])


def task_of(trained: Trained) -> tuple[str, int, str]:
    """What decides, with the tie-break, which merges are right."""
    cell = trained.cell
    return cell.reading.key, cell.min_count, cell.extension.digest()


def prove_task(group: Sequence[Trained]) -> None:
    cell = group[0].cell
    words = store.words_of(cell.reading)
    if words is None:  # they may have been removed from the cache; the merges stay unproved
        return
    lists = [merge_list(each) for each in group]
    found = prove(word_store.read(words)[0], lists, cell.min_count, **cell.extension.keywords())
    for each, identity in zip(group, found, strict=True):
        each.identity = identity


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


def kind_on_own_words(trained: Trained, count_words: CountWords) -> str | None:
    """The kind of merges on the words of the trainer's own pattern; None if it has none."""
    pattern = (trained.answer.get("feeding") or {}).get("own_words")
    cell = trained.cell
    if pattern is None or cell.extension.is_asked:
        return None
    reading = Reading(cell.reading.file, OWN, replace(cell.reading.corpus, pattern=pattern, special_tokens=()))
    words = count_words(cell, reading)
    if words is None:
        return None
    listed = replace(merge_list(trained), tie_break=None, by_design=None)
    (found,) = prove(word_store.read(words)[0], [listed], cell.min_count)
    return in_words(found)


def in_words(identity: Identity) -> str:
    tie_break = f" ({identity.tie_break})" if identity.tie_break else ""
    return identity.kind.replace("_", " ") + tie_break


def count_tokens(trained: Iterable[Trained]) -> None:
    """Count the tokens that the merges leave of the text, once for equal merges."""
    counts: dict[tuple[str, str], int] = {}
    for each in trained:
        words = store.words_of(each.cell.reading)
        if words is None or each.merges is None or each.answer["status"] != "ok":
            continue
        key = each.cell.reading.key, merges_sha256(each.merges)
        if key not in counts:
            counts[key] = tokens_left(word_store.read(words)[0], each.merges)
        each.tokens = counts[key]
