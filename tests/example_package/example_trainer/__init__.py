"""A trainer of a package of its own: the definition, but a word that has become one token is not looked at again.

It imports the contract, and could do without: what it is given reads as a mapping from words to counts, the meter is
called by three names, the tie-break has a key for every token.
"""

from __future__ import annotations

from collections import Counter

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts

Tokens = list[bytes]


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    keep_finished: bool = False,
) -> list[Merge]:
    """Learn merges; `keep_finished` looks at every word every time."""
    merges: list[Merge] = []
    meter.follow(merges)
    keys = {bytes((byte,)): tie_break.key(byte, bytes((byte,))) for byte in range(256)}
    words = [([bytes((byte,)) for byte in word], count) for word, count in word_counts.items()]
    meter.lap("init")
    while len(merges) < num_merges:
        counts: Counter[Merge] = Counter()
        for tokens, count in words:
            for pair in zip(tokens, tokens[1:], strict=False):
                counts[pair] += count
        meter.lap("update")
        best = max(counts, key=lambda pair: (counts[pair], keys[pair[0]], keys[pair[1]]), default=None)
        meter.lap("max")
        if best is None or counts[best] < min_count:
            break
        merges.append(best)
        token = best[0] + best[1]
        keys[token] = tie_break.key(len(keys), token)
        words = [(merged(tokens, best), count) for tokens, count in words if keep_finished or len(tokens) > 1]
        meter.lap("update")
    return merges


def merged(tokens: Tokens, pair: Merge) -> Tokens:
    """The tokens with the pair joined, left to right."""
    found: Tokens = []
    place = 0
    while place < len(tokens):
        here = place + 1 < len(tokens) and (tokens[place], tokens[place + 1]) == pair
        found.append(pair[0] + pair[1] if here else tokens[place])
        place += 2 if here else 1
    return found
