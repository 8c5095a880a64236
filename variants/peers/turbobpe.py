"""turbobpe: `RegexTokenizer.train`, fed one string. It merges up to ten of the most frequent pairs in one pass.

Its authors call that approximate, and `batch_size=1` exact; what came of it in a run says the class of its merges.
"""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import Feeding
from variants.peers import (
    BY_THE_PATTERN,
    CUT_OUT,
    expect,
    expect_no_minimum,
    expect_own_ties,
    expect_text,
    installed,
    whole_text,
    with_version,
)

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
    expect(NAME, turbobpe)
    expect_own_ties(NAME, tie_break, TIES)
    expect_no_minimum(NAME, min_count)
    expect_text(NAME, corpus)
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
