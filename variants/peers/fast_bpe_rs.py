"""fast-bpe-rs: `BPE.train`, fed whole documents. It tells tokens one by one and not what they were
made of.
"""

from __future__ import annotations

from itertools import takewhile

from variants.contract import Corpus, Merge, TieBreak
from variants.feeding import SMALLEST_IDS
from variants.peers import BYTES, Peer, merges_of, stretches

PEER = Peer(
    "fast-bpe-rs",
    "fast_bpe_rs",
    "BPE.train, a string for each document",
    SMALLEST_IDS,
    [TieBreak.RAW_BYTES],
)
feeding = PEER.feeding


@PEER.trainer
def train(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Train on the documents of a corpus.

    In a run of one token of odd length it does not replace from the left, so that its counts are
    wrong from there on.
    """
    tokenizer = PEER.package.BPE(corpus.pattern)
    tokenizer.train(256 + num_merges, list(stretches(corpus)))
    # Beyond the last there is nothing, which it writes as no bytes.
    learned = takewhile(len, (tokenizer.decode([rank]) for rank in range(256, 256 + num_merges)))
    return merges_of([*BYTES, *learned])
