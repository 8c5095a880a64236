"""tiktoken's educational trainer: `bpe_train`, fed one string, without the pictures that it draws of every merge.

It counts every pair of the whole text again at each merge. It tells tokens and not what they were made of.
"""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, TieBreak
from variants.feeding import BY_THE_PATTERN, CUT_OUT, FIRST_MET, Feeding
from variants.peers import expect_text_work_with_own_ties, installed, whole_text, with_version
from variants.peers.parts import merges_of

NAME = "tiktoken"
educational = installed("tiktoken._educational")


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak | None = None,
    min_count: int = 1,
) -> list[Merge]:
    """Train on a corpus as one string. Raises Unavailable where the package is absent or lacks what is asked.

    When no pair is left it raises ValueError.
    """
    expect_text_work_with_own_ties(NAME, educational, corpus, tie_break, FIRST_MET, min_count)
    text, pattern = whole_text(NAME, corpus)
    learned = educational.bpe_train(text, 256 + num_merges, pattern, visualise=None)
    merges = merges_of(sorted(learned, key=learned.get))
    meter.follow(merges)
    return merges


def feeding(corpus: Corpus) -> Feeding:  # noqa: ARG001
    return Feeding(with_version(NAME), "_educational.bpe_train, one string", BY_THE_PATTERN, CUT_OUT, FIRST_MET)
