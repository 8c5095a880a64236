"""Parity-aware BPE: before every merge a language is chosen, and its best pair is merged in all
languages.

The language that needs most tokens goes next, so that all come out alike. The rule:

1. Each language has a training table, and perhaps a dev table or a positive ratio. One whose
   training table holds no byte is out from the start.
2. Languages still in are ranked by score, equal scores in the order given. The score is the
   weighted number of tokens of the dev words, or without dev of the training words; with ratios it
   is minus (start length / length) / ratio.
3. The first goes next. With a `window` of the last W choices, a language that occurs there n times
   is passed over unless n / W <= alpha / (number of all languages); if all are, the last one goes.
4. Its best pair is the most frequent in its own training words, ties by the tie-break. If that
   occurs fewer than max(1, min_count) times, the language is out for good, and nothing is noted.
   Otherwise the choice is noted, and the merge is made in all words of all languages, those for dev
   too.
5. The first `warmup_merges` merges go by the sum of all training counts, unnoted; without such a pair
   training ends.
6. It ends after the requested merges, or when all languages are out.

`naive` is the definition and counts a table before every choice. `train` has each distinct word
once, with its weights by language, and a lazily corrected heap for each language: in each alone, no
count rises after its pair is born. The price is that a merge visits the words of all languages.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Optional, Union

from variants.contract import (
    GPT2_CHARACTERS,
    GREATEST_BYTES,
    NULL_METER,
    Merge,
    Meter,
    Pair,
    TieBreak,
    WordCounts,
)
from variants.pair_queue import PairQueue, heap_functions
from variants.words import PairCounts, Vocabulary, count_pairs, merge_pair, most_frequent_pair

Tables = Sequence[WordCounts]
Served = tuple[Merge, Optional[int]]
"""A merge and the place of the language that it was chosen for; None if by the sum of all."""
BestPair = tuple[Optional[Pair], int]


class GreatestCharacters:
    """The tie-break of tokenizers' ParityBpeTrainer: the greatest pair of GPT-2's characters."""

    def key(self, _: int, token: bytes) -> str:
        return "".join(GPT2_CHARACTERS[byte] for byte in token)

    def reversed_key(self, _: int, token: bytes) -> str:
        return "".join(chr(1023 - ord(GPT2_CHARACTERS[byte])) for byte in token) + "\u0400"


Order = Union[TieBreak, GreatestCharacters]
TIE_BREAKS: dict[str, Order] = {
    **{rule.value: rule for rule in TieBreak},
    "greatest_characters": GreatestCharacters(),
}


@dataclass
class Choice:
    """Which language goes next. Raises ValueError for what cannot be meant."""

    tables: Tables
    dev: Tables = ()
    ratio: Sequence[float] = ()
    window: int = 0
    alpha: float = 2.0

    def __post_init__(self) -> None:
        languages = len(self.tables)
        if not languages:
            raise ValueError("no languages; pass one or more")
        if self.dev and self.ratio:
            raise ValueError("dev and ratio exclude each other; leave one out")

        for name, given in (("dev", self.dev), ("ratio", self.ratio)):
            if given and len(given) != languages:
                raise ValueError(
                    f"{name} is for {len(given)} of {languages} languages; give one for each or none"
                )

        if not all(0 < ratio < float("inf") for ratio in self.ratio):
            raise ValueError(f"ratio={list(self.ratio)} must be numbers above 0")
        if self.window < 0 or not self.alpha > 0:
            raise ValueError("window must be 0 or more, and alpha above 0")

        self.left = [place for place, table in enumerate(self.tables) if len(table.data)]
        self.recent: deque[int] = deque(maxlen=self.window)
        self.start: Sequence[int] = ()

    def next(self, lengths: Sequence[int]) -> int:
        ranked = sorted(self.left, key=lambda language: -self.score(language, lengths[language]))
        if not self.window:
            return ranked[0]
        share = self.alpha / len(self.tables)
        fit = (
            language for language in ranked if self.recent.count(language) / self.window <= share
        )
        return next(fit, ranked[-1])

    def score(self, language: int, length: int) -> float:
        if not self.ratio:
            return length
        return -((float(self.start[language]) / float(length)) / self.ratio[language])


def train(
    tables: Tables,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    dev: Tables = (),
    ratio: Sequence[float] = (),
    window: int = 0,
    alpha: float = 2.0,
    warmup_merges: int = 0,
    tie_break: Order = GREATEST_BYTES,
    min_count: int = 1,
    recounting: bool = False,
) -> list[Served]:
    """Learn merges with a heap for each language, or by counting again.

    >>> tables = [WordCounts.from_items(words) for words in ([(b"ab", 9)], [(b"cd", 1)])]
    >>> train(tables, 9, dev=[WordCounts.from_items(words) for words in ([(b"ab", 1)], [(b"cd", 2)])])
    [((b'c', b'd'), 1), ((b'a', b'b'), 0)]
    """
    choice = Choice(tables, dev, ratio, window, alpha)
    vocabulary = Vocabulary(tie_break.key if recounting else tie_break.reversed_key)
    meter.follow(vocabulary.merges)
    state = (Recounted if recounting else Indexed)(tables, dev, vocabulary, meter)

    served: list[int | None] = []
    meter.lap("init")
    choice.start = state.lengths()

    while choice.left and len(served) < num_merges:
        language = None if len(served) < warmup_merges else choice.next(state.lengths())
        pair, count = state.best(language)
        meter.lap("max")
        if pair is None or count < min_count:
            if language is None:
                break
            choice.left.remove(language)
            continue

        if language is not None:
            choice.recent.append(language)
        served.append(language)
        state.merge(pair, vocabulary.add(pair))
        meter.lap("update")
        meter.progress(len(served))

    return list(zip(vocabulary.merges, served))


naive = functools.partial(train, recounting=True)


class Recounted:
    """Each table separately, counted again at each question."""

    def __init__(self, tables: Tables, dev: Tables, vocabulary: Vocabulary, meter: Meter) -> None:
        self.keys, self.meter, self.languages = vocabulary.keys, meter, len(tables)
        self.tables = [list(map(list, table)) for table in (*tables, *dev)]
        self.weights = [list(table.values()) for table in (*tables, *dev)]

    def lengths(self) -> list[int]:
        last = list(zip(self.tables, self.weights))[-self.languages :]
        return [
            sum(len(word) * weight for word, weight in zip(words, weights))
            for words, weights in last
        ]

    def best(self, language: int | None) -> BestPair:
        chosen = slice(0, self.languages) if language is None else slice(language, language + 1)
        counts = count_pairs(
            list(chain(*self.tables[chosen])), list(chain(*self.weights[chosen])), self.meter
        )
        pair = most_frequent_pair(counts, self.keys, self.meter) if counts else None
        return pair, 0 if pair is None else counts[pair]

    def merge(self, pair: Pair, new_token: int) -> None:
        self.tables = [
            [merge_pair(word, pair, new_token) for word in words] for words in self.tables
        ]


class Indexed:
    """Each distinct word once. The sums of all languages are kept like the counts of one more."""

    def __init__(self, tables: Tables, dev: Tables, vocabulary: Vocabulary, meter: Meter) -> None:
        self.keys, self.meter, self.all = vocabulary.keys, meter, len(tables)

        weights: dict[bytes, dict[int, int]] = {}
        measured: dict[bytes, dict[int, int]] = {}
        for weighed, given in ((weights, tables), (measured, dev or tables)):
            for language, table in enumerate(given):
                for word, weight in table.items():
                    weighed.setdefault(word, {})[language] = weight
        for by_language in weights.values():
            by_language[self.all] = sum(by_language.values())

        listed = list(dict.fromkeys([*weights, *measured]))
        self.words = [list(word) for word in listed]
        self.weights = [tuple(weights.get(word, {}).items()) for word in listed]
        self.measured = [tuple(measured.get(word, {}).items()) for word in listed]

        self.tokens = [0] * self.all
        self.counts: list[PairCounts] = [{} for _ in range(self.all + 1)]
        self.places: dict[Pair, set[int]] = {}

        for place, word in enumerate(self.words):
            self.lengthen(place, len(word))
            self.change(zip(word, word[1:]), place, 1)
            for pair in zip(word, word[1:]):
                self.places.setdefault(pair, set()).add(place)

        heap = heap_functions("c")
        self.queues = [PairQueue(heap, counts, self.keys, meter) for counts in self.counts]

    def lengths(self) -> list[int]:
        return list(self.tokens)

    def lengthen(self, place: int, tokens: int) -> None:
        for language, weight in self.measured[place]:
            self.tokens[language] += weight * tokens

    def change(self, pairs: Iterable[Pair], place: int, sign: int) -> None:
        """Count the pairs of a word in, or out; a pair that a language has no more is forgotten
        there.
        """
        weights, counts = self.weights[place], self.counts
        for pair in pairs:
            for language, weight in weights:
                left = counts[language].get(pair, 0) + sign * weight
                if left:
                    counts[language][pair] = left
                else:
                    del counts[language][pair]

    def best(self, language: int | None) -> BestPair:
        place = self.all if language is None else language
        pair = self.queues[place].most_frequent_pair(self.meter)
        return pair, self.counts[place].get(pair, 0)

    def merge(self, pair: Pair, new_token: int) -> None:
        affected = self.places.pop(pair)
        born: set[Pair] = set()

        for place in affected:
            old = self.words[place]
            new = self.words[place] = merge_pair(old, pair, new_token)
            before, after = list(zip(old, old[1:])), list(zip(new, new[1:]))
            self.lengthen(place, len(new) - len(old))
            self.change(before, place, -1)
            self.change(after, place, 1)
            for gone in {*before} - {*after, pair}:
                self.places[gone].discard(place)
            for come in {*after} - {*before}:
                self.places.setdefault(come, set()).add(place)
                born.add(come)

        for queue in self.queues:
            queue.push(born, self.meter)
        self.meter.tally("words_rewritten", len(affected))
