"""The proof: each list of merges is judged by a replay against the true counts of its words.

The compiled replay (compiled_replay.py) says how many merges are right under one tie-break, and what
was true when the first wrong one was made. No trainer takes part, and it shares no code with any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from harness.common.units import count_text, occasions_text
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG, Identity, Kind
from harness.proof.compiled_replay import Replay
from harness.proof.diagnosis import Step, describe, explained
from harness.worker.exchange import MOST_BYTES_IN_A_RECORD, in_hex
from variants.contract import GREATEST_BYTES, TieBreak


def prove(
    replay: Replay,
    tie_break: TieBreak | None = GREATEST_BYTES,
    *,
    whole: bool = True,
    by_design: str | None = None,
) -> Identity:
    """Return the identity of a list under a tie-break; None if a trainer's own is none of ours.

    A list is not `whole` if its trainer was stopped. `by_design` is a trainer's reason to make other
    merges, if any.
    """
    made = len(replay.merges)
    if not whole and not made:
        return Identity(UNPROVED, reason="it was stopped before its first merge")
    needed = max(replay.num_merges, 0) if whole else made
    if made > needed:
        reason = f"it made {count_text(made)} merges, and {count_text(needed)} were requested"
        return Identity(WRONG, reason=reason, merge=needed + 1)

    replay = replace(replay, num_merges=needed)
    reached: dict[TieBreak, int] = {}
    for rule in TieBreak if tie_break is None else (tie_break,):
        judged = replay.judged(rule)
        if replay.is_right(judged):
            return Identity(IDENTICAL, rule.value)
        reached[rule] = judged.right

    if tie_break is None:
        judged = replay.up_to_ties
        if replay.is_right(judged):
            rule = max(reached, key=lambda rule: reached[rule])
            reason = f"{count_text(replay.ties)} of its merges are choices among equals"
            return identity_at(explained(replay, reached[rule] + 1), UP_TO_TIES, reason, rule)

    identity = wrong_at(replay, judged.right + 1, list(reached))
    if by_design is None:
        return identity
    return structs.replace(identity, kind=BY_DESIGN, reason=f"{by_design}; {identity.reason}")


def wrong_at(replay: Replay, number: int, tie_breaks: Sequence[TieBreak]) -> Identity:
    """The identity of a list whose merge of this number is wrong, or missing."""
    if number <= len(replay.merges):
        step = explained(replay, number, tie_breaks)
        return identity_at(step, WRONG, describe(step), tie_breaks[0])

    moment = replay.end
    left = f", with pairs left that occur {occasions_text(moment.highest)}" if moment else ""
    reason = f"it ended after {count_text(len(replay.merges))} merges{left}"
    return Identity(WRONG, reason=reason, merge=number)


def identity_at(step: Step, kind: Kind, reason: str, tie_break: TieBreak) -> Identity:
    want = step.choices.get(tie_break)
    return Identity(
        kind,
        reason=reason,
        merge=step.number,
        got=in_hex(step.merge, MOST_BYTES_IN_A_RECORD),
        want=want and in_hex(want, MOST_BYTES_IN_A_RECORD),
        got_count=step.occurrences,
        want_count=step.highest,
    )
