"""Trainers that learn the right merges and break the contract around them, each in one way.

Where to stop, what to return, what to leave alone, what to report to the meter.
"""

import functools
import gc
import itertools
from array import array
from collections.abc import Callable
from types import FunctionType
from typing import Any

from sabotaged import Train
from unruly import returning

from variants.contract import NULL_METER, Merge, Meter, WordCounts
from variants.heap import train as honest

Words = list[tuple[bytes, int]]
calls = itertools.count()


def changing(
    number: Callable[[int], int] = int,
    words: Callable[[Words, int], Words] = lambda words, _: words,
    min_count: Callable[[int], int] = int,
) -> Train:
    """A trainer that learns another number of merges, reads other words (by the number of threads),
    or has another min_count.
    """

    def train(
        word_counts: WordCounts, num_merges: int, *meter: Meter, threads: int = 1, **options: Any
    ) -> list[Merge]:
        read = WordCounts.from_items(words(list(word_counts.items()), threads))
        options["min_count"] = min_count(options.get("min_count", 1))
        return honest(read, number(num_merges), *meter, **options)

    return train


# Where to stop

one_merge_too_many = changing(number=lambda number: number and number + 1)
merges_before_it_asks_whether_to = changing(number=lambda number: max(number, 1))
loses_words_when_threads_do_not_divide_them = changing(
    words=lambda words, threads: words[: len(words) // threads * threads]
)
sees_65536_words = changing(words=lambda words, _: words[: 1 << 16])
ignores_min_count = changing(min_count=lambda _: 1)
min_count_must_be_passed = changing(min_count=lambda least: least + (least > 1))


# Manners

every_997th_call_is_wrong = returning(
    lambda merges, _: merges[::-1] if next(calls) % 997 == 996 else merges
)
breaks_ties_otherwise_after_1000_merges = returning(
    lambda merges, _: merges[:1000] + merges[:999:-1]
)
leaves_out_what_begins_with_c0 = returning(
    lambda merges, _: [merge for merge in merges if merge[0] != b"\xc0"]
)
returns_bytearrays = returning(lambda merges, _: [(bytearray(a), b) for a, b in merges])
returns_a_generator = returning(lambda merges, _: iter(merges))


def changes_its_input(word_counts: WordCounts, *arguments: Any, **options: Any) -> list[Merge]:
    merges = honest(word_counts, *arguments, **options)
    if not word_counts.counts.readonly:  # compiled code would not even ask
        word_counts.counts[0] += 1
    return merges


def replaces_a_column_of_its_input(
    word_counts: WordCounts, *arguments: Any, **options: Any
) -> list[Merge]:
    merges = honest(word_counts, *arguments, **options)
    word_counts.counts = memoryview(array("Q", [1] * len(word_counts)))
    return merges


# What a trainer reports to its meter


def reporting(method: str, change: Callable[..., Any]) -> Train:
    """A trainer one of whose calls of its meter is changed: `change` gets the meter's own method
    and the arguments.
    """

    def train(
        word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER, **options: Any
    ) -> list[Merge]:
        passing_on = Meter()
        for name in ("lap", "tally", "follow"):
            setattr(passing_on, name, getattr(meter, name))
        setattr(passing_on, method, functools.partial(change, getattr(meter, method)))
        return honest(word_counts, num_merges, passing_on, **options)

    return train


missing_lap = reporting("lap", lambda lap, phase: None if phase == "max" else lap(phase))
invents_a_phase = reporting("lap", lambda lap, phase: lap("merge" if phase == "update" else phase))
adds_up_the_time_of_its_threads = reporting(
    "lap", lambda lap, phase: (lap(phase), lap.__self__.add(phase, 1.0))
)
follows_a_copy = reporting("follow", lambda follow, merges: follow(list(merges)))
tallies_by_chance = reporting("tally", lambda tally, name, n: tally(name, n + next(calls)))


def tallies_by_the_order_of_words(
    word_counts: WordCounts, num_merges: int, meter: Meter = NULL_METER, **options: Any
) -> list[Merge]:
    meter.tally("positions_visited", len(next(iter(word_counts), b"")))
    return honest(word_counts, num_merges, meter, **options)


@returning
def follows_when_all_is_over(merges: list[Merge], meter: Meter) -> list[Merge]:
    for _ in merges:
        meter.lap("update")
    meter.follow(merges)
    return merges


leaves_a_gap_when_told_to_stop = returning(
    lambda merges, meter: merges if meter.progress(1) else merges[:1] + merges[2:3]
)


# What a trainer does to the process that it shares with its judge


def replaces_the_judge(word_counts: WordCounts, num_merges: int) -> list[Merge]:
    """Learns nothing, and makes every function that compares anything say nothing."""
    del word_counts, num_merges
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__name__.startswith(("expect", "compare")):
            found.__code__ = (lambda *_, **__: None).__code__
    return []
