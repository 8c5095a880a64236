"""rustbpe: `train_from_iterator`, fed whole documents.

It tells tokens in their order and not what they were made of; a token's parts are what the merges before it leave of
its bytes. Finding them is some hundredths of its time, and is measured with it, since nobody can have its merges
without.
"""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.peers import (
    documents,
    expect,
    expect_no_minimum,
    expect_text,
    expect_tie_break,
    installed,
    use_threads,
)

NAME = "rustbpe"
rustbpe = installed("rustbpe")


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.RAW_BYTES,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on the documents of a corpus. Raises Unavailable where the package is absent or lacks what is asked."""
    expect(NAME, rustbpe)
    expect_tie_break(NAME, tie_break, [TieBreak.RAW_BYTES])
    expect_no_minimum(NAME, min_count)
    expect_text(NAME, corpus)
    use_threads(threads)
    tokenizer = rustbpe.Tokenizer()
    tokenizer.train_from_iterator(documents(corpus), 256 + num_merges, pattern=corpus.pattern)
    tokens = [bytes(token) for token, _ in tokenizer.get_mergeable_ranks()]
    merges = merges_of(tokens)
    meter.follow(merges)
    return merges


def merges_of(tokens: list[bytes]) -> list[Merge]:
    """The merges behind tokens in the order of their ids, the 256 bytes first.

    >>> merges_of([bytes((byte,)) for byte in range(256)] + [b"ab", b"abab"])
    [(b'a', b'b'), (b'ab', b'ab')]
    """
    rank_of = {token: rank for rank, token in enumerate(tokens)}
    return [parts_of(token, rank, rank_of) for rank, token in enumerate(tokens) if rank >= 256]


def parts_of(token: bytes, rank: int, rank_of: dict[bytes, int]) -> Merge:
    """The two parts that a token was made of: the only two known ones, or those that earlier merges leave of it."""
    possible = [
        (token[:cut], token[cut:])
        for cut in range(1, len(token))
        if rank_of.get(token[:cut], rank) < rank and rank_of.get(token[cut:], rank) < rank
    ]
    if len(possible) == 1:
        return possible[0]
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 2:
        ranks = [rank_of.get(left + right, rank) for left, right in zip(parts, parts[1:])]
        place = ranks.index(min(ranks))
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts[0], parts[1]
