"""rustbpe: `train_from_iterator`, fed whole documents. It tells tokens in order and not what they
were made of.
"""

from __future__ import annotations

from variants.contract import Corpus, Merge, TieBreak
from variants.feeding import SMALLEST_IDS
from variants.peers import Peer, merges_of, stretches

WAY_IN = "train_from_iterator, a string for each document"
PEER = Peer("rustbpe", "rustbpe", WAY_IN, SMALLEST_IDS, [TieBreak.RAW_BYTES])
feeding = PEER.feeding


@PEER.trainer
def train(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Train on the documents of a corpus. It counts in 32 bits: beyond 2**31 - 1 its counts are
    wrong.
    """
    tokenizer = PEER.package.Tokenizer()
    tokenizer.train_from_iterator(stretches(corpus), 256 + num_merges, pattern=corpus.pattern)
    return merges_of([bytes(token) for token, _ in tokenizer.get_mergeable_ranks()])
