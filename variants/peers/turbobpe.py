"""turbobpe: `RegexTokenizer.train`, fed one string. It merges up to ten of the most frequent pairs in one pass.

Its authors call that approximate, and `batch_size=1` exact; what came of it in a run says the class of its merges.
"""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import BY_THE_PATTERN, CUT_OUT, Feeding
from variants.peers import expect_text_work_with_own_ties, installed, whole_text, with_version

NAME = "turbobpe"
TIES = "the pair that came first into its table"
turbobpe = installed("turbobpe")


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak | None = None,
    min_count: int = 1,
    batch_size: int = 10,
) -> list[Merge]:
    """Train on a corpus as one string. Raises Unavailable where the package is absent or lacks what is asked."""
    expect_text_work_with_own_ties(NAME, turbobpe, corpus, tie_break, TIES, min_count)
    text, pattern = whole_text(NAME, corpus)
    tokenizer = turbobpe.RegexTokenizer(pattern)
    tokenizer.train(text, 256 + num_merges, batch_size=batch_size)
    merges = [(tokenizer.vocab[left], tokenizer.vocab[right]) for left, right in tokenizer.merges]
    meter.follow(merges)
    return merges


def feeding(corpus: Corpus, batch_size: int = 10) -> Feeding:  # noqa: ARG001
    return Feeding(
        with_version(NAME),
        f"RegexTokenizer.train, one string, batch_size={batch_size}",
        BY_THE_PATTERN,
        CUT_OUT,
        TIES,
        None if batch_size == 1 else f"it makes up to {batch_size} merges by the counts before the first of them",
    )
