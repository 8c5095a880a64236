"""MiniBpeRust: `train_on_text`, fed one string. It is minbpe with its training in Rust, and takes
the same pair among equals.
"""

from __future__ import annotations

from variants.contract import Corpus, Merge
from variants.feeding import FIRST_MET
from variants.peers import Peer, merges_of_numbers, whole_text

WAY_IN = "rustminibpe.train_on_text, one string"
PEER = Peer("MiniBpeRust", "MiniBpeRust.rustminibpe", WAY_IN, FIRST_MET, has_threads=False)
feeding = PEER.feeding


@PEER.trainer
def train(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Train on a corpus as one string."""
    text, pattern = whole_text(PEER.name, corpus)
    learned = PEER.package.train_on_text(text, pattern, 256 + num_merges)
    return merges_of_numbers(pair for pair, _ in learned)
