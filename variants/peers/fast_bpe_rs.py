"""fast-bpe-rs: `BPE.train`, fed whole documents. It tells tokens one by one and not what they were made of."""

from __future__ import annotations

from itertools import takewhile

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import SMALLEST_IDS
from variants.peers import Peer, documents, use_threads
from variants.peers.parts import BYTES, merges_of

PEER = Peer("fast-bpe-rs", "fast_bpe_rs", "BPE.train, a string for each document", SMALLEST_IDS, [TieBreak.RAW_BYTES])
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

    In a run of one token of odd length it does not replace from the left, so that its counts are wrong from there on.
    """
    PEER.check(corpus, tie_break, min_count)
    use_threads(threads)
    tokenizer = PEER.package.BPE(corpus.pattern)
    tokenizer.train(256 + num_merges, list(documents(corpus)))
    # Beyond the last there is nothing, which it writes as no bytes.
    learned = takewhile(len, (tokenizer.decode([rank]) for rank in range(256, 256 + num_merges)))
    merges = merges_of([*BYTES, *learned])
    meter.follow(merges)
    return merges
