"""The proof: each list of merges is judged by a replay against the true counts of its words.

The compiled replay (compiled_replay.py) says how many merges are right under one tie-break.
true_counts.py, its plain twin, explains what the compiled replay rejects. No trainer takes part, and
both share no code with any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.common.progress import bar
from harness.common.units import count_text, occasions_text, token_text
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG, true_counts
from harness.proof.compiled_replay import can_judge, judge_merges
from harness.proof.true_counts import MAXIMUM, TEXTS, TIE, TOO_RARE, Replay, Step
from harness.worker.exchange import MOST_BYTES_IN_A_RECORD, in_hex
from variants.contract import Merge, TieBreak, Veto, WordCounts


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


def prove(
    words: WordCounts,
    listed: MergeList,
    min_count: int = 1,
    *,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
) -> Identity:
    """Return the identity of a list; inherited merges and the veto are as the trainer got them."""
    if not listed.whole and not listed.merges:
        return Identity(UNPROVED, reason="it was stopped before its first merge")
    if len(listed.merges) > listed.needed:
        number, needed = count_text(len(listed.merges)), count_text(listed.needed)
        return Identity(
            WRONG,
            reason=f"it made {number} merges, and {needed} were requested",
            merge=listed.needed + 1,
        )

    tie_breaks = tuple(TieBreak) if listed.tie_break is None else (listed.tie_break,)
    compiles = can_judge(inherited, veto)
    for tie_break in tie_breaks if compiles else ():
        with bar(f"replaying {listed.name}", listed.needed, "merges") as shown:
            judged = judge_merges(
                words,
                listed.merges,
                listed.needed,
                tie_break=tie_break,
                min_count=min_count,
                on_progress=shown,
                inherited=inherited,
                inheriting=inheriting,
                veto=veto,
            )
        if judged == (len(listed.merges), False):
            return Identity(IDENTICAL, tie_break.value)

    with bar(
        f"{'explaining' if compiles else 'replaying'} {listed.name}", listed.needed, "merges"
    ) as shown:
        replayed = true_counts.replay(
            words,
            listed.merges,
            tie_breaks=tie_breaks,
            min_count=min_count,
            on_progress=shown,
            until_wrong=True,
            inherited=inherited,
            inheriting=inheriting,
            veto=veto,
        )

    identity = identity_of(replayed, listed.needed, listed.by_design)
    if compiles and identity.kind == IDENTICAL:
        return Identity(
            UNPROVED,
            reason="the compiled replay rejects what the Python replay accepts; report this",
        )
    return identity


def describe(step: Step) -> str:
    """One merge, with what was true of it.

    >>> tied = {TieBreak.RAW_BYTES: (b"a", b"b"), TieBreak.GREATEST_BYTES: (b"c", b"d")}
    >>> describe(Step(7, (b"a", b"b"), TIE, 3, true_counts.Best(3, 2, tied)))
    "merge 7: b'a' + b'b', 3 times, as often as 1 other; raw_bytes takes b'a' + b'b'; greatest_bytes takes b'c' + b'd'"
    """
    text, best = f"merge {step.number}: {merge_text(step.merge)}", step.best
    if step.judgement in (MAXIMUM, TIE, WRONG, TOO_RARE):
        text += f", {occasions_text(step.count)}"
    if step.judgement not in (TIE, WRONG):
        return f"{text}, {TEXTS[step.judgement]}"
    if not best.count:
        return f"{text}; no pair was left"

    takers: dict[Merge, list[str]] = {}
    for tie_break, merge in best.choices.items():
        takers.setdefault(merge, []).append(tie_break.value)

    if best.tied == 1:
        return f"{text}; the most frequent is {merge_text(*takers)}, {occasions_text(best.count)}"
    if step.judgement == TIE:
        text += f", as often as {count_text(best.tied - 1)} other{'s' if best.tied > 2 else ''}"
    else:
        text += f"; {count_text(best.tied)} pairs occur {occasions_text(best.count)}"
    takes = (
        f"{', '.join(names)} take{'s' * (len(names) == 1)} {merge_text(pair)}"
        for pair, names in takers.items()
    )
    return "; ".join([text, *takes])


def merge_text(merge: Merge) -> str:
    """The two tokens, up to 40 characters of each."""
    return " + ".join(f"b{token_text(token, 40)}" for token in merge)


def identity_of(replayed: Replay, num_merges: int, by_design: str | None = None) -> Identity:
    """Return the identity of merges that were replayed in Python, of `num_merges` requested."""
    fault = next(iter(replayed.faults), None)
    if fault is None and not replayed.stops_too_early(num_merges):
        if replayed.tie_breaks:
            return Identity(IDENTICAL, replayed.tie_breaks[0].value)
        if len(replayed.judges) > 1:
            return up_to_ties(replayed)

    if fault is None and len(replayed.judges) == 1:
        fault = replayed.first_against(replayed.judges[0])
    if fault is None:
        number, left = count_text(len(replayed.steps)), occasions_text(replayed.rest.count)
        reason = f"it ended after {number} merges, with pairs left that occur {left}"
        wrong = Identity(WRONG, reason=reason, merge=len(replayed.steps) + 1)
    else:
        wrong = identity_at(fault, WRONG, describe(fault), replayed.judges[0])

    return (
        wrong
        if by_design is None
        else replace(wrong, kind=BY_DESIGN, reason=f"{by_design}; {wrong.reason}")
    )


def up_to_ties(replayed: Replay) -> Identity:
    """Show the first merge that differs from the tie-break which agrees longest."""
    parted = {tie_break: replayed.first_against(tie_break) for tie_break in replayed.judges}
    steps = {tie_break: step for tie_break, step in parted.items() if step is not None}
    tie_break = max(steps, key=lambda tie_break: steps[tie_break].number)
    reason = f"{count_text(len(replayed.ties))} of its merges are choices among equals"
    return identity_at(steps[tie_break], UP_TO_TIES, reason, tie_break)


def identity_at(step: Step, kind: str, reason: str, tie_break: TieBreak) -> Identity:
    want = step.best.choices.get(tie_break)
    return Identity(
        kind,
        reason=reason,
        merge=step.number,
        got=in_hex(step.merge, MOST_BYTES_IN_A_RECORD),
        want=want and in_hex(want, MOST_BYTES_IN_A_RECORD),
        got_count=step.count,
        want_count=step.best.count,
    )
