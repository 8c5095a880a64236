"""Judged merges as sentences and rows, and where two judged lists differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.common.units import count_text, times_text, token_text
from harness.proof.checks import first_difference
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
    Replay,
    Step,
)
from harness.worker.merges_bytes import in_hex
from variants.contract import Merge, TieBreak

TEXTS = {
    MAXIMUM: "the most frequent pair of its moment",
    TIE: "one of several most frequent pairs",
    WRONG: "less frequent than another pair",
    TOO_RARE: "below min_count",
    UNKNOWN: "of a token that no earlier merge makes",
    DUPLICATE: "made before",
    INHERITED: "inherited",
    NOT_INHERITED: "in place of an inherited one",
    VETOED: "vetoed, or spelling an inherited token again",
}
LONGEST_TOKEN = 40
"""So many characters of a token are shown."""


def describe(step: Step) -> str:
    """One merge, with what was true of it.

    >>> tied = {TieBreak.RAW_BYTES: (b"a", b"b"), TieBreak.GREATEST_BYTES: (b"c", b"d")}
    >>> describe(Step(7, (b"a", b"b"), TIE, 3, Best(3, 2, tied)))
    "merge 7: b'a' + b'b', 3 times, as often as 1 other; right under raw_bytes; greatest_bytes takes b'c' + b'd'"
    """
    text, best = f"merge {step.number}: {merge_text(step.merge)}", step.best
    if step.judgement in (MAXIMUM, TIE, WRONG, TOO_RARE):
        text += f", {times_text(step.count)}"
    if step.judgement not in (TIE, WRONG):
        return f"{text}, {TEXTS[step.judgement]}"
    if step.judgement == TIE:
        text += f", as often as {count_text(best.tied - 1)} other{'s' if best.tied > 2 else ''}"
        under = ", ".join(tie_break.value for tie_break in step.right_under)
        text += f"; right under {under}" if under else ""
    elif not best.count:
        return f"{text}; no pair was left"
    elif best.tied == 1:
        most = next(iter(best.choices.values()))
        return f"{text}; the most frequent is {merge_text(most)}, {times_text(best.count)}"
    else:
        text += f"; {count_text(best.tied)} pairs occur {times_text(best.count)}"
    return f"{text}; {choices(step)}"


def choices(step: Step) -> str:
    """The choices of other tie-breaks, those of the same choice together."""
    takers: dict[Merge, list[str]] = {}
    for tie_break, merge in step.best.choices.items():
        takers.setdefault(merge, []).append(tie_break.value)
    takers.pop(step.merge, None)
    return "; ".join(
        f"{', '.join(names)} {'take' if len(names) > 1 else 'takes'} {merge_text(merge)}"
        for merge, names in takers.items()
    )


def rest_text(best: Best) -> str:
    """The pair that remains to be merged next."""
    if not best.count:
        return "no pair is left"
    return f"{merge_text(best.choices[TieBreak.GREATEST_BYTES])} is left with {times_text(best.count)}"


def merge_text(merge: Merge) -> str:
    return " + ".join(f"b{token_text(token, LONGEST_TOKEN)}" for token in merge)


def merges_are(number: int) -> str:
    return "1 merge is" if number == 1 else f"{count_text(number)} merges are"


def row_of(step: Step) -> dict[str, Any]:
    left, right = in_hex(step.merge)
    return {
        "merge": step.number,
        "left": left,
        "right": right,
        "judgement": step.judgement,
        "count": step.count,
        "greatest_count": step.best.count,
        "tied": step.best.tied,
        "right_under": [tie_break.value for tie_break in step.right_under],
    }


def choices_json(best: Best) -> dict[str, Any]:
    return {"choices": {tie_break.value: in_hex(merge) for tie_break, merge in best.choices.items()}}


def differences(a: Replay, b: Replay) -> Iterator[str]:
    """Where two lists differ first, why, and how different they are in all; nothing if they are equal."""
    mine, theirs = ([step.merge for step in replayed.steps] for replayed in (a, b))
    if mine == theirs:
        return
    place = first_difference(mine, theirs)
    yield f"first difference: merge {count_text(place + 1)}, {count_text(place)} equal before it"
    for side, replayed in zip("AB", (a, b), strict=True):
        if place < len(replayed.steps):
            yield f"  {side} {describe(replayed.steps[place])}"
        else:
            yield f"  {side} has ended; {rest_text(replayed.rest)}"
    made, others = ({left + right for left, right in merges} for merges in (mine, theirs))
    merges = f"{len({*mine} & {*theirs}):,} of {len({*mine, *theirs}):,} merges"
    yield f"in common: {merges}, {len(made & others):,} of {len(made | others):,} tokens"
    if a.bytes:
        change = 100 * (b.tokens / a.tokens - 1)
        yield f"tokens per byte: A {a.tokens / a.bytes:.4f}, B {b.tokens / b.bytes:.4f} ({change:+.3f} %)"
