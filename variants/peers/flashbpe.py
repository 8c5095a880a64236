"""flashbpe: `train_from_iterator`, fed whole documents. It tells tokens in order and not what they
were made of.
"""

from __future__ import annotations

from variants.contract import Corpus, Merge, TieBreak
from variants.feeding import GPT2_ORDER
from variants.peers import Peer, merges_of, stretches

WAY_IN = "train_from_iterator, a string for each document"
PEER = Peer("flashbpe", "flashbpe", WAY_IN, GPT2_ORDER, [TieBreak.HUGGINGFACE])
feeding = PEER.feeding


@PEER.trainer
def train(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Train on the documents of a corpus."""
    tokenizer = PEER.package.Tokenizer()
    tokenizer.train_from_iterator(stretches(corpus), 256 + num_merges, pattern=corpus.pattern)
    return merges_of([bytes(token) for token, _ in tokenizer.get_mergeable_ranks()])
