"""tiktoken's educational trainer: `bpe_train`, fed one string, without the pictures that it draws of every merge.

It counts every pair of the whole text again at each merge. It tells tokens and not what they were made of.
"""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import FIRST_MET
from variants.peers import Peer, whole_text
from variants.peers.parts import merges_of

PEER = Peer("tiktoken", "tiktoken._educational", "_educational.bpe_train, one string", FIRST_MET)
feeding = PEER.feeding


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak | None = None,
    min_count: int = 1,
) -> list[Merge]:
    """Train on a corpus as one string. Raises Unavailable if the package is missing or lacks a needed feature.

    When no pair is left it raises ValueError.
    """
    PEER.check(corpus, tie_break, min_count)
    text, pattern = whole_text(PEER.name, corpus)
    learned = PEER.package.bpe_train(text, 256 + num_merges, pattern, visualise=None)
    merges = merges_of(sorted(learned, key=learned.get))
    meter.follow(merges)
    return merges
