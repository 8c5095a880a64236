"""Positional: one text, one array of segment lengths, and for every pair the list of positions
where it was born.

Yikai-Liao's efficient_bpe (huggingface/tokenizers issue 1400), with weights. Against heap, words
are no longer rebuilt: all distinct words stand in one text, and a merge visits exactly the places
of its pair, so its cost does not depend on how long the words are. What it pays is memory, a stored
position for every occurrence.

`seg_status` has one cell a byte: the first and the last byte of a token hold its length, the place
where two tokens were joined holds 0, other inner cells are never read, and the cell between two
words holds 0. Tokens only grow, so a stored position i of (a, b) is still good exactly if
`seg_status[i] == len(a)` and `seg_status[i + len(a)] == len(b)`: whatever swallowed either token
left 0 or a greater length there. No token ids are stored; a token is its bytes in the text.

Every occurrence of a pair comes into being at the one merge that makes the newer of its tokens, and
can only vanish later. So position lists never grow after that merge, are in order, and stale
entries are skipped when they are met. Against the original: words carry weights, replacement is
left to right (the original goes right to left inside runs), and lengths take as many bytes as the
longest word needs (the original ends at tokens of 255).

It can go on from merges that are already made (extending.py), and is the stage in Python for that:
pieces are long there, and nothing here cares how long. A pair that is refused is never kept.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from typing import Any

from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, Veto, WordCounts
from variants.extending import Refused, check_inherited, inherit
from variants.pair_queue import PairQueue, heap_functions


def train(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,
    inherited: Sequence[Merge] = (),
    inheriting: str = "kept",
    veto: Veto | None = None,
    compress_threshold: float = 0.0,
) -> list[Merge]:
    """Learn merges from positions.

    A position list is rebuilt without its stale entries when the pair's count, found out of date at
    the top of the heap, has fallen below `compress_threshold` times what it was when the list was
    made (0: never). It changes time and memory, never the merges. Pairs born below `min_count` are
    not kept at all: counts only fall.
    """
    if not 0 <= compress_threshold <= 1:
        raise ValueError(f"compress_threshold is {compress_threshold}; it is a share from 0 to 1")
    check_inherited(inherited, inheriting, num_merges)
    merges: list[Merge] = []
    meter.follow(merges)
    keys = {bytes((byte,)): tie_break.reversed_key(byte, bytes((byte,))) for byte in range(256)}
    # While merges are inherited a pair may be as rare as it likes, and under a veto.
    pairs = PositionedPairs(SegmentedText(word_counts), 1 if inherited else min_count, meter)

    def make(pair: Merge) -> Sequence[Merge]:
        """Make a merge at the positions of its pair, which may stand nowhere; returns the pairs
        born of it.
        """
        token = pair[0] + pair[1]
        keys[token] = tie_break.reversed_key(256 + len(merges), token)
        merges.append(pair)
        return pairs.merge(pair, meter) if pair in pairs.counts else ()

    inherit(inherited, inheriting, pairs.counts, make)
    if inherited or veto is not None:
        pairs.keep_only(min_count, Refused(merges, veto))
    queue = PairQueue(heap_functions("c"), pairs.counts, keys, meter)
    compress = (
        partial(pairs.compress, threshold=compress_threshold, meter=meter)
        if compress_threshold
        else None
    )
    meter.lap("init")
    while len(merges) < num_merges:
        pair = queue.most_frequent_pair(meter, compress)
        meter.lap("max")
        if pair is None:
            break
        queue.push(make(pair), meter)
        meter.lap("update")
    return merges


class SegmentedText:
    """All words end to end, a barrier byte before, between and after them, heaviest words first.

    Sorting by weight lets the weight of a position be found from a short table of the places where
    it changes.
    """

    def __init__(self, word_counts: WordCounts) -> None:
        weighted = sorted(word_counts.items(), key=lambda item: -item[1])
        longest = max((len(word) for word, _ in weighted), default=1)

        self.text = b"\0" + b"".join(word + b"\0" for word, _ in weighted)
        typecode = "B" if longest < 1 << 8 else "H" if longest < 1 << 16 else "L"
        self.seg_status = array(typecode, [1]) * len(self.text)
        self.seg_status[0] = 0

        self.starts: list[int] = []
        self.weights: list[int] = []
        position = 1

        for word, weight in weighted:
            if not self.weights or weight != self.weights[-1]:
                self.starts.append(position)
                self.weights.append(weight)
            position += len(word) + 1
            self.seg_status[position - 1] = 0

        self.starts.append(len(self.text))
        self.position_typecode = "I" if len(self.text) < 1 << 32 else "Q"

    def weight_from(self, position: int) -> tuple[int, int]:
        """The weight at `position` and the first position where the weight is another."""
        place = bisect_right(self.starts, position)
        return self.weights[place - 1], self.starts[place]


class PositionedPairs:
    """The count of every pair that can still be chosen, and the positions where it was born."""

    def __init__(self, text: SegmentedText, min_count: int, meter: Meter) -> None:
        self.text = text
        self.min_count = min_count
        self.refused: Refused | None = None
        self.counts: dict[Merge, int] = {}
        self.positions: dict[Merge, Any] = {}
        self.counts_when_listed: dict[Merge, int] = {}
        self.born: list[Merge] = []

        content, seg_status = text.text, text.seg_status
        weight = weight_ends = updates = 0

        for position in range(1, len(content) - 1):
            if seg_status[position] and seg_status[position + 1]:
                if position >= weight_ends:
                    weight, weight_ends = text.weight_from(position)
                self.add(
                    (content[position : position + 1], content[position + 1 : position + 2]),
                    position,
                    weight,
                )
                updates += 1

        self.settle()
        meter.tally("positions_visited", len(content))
        meter.tally("pair_updates", updates)

    def keep_only(self, min_count: int, refused: Refused) -> None:
        """From now on keep no pair that is rarer or refused, and forget those that are."""
        self.min_count, self.refused = min_count, refused
        for pair in [
            pair for pair, count in self.counts.items() if count < min_count or refused(*pair)
        ]:
            self.forget(pair)

    def merge(self, pair: Merge, meter: Meter) -> list[Merge]:
        """Join `pair` wherever it still occurs, left to right; returns the pairs born of it that
        can be chosen.
        """
        left, right = pair
        token = left + right
        left_length, right_length, length = len(left), len(right), len(token)
        content, seg_status = self.text.text, self.text.seg_status

        positions = self.positions[pair]
        self.forget(pair)
        weight = weight_ends = updates = 0

        for position in positions:
            middle, after = position + left_length, position + length
            if seg_status[position] != left_length or seg_status[middle] != right_length:
                continue
            if position >= weight_ends:
                weight, weight_ends = self.text.weight_from(position)

            if seg_status[position - 1]:
                before = position - seg_status[position - 1]
                neighbour = content[before:position]
                self.subtract((neighbour, left), weight)
                self.add((neighbour, token), before, weight)
                updates += 2
            if seg_status[after]:
                neighbour = content[after : after + seg_status[after]]
                self.subtract((right, neighbour), weight)
                self.add((token, neighbour), position, weight)
                updates += 2

            seg_status[middle] = 0
            seg_status[position] = seg_status[after - 1] = length

        meter.tally("positions_visited", len(positions))
        meter.tally("pair_updates", updates)
        return self.settle()

    def add(self, pair: Merge, position: int, weight: int) -> None:
        """Note one more occurrence of a pair that is being born."""
        if pair in self.counts:
            self.counts[pair] += weight
            self.positions[pair].append(position)
        else:
            self.counts[pair] = weight
            self.positions[pair] = array(self.text.position_typecode, (position,))
            self.born.append(pair)

    def subtract(self, pair: Merge, weight: int) -> None:
        """Take an occurrence away; an old pair that can no longer be chosen is forgotten, with its
        list.
        """
        if pair in self.counts:
            self.counts[pair] -= weight
            if self.counts[pair] < self.min_count and pair in self.counts_when_listed:
                self.forget(pair)

    def settle(self) -> list[Merge]:
        """Keep those of the pairs just born that can still be chosen. A merge's own pairs may be
        gone already.
        """
        kept = []
        for pair in self.born:
            may_be_chosen = self.refused is None or not self.refused(*pair)
            if self.counts[pair] >= self.min_count and may_be_chosen:
                kept.append(pair)
                self.counts_when_listed[pair] = self.counts[pair]
            else:
                del self.counts[pair], self.positions[pair]
        self.born = []
        return kept

    def forget(self, pair: Merge) -> None:
        del self.positions[pair], self.counts[pair], self.counts_when_listed[pair]

    def compress(self, pair: Merge, threshold: float, meter: Meter) -> None:
        """Rebuild the pair's list without stale positions if too little of its first count is
        left.
        """
        if self.counts[pair] >= threshold * self.counts_when_listed[pair]:
            return
        listed, seg_status = self.positions[pair], self.text.seg_status
        left, right = map(len, pair)
        live = (
            place
            for place in listed
            if seg_status[place] == left and seg_status[place + left] == right
        )
        self.positions[pair] = array(listed.typecode, live)
        self.counts_when_listed[pair] = self.counts[pair]
        meter.tally("positions_visited", len(listed))
