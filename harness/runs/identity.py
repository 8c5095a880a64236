"""Identity classes: how far a trainer's merges are those that are defined, decided by running it.

- identical: the same merges as ours under a tie-break of ours, or each of them what that tie-break takes;
- identical up to ties: every merge was of a pair as frequent as any at that moment, but no tie-break of ours takes all;
- different by design: other merges, and the trainer says why it makes others;
- wrong: a pair was merged although another was more frequent, or too few or too many merges were made.

Two lists that part say no more than where they part. So a list that equals no reference is replayed: every merge of it
is made, whatever it is, and held against the true counts of that moment (replay.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from harness.common.progress import bar
from harness.common.units import count_text, times_text, token_text
from harness.proof.true_counts import Replay, Step, replay
from harness.runs import store
from harness.runs.outcome import Trained
from harness.runs.record_keys import BY_DESIGN, IDENTICAL, UP_TO_TIES, WRONG
from harness.runs.verdict import Verdict
from harness.worker import word_store
from harness.worker.calling import OWN
from harness.worker.merges_bytes import MOST_BYTES_IN_A_RECORD, in_hex, merges_sha256
from variants.contract import Merge, TieBreak

LONGEST_TOKEN = 20


@dataclass(frozen=True)
class Identity:
    """A class; the tie-break under which merges are identical; the reason, and the merge that shows it.

    `merge` is its number from 1, `got` and `want` are in hexadecimal, with the true counts of both when it was made.
    """

    kind: str
    tie_break: str | None = None
    reason: str | None = None
    merge: int | None = None
    got: list[str] | None = None
    want: list[str] | None = None
    got_count: int | None = None
    want_count: int | None = None
    smallest: dict[str, Any] | None = None
    of_own_words: str | None = None
    """Of merges that are others by design, since they are of words of the trainer's own: their class on those."""


def is_asked(trained: Trained) -> bool:
    """Whether a cell is one whose class anybody wants to know: it ended, and is an outside trainer or beside some."""
    outside = trained.answer.get("feeding") is not None or trained.cell.tie_break == OWN
    return outside and trained.answer["status"] == "ok" and trained.merges is not None


def identify(trained: Trained, replayed: Callable[[Trained], Replay]) -> Identity:
    """The class of a trainer that has its verdict; without one that settles it, `replayed` is asked."""
    if trained.verdict.state in ("reference", "confirmed"):
        return Identity(IDENTICAL, trained.tie_break)
    by_design = (trained.answer.get("feeding") or {}).get("by_design")
    return identity_of(replayed(trained), trained.cell.num_merges, by_design)


def identity_of(replayed: Replay, num_merges: int, by_design: str | None = None) -> Identity:
    """The class of merges that were replayed, of `num_merges` that were asked for."""
    fault = next(iter(replayed.faults), None)
    if fault is None and not replayed.stops_too_early(num_merges):
        if replayed.tie_breaks:
            return Identity(IDENTICAL, replayed.tie_breaks[0].value)
        return up_to_ties(replayed)
    wrong = stopped(replayed) if fault is None else at_fault(fault)
    return wrong if by_design is None else replace(wrong, kind=BY_DESIGN, reason=f"{by_design}; {wrong.reason}")


def up_to_ties(replayed: Replay) -> Identity:
    """Shown by the tie-break that took the same longest."""
    parted = {tie_break: replayed.first_against(tie_break) for tie_break in replayed.judges}
    tie_break, step = max(
        ((each, step) for each, step in parted.items() if step is not None), key=lambda item: item[1].number
    )
    return shown(
        Identity(UP_TO_TIES, None, f"{len(replayed.ties)} of its merges are choices among equals"), step, tie_break
    )


def at_fault(step: Step) -> Identity:
    got, best = merge_text(step.merge), step.best
    if not best.count:
        reason = f"merge {step.number}, {got}, was made when no pair was left"
    elif not step.count:
        others = times_text(best.count)
        reason = f"merge {step.number}, {got}, is of a pair that does not occur, where others do {others}"
    elif step.count < best.count:
        reason = f"merge {step.number}, {got}, occurs {times_text(step.count)}, others {times_text(best.count)}"
    else:
        reason = f"merge {step.number}, {got}, is no merge to be made: {step.judgement.replace('_', ' ')}"
    return shown(Identity(WRONG, None, reason), step, TieBreak.GREATEST_BYTES)


def stopped(replayed: Replay) -> Identity:
    made, left = count_text(len(replayed.steps)), times_text(replayed.rest.count)
    return Identity(WRONG, None, f"it ended after {made} merges, with pairs left that occur {left}")


def shown(identity: Identity, step: Step, tie_break: TieBreak) -> Identity:
    want = step.best.choices.get(tie_break)
    return replace(
        identity,
        merge=step.number,
        got=in_hex(step.merge, MOST_BYTES_IN_A_RECORD),
        want=want and in_hex(want, MOST_BYTES_IN_A_RECORD),
        got_count=step.count,
        want_count=step.best.count,
    )


def merge_text(merge: Merge) -> str:
    return "+".join(token_text(token, LONGEST_TOKEN) for token in merge)


def verdict_of(identity: Identity, verdict: Verdict) -> Verdict:
    """What the true counts say of merges of which no reference says anything."""
    if identity.kind in (IDENTICAL, UP_TO_TIES):
        return Verdict("replayed")
    if identity.kind == BY_DESIGN:
        return verdict
    divergence = {"merge": identity.merge, "got": identity.got, "want": identity.want}
    return Verdict("mismatch", (), divergence if identity.merge is not None else None)


class Replays:
    """Merges replayed on the kept words of their corpus, those of equal lists once."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str, int, str], Replay] = {}

    def __call__(self, trained: Trained) -> Replay:
        reading, merges = trained.cell.reading, trained.merges or []
        extension = trained.cell.extension
        key = reading.key, merges_sha256(merges), trained.cell.min_count, extension.digest()
        if key not in self.known:
            words = store.words_of(reading)
            assert words is not None, "the words were there when the cell was measured"
            label = f"replaying {trained.cell.variant.name} on {reading.file.name}"
            with bar(label, len(merges), "merges") as on_progress:
                self.known[key] = replay(
                    word_store.read(words)[0],
                    merges,
                    min_count=trained.cell.min_count,
                    on_progress=on_progress,
                    **extension.keywords(),
                )
        return self.known[key]
