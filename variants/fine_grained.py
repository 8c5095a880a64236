"""Fine-grained: inside an affected word, subtract and add only the pairs that the merge touches.

Part 8 of the series. Against incremental, the old and new pairs of a word are compared only in a
window from one token before the first occurrence to one after the last, and all changes of a merge
are summed before they are applied. The updates shrink; the maximum, which is nearly all the time,
stays, so the total hardly moves until the heap comes.

The trap here is the index: a pair that vanishes from the window may still occur in the word outside
it, and then the word must stay in the pair's index (the series' first attempt lost it; case C07).
By default the pairs outside the window are collected and looked up. The two ideas that part 8
leaves untried are parameters: `index="occurrences"` counts how often a word holds each pair
instead, and `coarse_on_repeat` falls back to the whole-word update when the pair occurs more than
once in the word.
"""

from __future__ import annotations

from collections.abc import Sequence

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, Pair, TieBreak, WordCounts
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair

PairToWords = dict[Pair, dict[int, int]]
"""The words that hold a pair, each with its occurrences (1 throughout unless the index counts
them).
"""


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    index: str = "words",
    coarse_on_repeat: bool = False,
) -> list[Merge]:
    """Learn merges with windowed updates; `index` is `words` or `occurrences`."""
    vocabulary = Vocabulary(tie_break.key)
    meter.follow(vocabulary.merges)
    state = IndexedWords(word_counts, meter, index, coarse_on_repeat)
    meter.lap("init")
    while state.pair_counts and len(vocabulary.merges) < num_merges:
        pair = most_frequent_pair(state.pair_counts, vocabulary.keys, meter)
        meter.lap("max")
        if state.pair_counts[pair] < min_count:
            break
        state.merge(pair, vocabulary.add(pair), meter)
        meter.lap("update")
    return vocabulary.merges


class IndexedWords:
    """The words as token ids, the count of every pair, and where each pair occurs."""

    def __init__(
        self, word_counts: WordCounts, meter: Meter, index: str, coarse_on_repeat: bool
    ) -> None:
        if index not in ("words", "occurrences"):
            raise ValueError(f"index is {index!r}; it is 'words' or 'occurrences'")
        self.counts_occurrences = index == "occurrences"
        self.coarse_on_repeat = coarse_on_repeat
        self.words = [list(word) for word in word_counts]
        self.weights = list(word_counts.values())
        self.pair_counts = count_pairs(self.words, self.weights, meter)
        self.pair_to_words: PairToWords = {}
        for number, word in enumerate(self.words):
            self.index_pairs(list(zip(word, word[1:])), number)

    def merge(self, pair: Pair, new_token: int, meter: Meter) -> tuple[PairCounts, set[Pair]]:
        """Merge `pair` in every word that holds it.

        Returns the changes of the pair counts, already applied, and the pairs that now stand in the
        windows.
        """
        changes: PairCounts = {}
        standing: set[Pair] = set()
        affected = self.pair_to_words.pop(pair)
        visited = updates = 0
        for number in affected:
            word, weight = self.words[number], self.weights[number]
            visited += len(word)
            first, last = first_and_last(word, pair)
            if self.coarse_on_repeat and first != last:
                start, stop = 0, len(word)
            else:
                start, stop = max(first - 1, 0), min(last + 3, len(word))
            old = word[start:stop]
            new = word[start:stop] = merge_pair(old, pair, new_token)
            gone, come = list(zip(old, old[1:])), list(zip(new, new[1:]))
            for old_pair in gone:
                changes[old_pair] = changes.get(old_pair, 0) - weight
            for new_pair in come:
                changes[new_pair] = changes.get(new_pair, 0) + weight
            self.unindex_pairs(gone, number)
            self.index_pairs(come, number)
            standing.update(come)
            visited += len(old)
            updates += len(gone) + len(come)

        for changed, change in changes.items():
            count = self.pair_counts.get(changed, 0) + change
            if count:
                self.pair_counts[changed] = count
            else:
                self.pair_counts.pop(changed, None)
                self.pair_to_words.pop(changed, None)
        meter.tally("words_rewritten", len(affected))
        meter.tally("positions_visited", visited)
        meter.tally("pair_updates", updates)
        return changes, standing

    def index_pairs(self, pairs: Sequence[Pair], number: int) -> None:
        """Note that word `number` holds `pairs`."""
        for pair in pairs:
            holders = self.pair_to_words.setdefault(pair, {})
            holders[number] = holders.get(number, 0) + 1 if self.counts_occurrences else 1

    def unindex_pairs(self, pairs: Sequence[Pair], number: int) -> None:
        """Note that `pairs` have left the window of word `number`, which may still hold them
        elsewhere.
        """
        word = self.words[number]
        remaining = set() if self.counts_occurrences else set(zip(word, word[1:]))
        for pair in pairs:
            # None: the pair being merged, whose index is already gone
            holders = self.pair_to_words.get(pair)
            if holders is None or number not in holders or pair in remaining:
                continue
            if self.counts_occurrences and holders[number] > 1:
                holders[number] -= 1
            else:
                del holders[number]


def first_and_last(word: Sequence[int], pair: Pair) -> tuple[int, int]:
    """Where `pair` first and last begins in a word that holds it.

    >>> first_and_last([1, 1, 2, 3, 1, 2], (1, 2))
    (1, 4)
    """
    left, right = pair
    first = word.index(left)
    while word[first + 1] != right:
        first = word.index(left, first + 1)
    last = len(word) - 2
    while word[last] != left or word[last + 1] != right:
        last -= 1
    return first, last
