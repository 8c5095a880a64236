"""minbpe's algorithm, written afresh: every chunk of the text in its place, and every pair counted
again at each merge.

Against naive, equal chunks are not put together with a weight: what occurs a thousand times is
counted and rewritten a thousand times. Among pairs of one count the one that is met first wins,
which is the one that comes first in the text as it is by then; that is none of the tie-breaks,
which take other pairs here, as they do everywhere. tiktoken's educational trainer goes the same
way. (Where both raise an error because no pair is left, this ends.)
"""

from __future__ import annotations

from variants.contract import NULL_METER, Corpus, Merge, Meter, Pair, TieBreak
from variants.counting.pretokenize import pre_tokens
from variants.feeding import BY_THE_PATTERN, CUT_OUT, FIRST_MET, Feeding
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair


def train(
    corpus: Corpus,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak | None = None,
    min_count: int = 1,
) -> list[Merge]:
    """Learn merges by recounting the whole text. Raises what a word counter raises."""
    vocabulary = Vocabulary((tie_break or TieBreak.GREATEST_BYTES).key)
    meter.follow(vocabulary.merges)

    chunks = [list(chunk) for chunk in pre_tokens(corpus, meter)]
    once = [1] * len(chunks)
    meter.lap("count")
    pair_counts = count_pairs(chunks, once, meter)
    meter.lap("init")

    while pair_counts and len(vocabulary.merges) < num_merges:
        if tie_break is None:
            pair = first_most_frequent_pair(pair_counts, meter)
        else:
            pair = most_frequent_pair(pair_counts, vocabulary.keys, meter)
        meter.lap("max")
        if pair_counts[pair] < min_count:
            break

        new_token = vocabulary.add(pair)
        chunks = [merge_pair(chunk, pair, new_token) for chunk in chunks]
        pair_counts = count_pairs(chunks, once, meter)
        meter.lap("update")
    return vocabulary.merges


def first_most_frequent_pair(pair_counts: PairCounts, meter: Meter) -> Pair:
    """Of the pairs of the greatest count the one that was counted first: a dictionary keeps the
    order of the text.

    >>> first_most_frequent_pair({(98, 98): 1, (97, 98): 2, (99, 98): 2}, NULL_METER)
    (97, 98)
    """
    meter.tally("pairs_scanned", len(pair_counts))
    return max(pair_counts, key=pair_counts.__getitem__)


def feeding(corpus: Corpus) -> Feeding:  # noqa: ARG001
    return Feeding("here, after minbpe", "the file", BY_THE_PATTERN, CUT_OUT, FIRST_MET)
