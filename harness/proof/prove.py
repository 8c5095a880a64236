"""The proof: each list of merges is judged by a replay against the true counts of its words.

The compiled replay (compiled_replay.py) says how many merges are right under one tie-break, and what
was true when the first wrong one was made. No trainer takes part, and it shares no code with any.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.common.progress import bar
from harness.common.units import count_text, occasions_text
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG
from harness.proof.compiled_replay import (
    Judged,
    Moment,
    inherited_first,
    judge_merges,
    moment_after,
)
from harness.proof.diagnosis import Step, describe, explained
from harness.worker.exchange import MOST_BYTES_IN_A_RECORD, in_hex
from variants.contract import Merge, TieBreak, WordCounts


@dataclass(frozen=True)
class MergeList:
    """The merges that a trainer returned, of `num_merges` requested; not `whole` if the trainer was
    stopped.

    `tie_break` is None if a trainer's own is none of ours. `by_design` is its reason to make other
    merges, if any.
    """

    name: str
    merges: Sequence[Merge]
    num_merges: int
    tie_break: TieBreak | None = TieBreak.GREATEST_BYTES
    whole: bool = True
    by_design: str | None = None

    @property
    def needed(self) -> int:
        """How many merges must be right: all requested ones, or those that a stopped trainer
        made.
        """
        return max(self.num_merges, 0) if self.whole else len(self.merges)


@dataclass(frozen=True)
class Identity:
    """Whether merges are the defined ones: the kind, the tie-break under which they are, or what
    shows a difference.

    `merge` is the number of the first merge that differs, from 1; `got` and `want` are in
    hexadecimal, with their true counts. `of_own_words` is the kind on the words of the trainer's
    own pattern, for merges that differ by design.
    """

    kind: str
    tie_break: str | None = None
    reason: str | None = None
    merge: int | None = None
    got: list[str] | None = None
    want: list[str] | None = None
    got_count: int | None = None
    want_count: int | None = None
    of_own_words: str | None = None


@dataclass(frozen=True)
class Replay:
    """A list of merges replayed under each tie-break, and with each choice among equals as right.

    The rules are `min_count`, `inherited`, `inheriting` and `veto`, as the trainer got them.
    """

    name: str
    words: WordCounts
    merges: Sequence[Merge]
    num_merges: int
    rules: Mapping[str, Any]

    def judged(self, tie_break: TieBreak | None) -> Judged:
        with bar(f"replaying {self.name}", self.num_merges, "merges") as show:
            return judge_merges(
                self.words,
                self.merges,
                self.num_merges,
                tie_break=tie_break,
                on_progress=show,
                all_pairs=tie_break is None,
                **self.rules,
            )

    def is_right(self, judged: Judged) -> bool:
        return judged.right == len(self.merges) and not judged.too_few

    @functools.cached_property
    def up_to_ties(self) -> Judged:
        return self.judged(None)

    @functools.cached_property
    def reached(self) -> dict[TieBreak, int]:
        """How many merges are right under each tie-break."""
        return {tie_break: self.judged(tie_break).right for tie_break in TieBreak}

    @property
    def ties(self) -> int:
        """How many merges were choices among equals."""
        return sum(sharing > 1 for sharing in self.up_to_ties.sharing)

    def step(self, number: int, tie_breaks: Sequence[TieBreak] = tuple(TieBreak)) -> Step:
        return explained(self.words, self.merges, number, tie_breaks, **self.rules)

    @functools.cached_property
    def end(self) -> Moment | None:
        """What is true after the last merge; None if a merge cannot be made."""
        inherited = self.rules.get("inherited", ())
        _, stays = inherited_first(self.merges, inherited, self.rules.get("inheriting", "kept"))
        veto = self.rules.get("veto")
        return moment_after(self.words, self.merges, inherited=sum(stays), veto=veto)


def prove(words: WordCounts, listed: MergeList, min_count: int = 1, **extending: Any) -> Identity:
    """Return the identity of a list; `extending` are the inherited merges and the veto, as the
    trainer got them.
    """
    if not listed.whole and not listed.merges:
        return Identity(UNPROVED, reason="it was stopped before its first merge")
    if len(listed.merges) > listed.needed:
        number, needed = count_text(len(listed.merges)), count_text(listed.needed)
        return Identity(
            WRONG,
            reason=f"it made {number} merges, and {needed} were requested",
            merge=listed.needed + 1,
        )

    rules = {"min_count": min_count, **extending}
    replay = Replay(listed.name, words, listed.merges, listed.needed, rules)
    reached: dict[TieBreak, int] = {}
    for tie_break in TieBreak if listed.tie_break is None else (listed.tie_break,):
        judged = replay.judged(tie_break)
        if replay.is_right(judged):
            return Identity(IDENTICAL, tie_break.value)
        reached[tie_break] = judged.right

    if listed.tie_break is None:
        judged = replay.up_to_ties
        if replay.is_right(judged):
            tie_break = max(reached, key=lambda tie_break: reached[tie_break])
            reason = f"{count_text(replay.ties)} of its merges are choices among equals"
            return identity_at(replay.step(reached[tie_break] + 1), UP_TO_TIES, reason, tie_break)

    identity = wrong_at(replay, judged.right + 1, list(reached))
    if listed.by_design is None:
        return identity
    return replace(identity, kind=BY_DESIGN, reason=f"{listed.by_design}; {identity.reason}")


def wrong_at(replay: Replay, number: int, tie_breaks: Sequence[TieBreak]) -> Identity:
    """The identity of a list whose merge of this number is wrong, or missing."""
    if number <= len(replay.merges):
        step = replay.step(number, tie_breaks)
        return identity_at(step, WRONG, describe(step), tie_breaks[0])

    moment = replay.end
    left = f", with pairs left that occur {occasions_text(moment.highest)}" if moment else ""
    reason = f"it ended after {count_text(len(replay.merges))} merges{left}"
    return Identity(WRONG, reason=reason, merge=number)


def identity_at(step: Step, kind: str, reason: str, tie_break: TieBreak) -> Identity:
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
