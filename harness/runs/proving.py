"""The proof of each list of merges, by the words that the harness has counted."""

from __future__ import annotations

from dataclasses import replace

from harness.common import registry
from harness.proof import BY_DESIGN, WRONG
from harness.runs import jobs
from harness.runs.cells import Reading, TrainCell
from harness.runs.counting import default_words
from harness.runs.jobs import Trained
from harness.runs.resume import TIMEOUT
from harness.runs.session import Session
from harness.worker.calling import OWN
from variants.contract import TieBreak, WordCounts


def prove_merges(trained: Trained, session: Session) -> None:
    """Set the identity of the merges, and how many tokens they leave if that is wanted.

    A list that was judged in this task is not judged again. Merges of a trainer that failed are not
    judged, nor those whose words have lost their seal.
    """
    cell, answer = trained.cell, trained.answer
    whole = answer.status == "ok"
    if trained.merges is None or not (whole or answer.status == TIMEOUT):
        return
    # late: NumPy comes with it, and is slow to import
    from harness.proof.compiled_replay import tokens_left
    from harness.proof.prove import MergeList, prove

    tie_break = TieBreak(ties) if (ties := trained.tie_break) is not None else None
    merges = MergeList(cell.label, trained.merges, cell.num_merges, tie_break, whole, excuse(cell))
    work = cell.task_key, trained.merges_sha256, cell.num_merges
    key = (*work, whole, tie_break, merges.by_design)

    if key not in session.judged:
        word_counts, tokens = session.words(cell.reading), None
        if word_counts is None:
            return
        identity = prove(word_counts, merges, cell.min_count, **cell.extending())
        if identity.kind == BY_DESIGN and (words := own_words(trained, session)) is not None:
            judged = prove(words, replace(merges, tie_break=None, by_design=None), cell.min_count)
            of_own_words = judged.kind.replace("_", " ")
            if judged.tie_break:
                of_own_words += f" ({judged.tie_break})"
            identity = replace(identity, of_own_words=of_own_words)
        if identity.kind == WRONG and answer.from_file:
            is_tie = identity.got_count == identity.want_count
            of_words = jobs.words_verdict(cell, word_counts, session.next_folder(), is_tie)
            reason = "; ".join(filter(None, [identity.reason, of_words]))
            identity = replace(identity, reason=reason)
        if session.settings.tokens and whole:
            tokens = tokens_left(word_counts, trained.merges)
        session.judged[key] = identity, tokens
    trained.identity, trained.tokens = session.judged[key]


def excuse(cell: TrainCell) -> str | None:
    """Why the card of a trainer says that its merges are others; None on the very words that it
    counts.
    """
    card, reading = cell.variant, cell.reading
    if card.own_words == reading.pattern_name and not reading.corpus.special_tokens:
        return None
    return card.by_design or None


def own_words(trained: Trained, session: Session) -> WordCounts | None:
    """The words of the trainer's own pattern; None if it has none."""
    cell, name = trained.cell, trained.cell.variant.own_words
    if not name or cell.extension is not None:
        return None
    pattern = registry.patterns()[name]
    reading = Reading(
        cell.reading.file, OWN, replace(cell.reading.corpus, pattern=pattern, special_tokens=())
    )
    if session.words(reading) is None:
        default_words(replace(cell.count, reading=reading), "its own words", session)
    return session.words(reading)
