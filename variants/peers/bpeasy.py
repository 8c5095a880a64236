"""bpeasy: `train_bpe`, fed whole documents, many at a time. It wants a longest token and gets one that nothing reaches.

It tells tokens in their order and not what they were made of.
"""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import SMALLEST_IDS
from variants.peers import Peer, documents, use_threads
from variants.peers.parts import BYTES, merges_of

LONGEST_TOKEN = 1 << 40
PEER = Peer("bpeasy", "bpeasy", "train_bpe, a string for each document", SMALLEST_IDS, [TieBreak.RAW_BYTES])
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
    """Train on the documents of a corpus. Raises Unavailable if the package is missing or lacks a needed feature."""
    PEER.check(corpus, tie_break, min_count)
    use_threads(threads)
    if num_merges == 0:  # it refuses a vocabulary of the 256 bytes
        return []
    learned = PEER.package.train_bpe(documents(corpus), corpus.pattern, LONGEST_TOKEN, 256 + num_merges)
    merges = merges_of([*BYTES, *sorted((token for token, rank in learned.items() if rank >= 256), key=learned.get)])
    meter.follow(merges)
    return merges
