"""tinybpe: `Trainer`, fed one string and a function that cuts it into pre-tokens."""

from __future__ import annotations

import regex

from variants.contract import Corpus, Merge
from variants.feeding import FIRST_MET, Feeding
from variants.peers import Peer, merges_of_numbers, whole_text

PEER = Peer("tinybpe", "tinybpe", "Trainer, one string", FIRST_MET, has_threads=False)


@PEER.trainer
def train(corpus: Corpus, num_merges: int) -> list[Merge]:
    """Train on a corpus as one string. It refuses a text without pre-tokens."""
    text, pattern = whole_text(PEER.name, corpus)
    if not text:
        return []

    def preprocess(text: str) -> list[bytes]:
        return [found.group().encode() for found in regex.finditer(pattern, text)]

    trainer = PEER.package.Trainer(text, preprocess)
    trainer.train(num_merges)
    return merges_of_numbers(trainer.merges)


def feeding(corpus: Corpus) -> Feeding:
    return PEER.feeding(corpus)._replace(pre_tokens="a function, by the pattern")
