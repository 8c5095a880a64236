"""Merges and what is true of them, in words and in rows: the same for every command that judges merges."""

from __future__ import annotations

from typing import Any

from harness.common.units import count_text, times_text
from harness.proof.true_counts import (
    DUPLICATE,
    INHERITED,
    MAXIMUM,
    NOT_INHERITED,
    TIE,
    TOO_RARE,
    UNKNOWN,
    VETOED,
    WRONG,
    Best,
    Step,
)
from harness.worker.merges_bytes import in_hex
from variants.contract import Merge, TieBreak

COLUMNS = ("merge", "left", "right", "judgement", "count", "greatest_count", "tied", "right_under")
TOLD = {
    MAXIMUM: "the most frequent pair of its moment",
    TIE: "one of several pairs that were as frequent",
    WRONG: "less frequent than another pair",
    TOO_RARE: "below min_count",
    UNKNOWN: "joining a token that nothing before it makes",
    DUPLICATE: "made before",
    INHERITED: "there before training, and kept",
    NOT_INHERITED: "in the place of another that was inherited",
    VETOED: "under the veto, or spelling an inherited token anew",
}


def step_described(step: Step) -> str:
    """One merge, with what was true of it.

    >>> tied = {TieBreak.RAW_BYTES: (b"a", b"b"), TieBreak.GREATEST_BYTES: (b"c", b"d")}
    >>> step_described(Step(7, (b"a", b"b"), TIE, 3, Best(3, 2, tied)))
    "merge 7: b'a' + b'b', 3 times, as often as 1 other; right under raw_bytes; greatest_bytes takes b'c' + b'd'"
    """
    said = f"merge {step.number}: {shown(step.merge)}"
    if step.judgement in (UNKNOWN, DUPLICATE, INHERITED, NOT_INHERITED, VETOED):
        return f"{said}, {TOLD[step.judgement]}"
    said += f", {times_text(step.count)}"
    if step.judgement == TOO_RARE:
        return f"{said}, {TOLD[TOO_RARE]}"
    if step.judgement == TIE:
        others = step.best.tied - 1
        said += f", as often as {count_text(others)} other{'s' if others > 1 else ''}"
        under = ", ".join(tie_break.value for tie_break in step.right_under)
        said += f"; right under {under}" if under else "; right under no tie-break of ours"
    return f"{said}; {choices(step)}" if step.best.count else f"{said}; no pair was left"


def choices(step: Step) -> str:
    """What the tie-breaks take instead, those together that take the same."""
    takers: dict[Merge, list[str]] = {}
    for tie_break, merge in step.best.choices.items():
        takers.setdefault(merge, []).append(tie_break.value)
    takers.pop(step.merge, None)
    if step.best.tied == 1:
        return f"the most frequent is {shown(*takers)}, {times_text(step.best.count)}"
    said = "; ".join(
        f"{', '.join(names)} {'take' if len(names) > 1 else 'takes'} {shown(merge)}" for merge, names in takers.items()
    )
    if step.judgement == TIE:
        return said
    return f"{count_text(step.best.tied)} pairs occur {times_text(step.best.count)}; {said}"


def rest(best: Best) -> str:
    """What is left to merge."""
    merge = best.choices[TieBreak.GREATEST_BYTES]
    return f"{shown(merge)} is left with {times_text(best.count)}"


def as_row(step: Step) -> dict[str, Any]:
    left, right = in_hex(step.merge)
    under = [tie_break.value for tie_break in step.right_under]
    return dict(
        zip(
            COLUMNS,
            (step.number, left, right, step.judgement, step.count, step.best.count, step.best.tied, under),
            strict=True,
        )
    )


def by_tie_break(best: Best) -> dict[str, Any]:
    return {"choices": {tie_break.value: in_hex(merge) for tie_break, merge in best.choices.items()}}


def shown(merge: Merge) -> str:
    return " + ".join(repr(token) if len(token) <= 60 else f"{token[:60]!r}... ({len(token)} bytes)" for token in merge)


def some_merges(number: int) -> str:
    return "1 merge is" if number == 1 else f"{count_text(number)} merges are"
