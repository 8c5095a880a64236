"""bpeasy: `train_bpe`, fed whole documents, many at a time. It wants a longest token and gets one that nothing reaches.

It tells tokens in their order and not what they were made of.
"""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import BY_THE_PATTERN, CUT_OUT, SMALLEST_IDS, Feeding
from variants.peers import documents, expect_text_work, installed, use_threads, with_version
from variants.peers.parts import BYTES, merges_of

NAME = "bpeasy"
LONGEST_TOKEN = 1 << 40
bpeasy = installed("bpeasy")


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.RAW_BYTES,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on the documents of a corpus. Raises Unavailable where the package is absent or lacks what is asked."""
    expect_text_work(NAME, bpeasy, corpus, tie_break, [TieBreak.RAW_BYTES], min_count)
    use_threads(threads)
    if num_merges == 0:  # it refuses a vocabulary of the 256 bytes
        return []
    learned = bpeasy.train_bpe(documents(corpus), corpus.pattern, LONGEST_TOKEN, 256 + num_merges)
    merges = merges_of([*BYTES, *sorted((token for token, rank in learned.items() if rank >= 256), key=learned.get)])
    meter.follow(merges)
    return merges


def feeding(corpus: Corpus) -> Feeding:  # noqa: ARG001
    return Feeding(with_version(NAME), "train_bpe, a string for each document", BY_THE_PATTERN, CUT_OUT, SMALLEST_IDS)
