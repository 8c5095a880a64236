"""Giving every trained cell of a run its verdict: corpus by corpus, with the reference that is kept or can be made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.common import registry
from harness.common.progress import bar
from harness.common.registry import OUTSIDE, VariantCard
from harness.proof import compiled_replay
from harness.proof.compiled_replay import tokens_left
from harness.proof.true_counts import Replay, replay
from harness.runs import store
from harness.runs.cells import Reading, TrainCell
from harness.runs.extension import EXTENDS
from harness.runs.identity import Replays, identify, identity_of, is_asked, verdict_of
from harness.runs.outcome import STOPPED, Trained
from harness.runs.record_keys import BY_DESIGN, WRONG
from harness.runs.smallest import smallest_text
from harness.runs.store import Reference
from harness.runs.verdict import Claim, find_reference, reach, verdict
from harness.worker import word_store
from harness.worker.calling import OWN
from harness.worker.merges_bytes import merges_sha256
from variants.contract import Merge, TieBreak, Unavailable, WordCounts

# A trainer whose merges are to be proved must have been measured to the end or stopped by the wall limit.
PROVABLE = ("ok", *STOPPED)

LONG_BYTES = 1_000_000
"""From here on the longest word is replayed without the compiled replay, too, before another trainer is run."""
REPLAY = "replay"

CountWords = Callable[[TrainCell, Reading], Path | None]
RunJudge = Callable[[TrainCell, VariantCard, int], Claim | None]


def prove_all(trained: Sequence[Trained], run_judge: RunJudge, count_words: CountWords, interrupted: bool) -> list[str]:
    """Set the verdicts; returns a sentence for each corpus on which families disagree.

    `count_words` is asked for the words of a corpus read in another way.

    After an interruption nothing more is run and nothing kept: what is there has to do.
    """
    replays = Replays()
    groups: dict[tuple[str, str, int, str], list[Trained]] = {}
    for each in trained:
        if each.answer["status"] in PROVABLE and each.merges is not None and each.tie_break is not None:
            cell = each.cell
            asked = cell.reading.key, each.tie_break, cell.min_count, cell.extension.digest()
            groups.setdefault(asked, []).append(each)
    sentences = [
        sentence
        for (_, tie_break, _, _), group in groups.items()
        for sentence in prove_group(group, tie_break, run_judge, None if interrupted else replays)
    ]
    if not interrupted:
        identify_all(trained, replays, count_words)
    return sentences


def count_tokens(trained: Sequence[Trained]) -> None:
    """Count the tokens that the merges leave of the text, once for equal merges."""
    known: dict[tuple[str, str], int] = {}
    for each in trained:
        words = store.words_of(each.cell.reading)
        if words is None or each.merges is None or each.answer["status"] != "ok":
            continue
        key = each.cell.reading.key, merges_sha256(each.merges)
        if key not in known:
            known[key] = tokens_left(word_store.read(words)[0], each.merges)
        each.tokens = known[key]


def identify_all(trained: Sequence[Trained], replays: Replays, count_words: CountWords) -> None:
    """Say of outside trainers how far their merges are those that are defined; the verdict where nothing else has.

    The smallest text on which a trainer is wrong is looked for once, however often it was wrong: that takes seconds.
    """
    smallest: dict[str, dict[str, Any] | None] = {}
    for each in filter(is_asked, trained):
        if store.words_of(each.cell.reading) is None:
            continue  # the cache was emptied meanwhile: there is nothing to replay on
        each.identity = identify(each, replays)
        if each.identity.kind == BY_DESIGN:
            each.identity = replace(each.identity, of_own_words=class_of_own_words(each, count_words))
        if each.identity.kind == WRONG and each.answer.get("from_file"):
            key = each.cell.key()
            if key not in smallest:
                smallest[key] = smallest_text(each.cell)
            each.identity = replace(each.identity, smallest=smallest[key])
        if each.tie_break is None:
            each.verdict = verdict_of(each.identity, each.verdict)


def class_of_own_words(trained: Trained, count_words: CountWords) -> str | None:
    """The class of merges on the words that their trainer cuts by a pattern of its own; None where it has none."""
    pattern = (trained.answer.get("feeding") or {}).get("own_words")
    if pattern is None or trained.cell.extension.is_asked:
        return None
    cell, merges = trained.cell, trained.merges or []
    reading = Reading(cell.reading.file, OWN, replace(cell.reading.corpus, pattern=pattern, special_tokens=()))
    key = reading.key, merges_sha256(merges), cell.min_count
    if key not in _own_classes:
        words = count_words(cell, reading)
        if words is None:
            return None
        with bar(f"replaying {cell.variant.name} on its own words", len(merges), "merges") as on_progress:
            replayed = replay(word_store.read(words)[0], merges, min_count=cell.min_count, on_progress=on_progress)
        found = identity_of(replayed, cell.num_merges)
        tie_break = f" ({found.tie_break})" if found.tie_break else ""
        _own_classes[key] = found.kind.replace("_", " ") + tie_break
    return _own_classes[key]


_own_classes: dict[tuple[str, str, int], str] = {}


def judges_of(cell: TrainCell) -> Iterator[VariantCard]:
    """The variants to ask for a reference of a cell; their cards are read when the first is wanted."""
    for judge in registry.judges():
        if not cell.extension.is_asked or EXTENDS in judge.tags:
            yield judge


def prove_group(group: Sequence[Trained], tie_break: str, run_judge: RunJudge, replays: Replays | None) -> list[str]:
    """Hold the cells that answer one question against its reference, which is made if need be.

    Without `replays`, after an interruption, nothing is made but what the group itself agrees on, and that not kept.
    """
    claims = [claim_of(trained) for trained in group]
    longest = max((trained.cell for trained in group), key=lambda cell: cell.num_merges)
    cell = replace(longest, tie_break=tie_break)
    asked = cell.reading, cell.tie_break, cell.min_count
    reference = believable(cell, store.reference(*asked, cell.extension))
    needed = max(map(reach, claims))
    disagreements = []
    if reference is None or not reference.covers(needed):
        judges = judges_of(cell) if replays is not None else ()
        heard = claims if replays is None else [*claims, *replayed_claims(group, tie_break, replays)]
        made, disagree = find_reference(heard, judges, lambda judge, size: run_judge(cell, judge, size))
        if made is not None:
            reference = made
            _believed.add(belief(cell, made))
            if replays is not None:
                store.keep_reference(*asked, made, cell.extension)
        elif disagree:
            names = ", ".join(dict.fromkeys(claim.variant for claim in claims))
            disagreements.append(
                f"{cell.reading.file.name}: {names} and the trainers they were compared with disagree, and no "
                "two families agree; none of these merges is proved"
            )
    for trained, claim in zip(group, claims, strict=True):
        trained.verdict = verdict(claim, reference)
    return disagreements


def belief(cell: TrainCell, reference: Reference) -> tuple[Any, ...]:
    """What is remembered of a reference that was found right."""
    asked = cell.tie_break, cell.min_count, cell.extension.digest(), cell.reading.key
    return (*asked, merges_sha256(reference.merges), reference.exhausted)


def believable(cell: TrainCell, kept: Reference | None) -> Reference | None:
    """A kept reference, if replaying finds it right; once in a command. Whoever runs code here could have written it.

    Without the compiled replay it is believed if no measured process has touched it (measure/kept.py).
    """
    if kept is None:
        return None
    known = belief(cell, kept)
    if known not in _believed:
        words = store.words_of(cell.reading)
        if words is None:  # the cache was emptied meanwhile
            return None
        asked_for = len(kept.merges) + kept.exhausted
        with contextlib.suppress(Unavailable), bar("replaying the reference", asked_for, "merges") as on_progress:
            if not holds(cell, kept.merges, asked_for, word_store.read(words)[0], on_progress):
                return None
        _believed.add(known)
    return kept


_believed: set[tuple[Any, ...]] = set()


def holds(
    cell: TrainCell, merges: list[Merge], asked_for: int, words: WordCounts, on_progress: Callable[[int], None]
) -> bool:
    """Whether a kept list is right; one that the compiled replay cannot judge is replayed in Python."""
    how: dict[str, Any] = {"min_count": cell.min_count, "on_progress": on_progress}
    tie_break = TieBreak(cell.tie_break)
    how.update(cell.extension.keywords())
    if not compiled_replay.knows(**cell.extension.keywords()):
        told = replay(words, merges, tie_breaks=[tie_break], **how)
        return bool(told.tie_breaks) and not told.stops_too_early(asked_for)
    return compiled_replay.hold(words, merges, asked_for, tie_break=tie_break, **how).proved


def claim_of(trained: Trained) -> Claim:
    cell, whole = trained.cell, trained.answer["status"] == "ok"
    return Claim(
        cell.variant.name,
        cell.variant.family,
        trained.merges or [],
        cell.num_merges,
        whole,
        OUTSIDE in cell.variant.tags,
    )


def replayed_claims(group: Sequence[Trained], tie_break: str, replayed: Callable[[Trained], Replay]) -> list[Claim]:
    """The longest list that a trainer ended with and that replaying finds right: no other trainer has to be run then.

    The compiled replay costs about what training does. Without it, words that are long are replayed in Python, for most
    trainers go through a whole word for each merge in it: hours, where all the text is one word.
    """
    whole = [trained for trained in group if trained.answer["status"] == "ok" and trained.merges is not None]
    tried: list[Sequence[Merge]] = []
    for trained in sorted(whole, key=lambda trained: trained.cell.num_merges, reverse=True):
        if trained.merges in tried:
            continue
        tried.append(trained.merges or [])
        if proved_by_replay(trained, TieBreak(tie_break), replayed):
            return [Claim(REPLAY, REPLAY, trained.merges or [], trained.cell.num_merges, whole=True)]
    return []


def proved_by_replay(trained: Trained, tie_break: TieBreak, replayed: Callable[[Trained], Replay]) -> bool:
    """Whether replaying finds all merges right; False also where it would take too long to be tried."""
    cell, merges = trained.cell, trained.merges or []
    words = store.words_of(cell.reading)
    if words is None:  # the cache was emptied meanwhile
        return False
    extending = cell.extension.keywords()
    if not compiled_replay.knows(**extending):
        return told_right(trained, tie_break, replayed)
    label = f"replaying {cell.variant.name} on {cell.reading.file.name}"
    try:
        with bar(label, len(merges), "merges") as on_progress:
            held = compiled_replay.hold(
                word_store.read(words)[0],
                merges,
                cell.num_merges,
                tie_break=tie_break,
                min_count=cell.min_count,
                on_progress=on_progress,
                **extending,
            )
        return held.proved
    except Unavailable:
        if longest_word(cell.reading) < LONG_BYTES:
            return False
        return told_right(trained, tie_break, replayed)


def told_right(trained: Trained, tie_break: TieBreak, replayed: Callable[[Trained], Replay]) -> bool:
    told = replayed(trained)
    return tie_break in told.tie_breaks and not told.stops_too_early(trained.cell.num_merges)


def longest_word(reading: Reading) -> int:
    """How many bytes it has; 0 if there are no words."""
    words = store.words_of(reading)
    offsets = np.frombuffer(word_store.read(words)[0].offsets, dtype=np.int64) if words is not None else np.zeros(1)
    return int(np.diff(offsets).max(initial=0))
