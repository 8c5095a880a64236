"""Trainers that learn the right merges and break the contract around them, each in one way.

Where to stop, what to return, what to leave alone, what to tell the meter. `honest` is the definition (sabotaged.py),
`quick` is as right, for what shows late only.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from sabotaged import Train, Words, honest, recounting, ties_to_the_smallest

from variants import heap
from variants.contract import GREATEST_BYTES, NULL_METER, Merge, Meter, TieBreak, WordCounts
from variants.words import PairCounts, count_pairs

quick = heap.train

# Where to stop.


def count_and_keep_dead_pairs() -> Callable[[Words, Sequence[int], Meter], PairCounts]:
    seen: PairCounts = {}

    def count(words: Words, weights: Sequence[int], meter: Meter) -> PairCounts:
        seen.update(dict.fromkeys(seen, 0))
        seen.update(count_pairs(words, weights, meter))
        return seen

    return count


def repeats_a_dead_pair_at_exhaustion(
    word_counts: WordCounts, num_merges: int, *meter: Meter, tie_break: TieBreak = GREATEST_BYTES
) -> list[Merge]:
    train = recounting(count=count_and_keep_dead_pairs())
    return train(word_counts, num_merges, *meter, tie_break=tie_break, min_count=0)


def raises_at_exhaustion(
    word_counts: WordCounts, num_merges: int, *meter: Meter, tie_break: TieBreak = GREATEST_BYTES
) -> list[Merge]:
    merges = honest(word_counts, num_merges, *meter, tie_break=tie_break)
    if len(merges) < num_merges:
        raise ValueError("max() arg is an empty sequence")
    return merges


def asking(number: Callable[[int], int]) -> Train:
    """The definition, taking another number of merges for the one asked for."""

    def train(word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any) -> list[Merge]:
        return honest(word_counts, number(num_merges), *meter, **options)

    return train


one_merge_too_many = asking(lambda num_merges: num_merges and num_merges + 1)
one_merge_too_few = asking(lambda num_merges: num_merges - 1)
merges_before_it_asks_whether_to = asking(lambda num_merges: max(num_merges, 1))


def leaves_rare_words_out_when_few_merges_are_asked(
    word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any
) -> list[Merge]:
    frequent = [(word, count) for word, count in word_counts.items() if count > 2 or num_merges > 4]
    return honest(WordCounts.from_items(frequent), num_merges, *meter, **options)


def ignores_min_count(
    word_counts: WordCounts,
    num_merges: int,
    meter: Meter = NULL_METER,
    *,
    tie_break: TieBreak = GREATEST_BYTES,
    min_count: int = 1,  # noqa: ARG001 - that is the fault
) -> list[Merge]:
    return honest(word_counts, num_merges, meter, tie_break=tie_break)


def min_count_must_be_passed(
    word_counts: WordCounts, num_merges: int, *meter: Meter, min_count: int = 1, **options: Any
) -> list[Merge]:
    return honest(word_counts, num_merges, *meter, min_count=min_count + (min_count > 1), **options)


# Manners.


def changes_its_input(word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any) -> list[Merge]:
    merges = honest(word_counts, num_merges, *meter, **options)
    if not word_counts.counts.readonly:  # compiled code would not even ask
        word_counts.counts[0] += 1
    return merges


def replaces_a_column_of_its_input(
    word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any
) -> list[Merge]:
    merges = honest(word_counts, num_merges, *meter, **options)
    word_counts.counts = memoryview(array("Q", [1] * len(word_counts)))
    return merges


calls = itertools.count()


def every_second_call_breaks_ties_otherwise(
    word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any
) -> list[Merge]:
    train = ties_to_the_smallest if next(calls) % 2 else honest
    return train(word_counts, num_merges, *meter, **options)


def every_997th_call_is_wrong(word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any) -> list[Merge]:
    merges = honest(word_counts, num_merges, *meter, **options)
    return merges[::-1] if next(calls) % 997 == 996 else merges


def breaks_ties_otherwise_after_1000_merges(
    word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any
) -> list[Merge]:
    merges = quick(word_counts, num_merges, *meter, **options)
    return merges[:1000] + merges[:999:-1]


def sees_65536_words(word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any) -> list[Merge]:
    seen = WordCounts.from_items(itertools.islice(word_counts.items(), 1 << 16))
    return quick(seen, num_merges, *meter, **options)


def leaves_out_what_begins_with_c0(
    word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any
) -> list[Merge]:
    return [merge for merge in honest(word_counts, num_merges, *meter, **options) if merge[0] != b"\xc0"]


kept: list[Merge] = []


def keeps_its_merges_from_call_to_call(
    word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any
) -> list[Merge]:
    kept.extend(honest(word_counts, num_merges, *meter, **options))
    return kept


def returns_bytearrays(word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any) -> list[Any]:
    merges = honest(word_counts, num_merges, *meter, **options)
    return [(bytearray(left), bytearray(right)) for left, right in merges]


def returns_a_generator(word_counts: WordCounts, num_merges: int, *meter: Meter, **options: Any) -> Any:
    return iter(honest(word_counts, num_merges, *meter, **options))


def loses_words_when_threads_do_not_divide_them(
    word_counts: WordCounts, num_merges: int, *meter: Meter, threads: int = 1, **options: Any
) -> list[Merge]:
    shared_out = len(word_counts) // threads * threads
    return honest(WordCounts.from_items(list(word_counts.items())[:shared_out]), num_merges, *meter, **options)


# What a trainer tells its meter.


class PassingOn(Meter):
    """Passes everything on to another meter; subclasses pass something on wrongly."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter

    def lap(self, phase: str) -> None:
        self.meter.lap(phase)

    def tally(self, name: str, n: int) -> None:
        self.meter.tally(name, n)

    def follow(self, merges: Sequence[Merge]) -> None:
        self.meter.follow(merges)


