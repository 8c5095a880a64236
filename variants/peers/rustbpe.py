"""rustbpe: `train_from_iterator`, fed whole documents. It tells tokens in order and not what they were made of."""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import SMALLEST_IDS
from variants.peers import Peer, documents, use_threads
from variants.peers.parts import merges_of

WAY_IN = "train_from_iterator, a string for each document"
PEER = Peer("rustbpe", "rustbpe", WAY_IN, SMALLEST_IDS, [TieBreak.RAW_BYTES])
feeding = PEER.feeding


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.RAW_BYTES,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on the documents of a corpus. Raises Unavailable if the package is missing or lacks a needed feature.

    It counts in 32 bits: beyond 2**31 - 1 its counts are wrong.
    """
    PEER.check(corpus, tie_break, min_count)
    use_threads(threads)
    tokenizer = PEER.package.Tokenizer()
    tokenizer.train_from_iterator(documents(corpus), 256 + num_merges, pattern=corpus.pattern)
    merges = merges_of([bytes(token) for token, _ in tokenizer.get_mergeable_ranks()])
    meter.follow(merges)
    return merges
