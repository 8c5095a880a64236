"""What is wrong with a trainer's words or merges, in the words of the definition.

After a counterexample has become small, the first wrong merge has one of few reasons: a tie broken
otherwise, a pair that is less frequent, a pair that does not occur, a merge too many or too few, or
a merge that is not a tuple of two bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.common.units import counted_text, token_text
from variants.contract import Merge, WordCounts


def fault_of(
    words: Mapping[bytes, int], got: Sequence[Merge], want: Sequence[Merge], rule: str
) -> str:
    """Return one sentence about the first difference between two lists of merges.

    `words` are the words with their weights, and `rule` is the name of the tie-break.

    >>> fault_of({b"abc": 1}, [(b"a", b"b")], [(b"b", b"c")], "greatest_bytes")
    "merge 1 breaks a tie otherwise: (b'a', b'b') and (b'b', b'c') have count 1, and greatest_bytes takes (b'b', b'c')"
    """
    index = first_difference(got, want)
    number = index + 1
    if index == len(want):
        return f"merge {number} is one too many: the list ends after {index} merges"
    right = want[index]
    if index == len(got):
        [count] = counts_after(words, want[:index], right)
        return f"merge {number} is missing: {right} has count {count}"

    mine = got[index]
    if not isinstance(mine, tuple):
        kind = type(mine).__name__
        return f"merge {number} is a {kind}, {mine}; a merge is a tuple (left, right) of bytes"

    actual, due = counts_after(words, want[:index], mine, right)
    if actual == 0:
        return f"merge {number} does not occur: {mine}; {right} has count {due}"
    if actual == due:
        same = f"{mine} and {right} have count {due}"
        return f"merge {number} breaks a tie otherwise: {same}, and {rule} takes {right}"
    if actual < due:
        less = f"{mine} has count {actual}, and {right} has count {due}"
        return f"merge {number} is less frequent: {less}"
    return f"merge {number} is {mine}, but {right} is due"


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


def first_difference(merges: Sequence[Merge], want: Sequence[Merge]) -> int:
    """Return how many merges are equal before the first difference."""
    for index, (mine, right) in enumerate(zip(merges, want, strict=False)):
        if mine != right:
            return index
    return min(len(merges), len(want))


def counts_after(words: Mapping[bytes, int], merges: Sequence[Merge], *pairs: Merge) -> list[int]:
    """Return the count of each of these pairs after some merges.

    >>> counts_after({b"aaa": 2}, [], (b"a", b"a"))
    [4]
    >>> counts_after({b"aaa": 2}, [(b"a", b"a")], (b"aa", b"a"), (b"a", b"a"))
    [2, 0]
    """
    from harness.proof.true_counts import TrueCounts  # late: NumPy, for a wrong merge alone

    true = TrueCounts(WordCounts.from_items(words.items()), inherited=merges)
    return [true.text.counts.get(true.code(pair), 0) for pair in pairs]