def telling(passing_on: Callable[[Meter], Meter]) -> Train:
    """The definition, telling its meter something wrong."""

    def train(word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER, **options: Any) -> list[Merge]:
        return honest(word_counts, num_merges, passing_on(meter), **options)

    return train


class WithoutMax(PassingOn):
    def lap(self, phase: str) -> None:
        if phase != "max":
            self.meter.lap(phase)


class WithAnotherPhase(PassingOn):
    def lap(self, phase: str) -> None:
        self.meter.lap("merge" if phase == "update" else phase)


class WithTheTimeOfAllThreads(PassingOn):
    def lap(self, phase: str) -> None:
        self.meter.lap(phase)
        self.meter.add(phase, 1.0)


class WithACopyOfTheMerges(PassingOn):
    def follow(self, merges: Sequence[Merge]) -> None:
        self.meter.follow(list(merges))


class WithTalliesOfItsOwn(PassingOn):
    def tally(self, name: str, n: int) -> None:
        self.meter.tally(name, n + next(calls))


missing_lap = telling(WithoutMax)
invents_a_phase = telling(WithAnotherPhase)
adds_up_the_time_of_its_threads = telling(WithTheTimeOfAllThreads)
follows_a_copy = telling(WithACopyOfTheMerges)
tallies_by_chance = telling(WithTalliesOfItsOwn)


def tallies_by_the_order_of_words(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER, **options: Any
) -> list[Merge]:
    meter.tally("positions_visited", len(next(iter(word_counts), b"")))
    return honest(word_counts, num_merges, meter, **options)


def follows_when_all_is_over(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER, **options: Any
) -> list[Merge]:
    merges = honest(word_counts, num_merges, WithACopyOfTheMerges(NULL_METER), **options)
    for _ in merges:
        meter.lap("update")
    meter.follow(merges)
    return merges


def leaves_a_gap_when_told_to_stop(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER, **options: Any
) -> list[Merge]:
    merges = honest(word_counts, num_merges, meter, **options)
    return merges if meter.progress(1) else merges[:1] + merges[2:3]
