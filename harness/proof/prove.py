"""The proof: each list of merges is judged by a replay against the true counts of its words.

The compiled replay costs about what training costs; native/replay.hpp holds its structures and its
proof. It says how many merges are right under one tie-break. true_counts.py, its plain twin,
explains what the compiled replay rejects. No trainer takes part, and both share no code with any.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from harness.common.progress import bar
from harness.common.units import count_text, times_text, token_text
from harness.proof import BY_DESIGN, IDENTICAL, UNPROVED, UP_TO_TIES, WRONG, true_counts
from harness.proof.true_counts import MAXIMUM, TEXTS, TIE, TOO_RARE, Replay, Step
from harness.worker.exchange import MOST_BYTES_IN_A_RECORD, in_hex
from variants.contract import LARGEST_COUNT, Merge, TieBreak, Veto, WordCounts
from variants.vetoes import limits_of

try:
    from harness.proof.native import _replay
except ImportError:
    _replay = None  # type: ignore[assignment]


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
    compiles = _replay is not None and can_judge(inherited, veto)
    for tie_break in tie_breaks if compiles else ():
        with bar(f"replaying {listed.name}", listed.needed, "merges") as shown:
            judged = judge(
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


# A replay in words


def describe(step: Step) -> str:
    """One merge, with what was true of it.

    >>> tied = {TieBreak.RAW_BYTES: (b"a", b"b"), TieBreak.GREATEST_BYTES: (b"c", b"d")}
    >>> describe(Step(7, (b"a", b"b"), TIE, 3, true_counts.Best(3, 2, tied)))
    "merge 7: b'a' + b'b', 3 times, as often as 1 other; raw_bytes takes b'a' + b'b'; greatest_bytes takes b'c' + b'd'"
    """
    text, best = f"merge {step.number}: {merge_text(step.merge)}", step.best
    if step.judgement in (MAXIMUM, TIE, WRONG, TOO_RARE):
        text += f", {times_text(step.count)}"
    if step.judgement not in (TIE, WRONG):
        return f"{text}, {TEXTS[step.judgement]}"
    if not best.count:
        return f"{text}; no pair was left"

    takers: dict[Merge, list[str]] = {}
    for tie_break, merge in best.choices.items():
        takers.setdefault(merge, []).append(tie_break.value)

    if best.tied == 1:
        return f"{text}; the most frequent is {merge_text(*takers)}, {times_text(best.count)}"
    if step.judgement == TIE:
        text += f", as often as {count_text(best.tied - 1)} other{'s' if best.tied > 2 else ''}"
    else:
        text += f"; {count_text(best.tied)} pairs occur {times_text(best.count)}"
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
        number, left = count_text(len(replayed.steps)), times_text(replayed.rest.count)
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


# The compiled replay


def judge(
    word_counts: WordCounts,
    merges: Sequence[Merge],
    num_merges: int,
    *,
    tie_break: TieBreak,
    min_count: int = 1,
    on_progress: Callable[[int], object] = lambda _: None,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
    guess_scale: float = 1.0,
    wide_symbols: bool = False,
    wide_positions: bool = False,
) -> tuple[int, bool]:
    """Return how many merges are right, of `num_merges` requested ones, and whether all are and
    more had to be made.

    Inherited merges and the veto are passed as to a trainer, if `can_judge` accepts them.
    `on_progress` is called up to ten times a second with the number of merges made. The last three
    settings change sizes inside the replay and no result; tests try them. Raises
    ValueError for invalid word counts, and MemoryError.
    """
    claimed, stays = inherited_first(merges, inherited, inheriting)
    if len(claimed) < len(stays):  # the first merges are not those that had to be inherited
        return len(claimed), len(claimed) == len(merges)
    dropped = stays.count(False)
    retained, requested = len(stays) - dropped, max(num_merges, 0) + dropped

    lefts, rights = token_ids(claimed[:requested])
    right, too_few, _, _, _, met = _replay.judge(
        *columns_of(word_counts),
        lefts,
        rights,
        num_merges=min(requested, LARGEST_COUNT) if len(lefts) == len(claimed) else len(lefts),
        min_count=min(max(min_count, 1), LARGEST_COUNT),
        tie_break=list(TieBreak).index(tie_break),
        on_progress=on_progress,
        stays=bytes(stays),
        veto=limits_of(veto),
        guess_scale=guess_scale,
        wide_symbols=wide_symbols,
        wide_positions=wide_positions,
    )

    if inheriting == "met" and met != stays:
        different = next(index for index, stay in enumerate(stays) if met[index] != stay)
        right = sum(stays[:different])
        return right, right == len(merges)
    return max(right - dropped, retained), too_few


def tokens_left(word_counts: WordCounts, merges: Sequence[Merge]) -> int:
    """The number of tokens of the words after these merges; each word counts as many times as it
    occurs.

    Compiled if possible; otherwise, and for a list that makes a token twice, in Python.

    >>> tokens_left(WordCounts.from_items([(b"abc", 2)]), [(b"a", b"b")])
    4
    """
    if _replay is None or not can_judge(merges):
        return int(true_counts.TrueCounts(word_counts, inherited=merges).text.tokens)

    lefts, rights = token_ids(merges)
    _, _, _, _, merged, _ = _replay.judge(
        *columns_of(word_counts),
        lefts,
        rights,
        num_merges=len(lefts),
        min_count=1,
        tie_break=0,
        on_progress=lambda _: None,
        stays=bytes([True]) * len(lefts),  # inherited, so made whatever they count
    )

    ends = word_counts.offsets
    return (
        sum(count * (end - start) for count, start, end in zip(word_counts.counts, ends, ends[1:]))
        - merged
    )


def columns_of(word_counts: WordCounts) -> tuple[memoryview, memoryview, memoryview]:
    return word_counts.data, word_counts.offsets, word_counts.counts


def token_ids(merges: Sequence[Merge]) -> tuple[array[int], array[int]]:
    """The ids of left and right tokens, up to the first merge of an unknown token or one that makes
    a token again.

    No right merge does either, so such a one ends what can be right.
    """
    lefts, rights = array("I"), array("I")
    ids = {bytes((byte,)): byte for byte in range(256)}
    for left, right in merges:
        if left not in ids or right not in ids or left + right in ids:
            break
        lefts.append(ids[left])
        rights.append(ids[right])
        ids[left + right] = len(ids)
    return lefts, rights


def can_judge(inherited: Sequence[Merge] = (), veto: Veto | None = None) -> bool:
    """Whether the compiled replay can judge merges that continue these, under this veto.

    It cannot under a veto of the user's own, nor after a list that no trainer can have learned.
    """
    return len(token_ids(inherited)[0]) == len(inherited) and limits_of(veto).own is None


def inherited_first(
    merges: Sequence[Merge], inherited: Sequence[Merge], inheriting: str
) -> tuple[Sequence[Merge], list[bool]]:
    """All inherited merges before the new ones, and which of those stay if the merges are right.

    Fewer merges than inherited ones mean that so many of the first are right, and the next is not.
    """
    if inheriting == "kept":
        wrong = next(
            (index for index, (one, other) in enumerate(zip(merges, inherited)) if one != other),
            None,
        )
        return merges[:wrong] if wrong is not None else merges, [True] * len(inherited)
    stays, at = [], 0
    for merge in inherited:
        stays.append(at < len(merges) and merges[at] == merge)
        at += stays[-1]
    return [*inherited, *merges[at:]], stays
