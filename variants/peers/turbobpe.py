"""turbobpe: `RegexTokenizer.train`, fed one string. It merges up to ten of the most frequent pairs
in one pass.

Its authors call that approximate, and `batch_size=1` exact; what came of it in a run says the class
of its merges.
"""

from __future__ import annotations

from variants.contract import Corpus, Merge
from variants.feeding import Feeding
from variants.peers import Peer, whole_text

TIES = "the pair that came first into its table"
PEER = Peer("turbobpe", "turbobpe", "RegexTokenizer.train, one string", TIES, has_threads=False)


@PEER.trainer
def train(corpus: Corpus, num_merges: int, *, batch_size: int = 10) -> list[Merge]:
    """Train on a corpus as one string."""
    text, pattern = whole_text(PEER.name, corpus)
    tokenizer = PEER.package.RegexTokenizer(pattern)
    tokenizer.train(text, 256 + num_merges, batch_size=batch_size)
    return [(tokenizer.vocab[left], tokenizer.vocab[right]) for left, right in tokenizer.merges]


def feeding(corpus: Corpus, batch_size: int = 10) -> Feeding:
    fed = PEER.feeding(corpus)
    return fed._replace(way_in=f"{fed.way_in}, batch_size={batch_size}")
