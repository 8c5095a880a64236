"""Words as one text of tokens in which any pair can be merged: how often every pair truly occurs, at every moment.

It follows merges, whoever made them, instead of choosing them. Each merge visits the places of its pair and no others,
all of them at once in NumPy's arrays, so that the whole work is in proportion to the bytes of the distinct words, be
they many short ones or a single long one.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from variants.contract import WordCounts

BYTES = 256
LEFT_SHIFT = 32
Array = np.ndarray[Any, Any]
Code = int
"""Two token ids in one number, the left one above 32 bits."""


class Births(NamedTuple):
    """The places where pairs came into being together: of `codes[i]` it is `places[starts[i]:starts[i + 1]]`."""

    codes: Array
    starts: Array
    places: Array

    def of(self, code: Code) -> Array:
        found = int(np.searchsorted(self.codes, code))
        if found == len(self.codes) or self.codes[found] != code:
            return self.places[:0]
        return self.places[self.starts[found] : self.starts[found + 1]]


class PairText:
    """The tokens of all words in a row, linked within each word; `counts` are those of every pair that occurs.

    Position `end` stands for the neighbour that the first and the last token of a word do not have. Where a token was
    swallowed by the one before it, `token` is ABSENT.
    """

    ABSENT = -1

    def __init__(self, word_counts: WordCounts) -> None:
        data = np.frombuffer(word_counts.data, dtype=np.uint8)
        offsets = np.frombuffer(word_counts.offsets, dtype=np.int64)
        lengths = np.diff(offsets)
        self.end = len(data)
        number = np.int32 if self.end < 2**31 - 1 else np.int64
        self.token = np.append(data.astype(np.int32), np.int32(self.ABSENT))
        self.after = np.arange(1, self.end + 2, dtype=number)
        self.before = np.arange(-1, self.end, dtype=number)
        filled = offsets[:-1][lengths > 0]
        self.before[filled] = self.end
        self.after[filled + lengths[lengths > 0] - 1] = self.end
        self.weights = np.frombuffer(word_counts.counts, dtype=np.uint64).astype(np.int64)
        self.word = np.repeat(np.arange(len(lengths), dtype=number), lengths)
        # The end is nobody's neighbour, and so passed over like a token that is being swallowed.
        self.passed_over = np.zeros(self.end + 1, dtype=bool)
        self.passed_over[self.end] = True
        self.counts: dict[Code, int] = {}
        self.births: dict[int, list[Births]] = {}
        # In Python's numbers: it may pass 64 bits where no pair's count does.
        self.bytes = sum(map(operator.mul, self.weights.tolist(), lengths.tolist()))
        self.tokens = self.bytes
        """How many tokens there are by now, those of a word as often as the word occurs."""
        starts = np.flatnonzero(self.after[:-1] != self.end).astype(number)
        for code, weight in self._born(BYTES - 1, starts):
            self.counts[code] = weight

    def merge(self, left: int, right: int, new: int) -> Iterator[tuple[Code, int, int]]:
        """Replace the pair by `new` everywhere, left to right without overlap.

        Yields every pair whose count is another now, with the count before and after; `counts` follows as they are
        taken, so they have to be taken to the end.
        """
        places = self._places(left, right)
        if not len(places):
            return
        swallowed, preceding = self.after[places], self.before[places]
        following = self.after[swallowed]
        # Before an occurrence that follows another directly stands that one's right token, which is swallowed, too.
        self.passed_over[swallowed] = True
        preceding = preceding[~self.passed_over[preceding]]
        self.passed_over[swallowed] = False
        gone = np.concatenate((places, swallowed[following != self.end], preceding))
        changes = [(code, -weight) for code, weight in self._weighed(self._codes(gone), gone)[0]]
        self.token[places], self.token[swallowed] = new, self.ABSENT
        self.after[places], self.before[following] = following, places
        self.tokens -= int(self.weights[self.word[places]].sum())
        changes += self._born(new, np.concatenate((places[following != self.end], preceding)))
        for code, change in changes:
            old = self.counts.get(code, 0)
            if old + change:
                self.counts[code] = old + change
            else:
                del self.counts[code]
            yield code, old, old + change

    def _places(self, left: int, right: int) -> Array:
        """Where the pair is to be replaced now: of the places where it came into being, those where it still is."""
        code = code_of(left, right)
        # A pair comes into being with the younger of its tokens; a token that is made twice can be the older one.
        makers = {max(left, BYTES - 1), max(right, BYTES - 1)}
        found = [births.of(code) for maker in makers for births in self.births.get(maker, ())]
        places = np.concatenate(found) if found else np.empty(0, dtype=self.after.dtype)
        places = places[(self.token[places] == left) & (self.token[self.after[places]] == right)]
        return places if left != right else self._without_overlap(np.sort(places))

    def _without_overlap(self, places: Array) -> Array:
        """Every other place of each run of places that follow one another, from its first on."""
        if len(places) < 2:
            return places
        index = np.arange(len(places))
        begins = np.append(True, self.after[places[:-1]] != places[1:])
        since = index - np.maximum.accumulate(np.where(begins, index, 0))
        kept: Array = places[since % 2 == 0]
        return kept

    def _codes(self, places: Array) -> Array:
        """The pairs that begin at these places."""
        left, right = self.token[places].astype(np.int64), self.token[self.after[places]]
        codes: Array = (left << LEFT_SHIFT) | right
        return codes

    def _weighed(self, codes: Array, places: Array) -> tuple[list[tuple[Code, int]], Births]:
        """Each pair with the sum of the weights of its places, and the places in the pairs' order."""
        order = np.argsort(codes, kind="stable")
        codes, places = codes[order], places[order]
        first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1])[: len(codes)])
        different = codes[first]
        weights = np.add.reduceat(self.weights[self.word[places]], first) if len(first) else first
        return list(zip(different.tolist(), weights.tolist(), strict=True)), Births(
            different, np.append(first, len(codes)), places
        )

    def _born(self, maker: int, places: Array) -> list[tuple[Code, int]]:
        """Note the pairs that have begun to be at these places, with the token `maker`; returns them with weights."""
        weighed, births = self._weighed(self._codes(places), places)
        self.births.setdefault(maker, []).append(births)
        return weighed


def code_of(left: int, right: int) -> Code:
    return (left << LEFT_SHIFT) | right


def pair_of(code: Code) -> tuple[int, int]:
    """The two token ids of a code.

    >>> pair_of(code_of(300, 97))
    (300, 97)
    """
    return code >> LEFT_SHIFT, code & ((1 << LEFT_SHIFT) - 1)
