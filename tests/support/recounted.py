"""The plain oracle of the replay: before every merge all pairs of all words are counted again."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from variants.contract import NULL_METER, Merge, Pair, TieBreak
from variants.words import count_pairs, merge_pair


class Best(NamedTuple):
    """The highest count, how many pairs have it, and which of them each tie-break takes."""

    highest: int
    sharing: int
    choices: Mapping[TieBreak, Merge]


class Recounted(NamedTuple):
    """The count of each merge at its moment, and the best pairs then; the best pairs and the number
    of tokens after the last one.
    """

    counts: list[int]
    best: list[Best]
    rest: Best
    tokens: int


def recounted(words: Mapping[bytes, int], merges: Sequence[Merge]) -> Recounted:
    texts, weights = [list(word) for word in words], list(words.values())
    ids = {bytes((byte,)): byte for byte in range(256)}
    counts, best = [], []
    for left, right in merges:
        pair = ids.get(left, -1), ids.get(right, -1)
        pairs = count_pairs(texts, weights, NULL_METER)
        counts.append(pairs.get(pair, 0))
        best.append(best_of(pairs, list(ids)))
        new = ids.setdefault(left + right, len(ids))
        texts = [merge_pair(text, pair, new) for text in texts]

    rest = best_of(count_pairs(texts, weights, NULL_METER), list(ids))
    tokens = sum(len(text) * weight for text, weight in zip(texts, weights, strict=True))
    return Recounted(counts, best, rest, tokens)


def best_of(counts: Mapping[Pair, int], tokens: Sequence[bytes]) -> Best:
    highest = max(counts.values(), default=0)
    tied = [pair for pair in counts if counts[pair] == highest]
    choices: dict[TieBreak, Merge] = {}
    for tie_break in TieBreak if tied else ():
        left, right = max(
            tied, key=lambda pair: [tie_break.key(token, tokens[token]) for token in pair]
        )
        choices[tie_break] = tokens[left], tokens[right]
    return Best(highest, len(tied), choices)
