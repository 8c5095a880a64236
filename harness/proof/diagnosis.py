"""What is wrong with a trainer's merges, in the words of the definition.

After a counterexample has become small, the first wrong merge has one of few reasons: a tie broken
otherwise, a pair that is less frequent, a pair that does not occur, a merge too many or too few, or
a merge that is not a tuple of two bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from variants.contract import Merge


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
    if index == len(got):
        return f"merge {number} is missing: {want[index]} has count {counts_after(words, want[:index])[want[index]]}"

    mine = got[index]
    right = want[index]
    if not isinstance(mine, tuple):
        kind = type(mine).__name__
        return f"merge {number} is a {kind}, {mine}; a merge is a tuple (left, right) of bytes"

    counts = counts_after(words, want[:index])
    if counts[mine] == 0:
        return f"merge {number} does not occur: {mine}; {right} has count {counts[right]}"
    if counts[mine] == counts[right]:
        same = f"{mine} and {right} have count {counts[right]}"
        return f"merge {number} breaks a tie otherwise: {same}, and {rule} takes {right}"
    if counts[mine] < counts[right]:
        less = f"{mine} has count {counts[mine]}, and {right} has count {counts[right]}"
        return f"merge {number} is less frequent: {less}"
    return f"merge {number} is {mine}, but {right} is due"


def first_difference(merges: Sequence[Merge], want: Sequence[Merge]) -> int:
    """Return how many merges are equal before the first difference."""
    for index, (mine, right) in enumerate(zip(merges, want, strict=False)):
        if mine != right:
            return index
    return min(len(merges), len(want))


def counts_after(words: Mapping[bytes, int], merges: Sequence[Merge]) -> Counter[Merge]:
    """Return the count of every pair after some merges.

    >>> counts_after({b"aaa": 2}, [])
    Counter({(b'a', b'a'): 4})
    >>> counts_after({b"aaa": 2}, [(b"a", b"a")])
    Counter({(b'aa', b'a'): 2})
    """
    counts: Counter[Merge] = Counter()
    for word, weight in words.items():
        tokens = [word[index : index + 1] for index in range(len(word))]
        for merge in merges:
            tokens = merged(tokens, merge)
        for pair in zip(tokens, tokens[1:], strict=False):
            counts[pair] += weight
    return counts


def merged(tokens: Sequence[bytes], merge: Merge) -> list[bytes]:
    """Return the tokens of a word after one merge, made from left to right."""
    result: list[bytes] = []
    index = 0
    while index < len(tokens):
        if tuple(tokens[index : index + 2]) == merge:
            result.append(merge[0] + merge[1])
            index += 2
        else:
            result.append(tokens[index])
            index += 1
    return result
