"""bpeasy: `train_bpe`, fed whole documents, many at a time. It wants a longest token and gets one
that nothing reaches.

It tells tokens in their order and not what they were made of.
"""

from __future__ import annotations

from variants.contract import Corpus, Merge, TieBreak
from variants.feeding import SMALLEST_IDS
from variants.peers import BYTES, Peer, merges_of, stretches

LONGEST_TOKEN = 1 << 40
PEER = Peer(
    "bpeasy", "bpeasy", "train_bpe, a string for each document", SMALLEST_IDS, [TieBreak.RAW_BYTES]
)
feeding = PEER.feeding


@PEER.trainer
def train(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Train on the documents of a corpus."""
    if num_merges == 0:  # it refuses a vocabulary of the 256 bytes
        return []
    learned = PEER.package.train_bpe(
        stretches(corpus), corpus.pattern, LONGEST_TOKEN, 256 + num_merges
    )
    return merges_of(
        [
            *BYTES,
            *sorted((token for token, rank in learned.items() if rank >= 256), key=learned.get),
        ]
    )
