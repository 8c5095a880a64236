"""tiktoken's educational trainer: `bpe_train`, fed one string, without the charts that it draws
of every merge.

It counts every pair of the whole text again at each merge. It tells tokens and not what they were
made of.
"""

from __future__ import annotations

from variants.contract import Corpus, Merge
from variants.feeding import FIRST_MET
from variants.peers import Peer, merges_of, whole_text

WAY_IN = "_educational.bpe_train, one string"
PEER = Peer("tiktoken", "tiktoken._educational", WAY_IN, FIRST_MET, has_threads=False)
feeding = PEER.feeding


@PEER.trainer
def train(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Train on a corpus as one string. When no pair is left it raises ValueError."""
    text, pattern = whole_text(PEER.name, corpus)
    learned = PEER.package.bpe_train(text, 256 + num_merges, pattern, visualise=None)
    return merges_of(sorted(learned, key=learned.get))
