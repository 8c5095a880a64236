"""Judged merges in words and in rows, and where two judged lists part."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

from harness.common.units import count_text, times_text
from harness.proof.true_counts import (
    DUPLICATE,
    INHERITED,
    MAXIMUM,
    NOT_INHERITED,
    RIGHT,
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

COLUMNS = ("merge", "left", "right", "judgement", "count", "greatest_count", "tied", "right_under")
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


def step_described(step: Step) -> str:
    """One merge, with what was true of it.

    >>> tied = {TieBreak.RAW_BYTES: (b"a", b"b"), TieBreak.GREATEST_BYTES: (b"c", b"d")}
    >>> step_described(Step(7, (b"a", b"b"), TIE, 3, Best(3, 2, tied)))
    "merge 7: b'a' + b'b', 3 times, as often as 1 other; right under raw_bytes; greatest_bytes takes b'c' + b'd'"
    """
    text = f"merge {step.number}: {shown(step.merge)}"
    if step.judgement in (UNKNOWN, DUPLICATE, INHERITED, NOT_INHERITED, VETOED):
        return f"{text}, {TEXTS[step.judgement]}"
    text += f", {times_text(step.count)}"
    if step.judgement in (MAXIMUM, TOO_RARE):
        return f"{text}, {TEXTS[step.judgement]}"
    if step.judgement == TIE:
        others = step.best.tied - 1
        text += f", as often as {count_text(others)} other{'s' if others > 1 else ''}"
        under = ", ".join(tie_break.value for tie_break in step.right_under)
        text += f"; right under {under}" if under else "; right under no tie-break of ours"
    return f"{text}; {choices(step)}" if step.best.count else f"{text}; no pair was left"


def choices(step: Step) -> str:
    """What the tie-breaks take instead, those together that take the same."""
    takers: dict[Merge, list[str]] = {}
    for tie_break, merge in step.best.choices.items():
        takers.setdefault(merge, []).append(tie_break.value)
    takers.pop(step.merge, None)
    if step.best.tied == 1:
        return f"the most frequent is {shown(*takers)}, {times_text(step.best.count)}"
    text = "; ".join(
        f"{', '.join(names)} {'take' if len(names) > 1 else 'takes'} {shown(merge)}" for merge, names in takers.items()
    )
    if step.judgement == TIE:
        return text
    return f"{count_text(step.best.tied)} pairs occur {times_text(step.best.count)}; {text}"


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


BY_TIES, ENDS = "by_ties", "ends"


class Difference(NamedTuple):
    """The first difference of two lists: how many merges are equal before it, and what each list has; None: its end."""

    place: int
    steps: tuple[Step | None, Step | None]

    @property
    def cause(self) -> str:
        """Return `ends` if one list has ended, `by_ties` if both choices are right, else `wrong`."""
        if None in self.steps:
            return ENDS
        return BY_TIES if all(step is not None and step.judgement in RIGHT for step in self.steps) else WRONG


def first_difference(a: Replay, b: Replay) -> Difference | None:
    """Return where two lists part; None if they are equal."""
    for place, (mine, theirs) in enumerate(zip_longest(a.steps, b.steps)):
        if mine is None or theirs is None or mine.merge != theirs.merge:
            return Difference(place, (mine, theirs))
    return None


def difference_described(found: Difference, a: Replay, b: Replay) -> Iterator[str]:
    """Say what each list has at the first difference, why, and how far the lists are apart at their ends."""
    yield f"first difference: merge {count_text(found.place + 1)}, {count_text(found.place)} equal before it"
    for side, step, replayed in zip("AB", found.steps, (a, b), strict=True):
        if step is not None:
            yield f"  {side} {step_described(step)}"
        else:
            yield f"  {side} has ended; {rest(replayed.rest) if replayed.rest.count else 'no pair is left'}"
    merges, tokens = in_common(a, b)
    yield f"in common: {merges[0]:,} of {merges[1]:,} merges, {tokens[0]:,} of {tokens[1]:,} tokens"
    if a.bytes:
        change = 100 * (b.tokens / a.tokens - 1)
        yield f"tokens per byte: A {a.tokens / a.bytes:.4f}, B {b.tokens / b.bytes:.4f} ({change:+.3f} %)"


def difference_as_json(found: Difference | None, a: Replay, b: Replay) -> dict[str, Any]:
    """Return the same for programs."""
    merges, tokens = in_common(a, b)
    first: dict[str, Any] | None = None
    if found is not None:
        first = {"merge": found.place + 1, "cause": found.cause}
        for side, step in zip("ab", found.steps, strict=True):
            first[side] = None if step is None else {**as_row(step), **by_tie_break(step.best)}
    return {
        "first_difference": first,
        "in_common": {"merges": merges[0], "of_merges": merges[1], "tokens": tokens[0], "of_tokens": tokens[1]},
        **{side: side_as_json(each) for side, each in (("a", a), ("b", b))},
    }


def side_as_json(replayed: Replay) -> dict[str, Any]:
    return {
        "merges": len(replayed.steps),
        "faults": len(replayed.faults),
        "tie_breaks": [tie_break.value for tie_break in replayed.tie_breaks],
        "tokens": replayed.tokens,
        "bytes": replayed.bytes,
    }


def in_common(a: Replay, b: Replay) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how many merges both lists have of those that either has, and how many tokens."""
    merges = [{step.merge for step in each.steps} for each in (a, b)]
    tokens = [{left + right for left, right in own} for own in merges]
    (mine, theirs), (made, others) = merges, tokens
    return (len(mine & theirs), len(mine | theirs)), (len(made & others), len(made | others))
