"""fast-bpe-rs: `BPE.train`, fed whole documents. It tells tokens one by one and not what they were made of."""

from __future__ import annotations

from itertools import takewhile

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import BY_THE_PATTERN, CUT_OUT, SMALLEST_IDS, Feeding
from variants.peers import documents, expect_text_work, installed, use_threads, with_version
from variants.peers.parts import BYTES, merges_of

NAME = "fast-bpe-rs"
fast_bpe_rs = installed("fast_bpe_rs")


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = TieBreak.RAW_BYTES,
    min_count: int = 1,
    threads: int = 1,
) -> list[Merge]:
    """Train on the documents of a corpus. Raises Unavailable where the package is absent or lacks what is asked.

    In a run of one token of odd length it does not replace from the left, so that its counts are wrong from there on.
    """
    expect_text_work(NAME, fast_bpe_rs, corpus, tie_break, [TieBreak.RAW_BYTES], min_count)
    use_threads(threads)
    tokenizer = fast_bpe_rs.BPE(corpus.pattern)
    tokenizer.train(256 + num_merges, list(documents(corpus)))
    # Beyond the last there is nothing, which it writes as no bytes.
    learned = takewhile(len, (tokenizer.decode([rank]) for rank in range(256, 256 + num_merges)))
    merges = merges_of([*BYTES, *learned])
    meter.follow(merges)
    return merges


def feeding(corpus: Corpus) -> Feeding:  # noqa: ARG001
    return Feeding(with_version(NAME), "BPE.train, a string for each document", BY_THE_PATTERN, CUT_OUT, SMALLEST_IDS)
