"""What is wrong with a trainer's words or merges, in the words of the definition.

A merge is explained by the true counts at its moment: a tie broken otherwise, a pair that is less
frequent than another, one that may not be merged, or a merge too many or too few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from harness.common.units import count_text, counted_text, occasions_text, token_text
from harness.proof.compiled_replay import inherited_first, moment_after
from variants.contract import Merge, TieBreak, Veto, WordCounts

MAXIMUM, TIE, WRONG, TOO_RARE, NOT_ALLOWED = "maximum", "tie", "wrong", "too_rare", "not_allowed"


class Step(NamedTuple):
    """One merge, numbered from 1, with what was true of it at its moment.

    `occurrences` is the count of its pair. `highest` is the highest count of a pair that may be merged (0: no
    pair is left), `sharing` how many pairs have it, and `choices` which of them each tie-break
    takes. `reason` says why a pair may not be merged.
    """

    number: int
    merge: Merge
    judgement: str
    occurrences: int = 0
    highest: int = 0
    sharing: int = 0
    choices: Mapping[TieBreak, Merge] = {}
    reason: str = ""


def explained(
    words: WordCounts,
    merges: Sequence[Merge],
    number: int,
    tie_breaks: Sequence[TieBreak] = tuple(TieBreak),
    *,
    min_count: int = 1,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
) -> Step:
    """What is true of merge `number` of a list, after those before it; inherited merges and the veto
    are as the trainer got them.
    """
    before, merge = merges[: number - 1], merges[number - 1]
    staying = sum(inherited_first(merges, inherited, inheriting)[1])
    moment = moment_after(words, before, merge, inherited=staying, veto=veto)
    if number <= staying or (inheriting == "kept" and number <= len(inherited)):
        reason = "in place of an inherited one"
    elif moment is None:
        reason = "after a merge that cannot be made"
    elif not {*moment.spellings} >= {*merge}:
        reason = "of a token that no earlier merge makes"
    elif merge in before:
        reason = "made before"
    elif (veto is not None and veto(*merge)) or b"".join(merge) in moment.spellings[256:][:staying]:
        reason = "vetoed, or spelling an inherited token again"
    else:
        reason = ""
    if moment is None:
        return Step(number, merge, NOT_ALLOWED, reason=reason)

    count = moment.pair_count
    if reason:
        judgement = NOT_ALLOWED
    elif not count or count < moment.highest:
        judgement = WRONG
    elif count < min_count:
        judgement = TOO_RARE
    else:
        judgement = TIE if len(moment.best) > 1 else MAXIMUM
    choices = {tie_break: moment.choice(tie_break) for tie_break in tie_breaks if moment.best}
    return Step(number, merge, judgement, count, moment.highest, len(moment.best), choices, reason)


def describe(step: Step) -> str:
    """One merge, with what was true of it.

    >>> tied = {TieBreak.RAW_BYTES: (b"a", b"b"), TieBreak.GREATEST_BYTES: (b"c", b"d")}
    >>> describe(Step(7, (b"a", b"b"), TIE, 3, 3, 2, tied))
    "merge 7: b'a' + b'b', 3 times, a tie with 1 other; raw_bytes takes b'a' + b'b'; greatest_bytes takes b'c' + b'd'"
    """
    text = f"merge {step.number}: {merge_text(step.merge)}"
    if step.judgement == NOT_ALLOWED:
        return f"{text}, {step.reason}"
    text += f", {occasions_text(step.occurrences)}"
    if step.judgement == MAXIMUM:
        return f"{text}, the most frequent pair of its moment"
    if step.judgement == TOO_RARE:
        return f"{text}, below min_count"
    if not step.highest:
        return f"{text}; no pair was left"

    takers: dict[Merge, list[str]] = {}
    for tie_break, merge in step.choices.items():
        takers.setdefault(merge, []).append(tie_break.value)
    if step.sharing == 1:
        return f"{text}; the most frequent is {merge_text(*takers)}, {occasions_text(step.highest)}"

    if step.judgement == TIE:
        text += (
            f", a tie with {count_text(step.sharing - 1)} other{'s' if step.sharing > 2 else ''}"
        )
    else:
        text += f"; {count_text(step.sharing)} pairs occur {occasions_text(step.highest)}"
    for pair, names in takers.items():
        text += f"; {', '.join(names)} take{'s' * (len(names) == 1)} {merge_text(pair)}"
    return text


def merge_text(merge: Merge) -> str:
    """The two tokens, up to 40 characters of each."""
    return " + ".join(f"b{token_text(token, 40)}" for token in merge)


def words_fault(got: WordCounts, want: WordCounts) -> str | None:
    """Return one sentence about the most frequent word with another count; None if all are equal.

    >>> words_fault(WordCounts.from_items([(b" low", 47)]), WordCounts.from_items([(b" low", 45)]))
    "its words differ in 1 word: ' low' has count 47, not 45"
    """
    mine, right = dict(got.items()), dict(want.items())
    differing = {word for word, _ in mine.items() ^ right.items()}
    if not differing:
        return None

    word = max(differing, key=lambda word: (max(mine.get(word, 0), right.get(word, 0)), word))
    counts = f"has count {mine.get(word, 0)}, not {right.get(word, 0)}"
    number = counted_text(len(differing), "word")
    return f"its words differ in {number}: {token_text(word, 60)} {counts}"
