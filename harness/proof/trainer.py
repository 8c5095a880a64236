"""The checks of a trainer that need no other trainer: the worked examples, and what holds for any word counts."""

from __future__ import annotations

import functools
import random
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from harness.proof.cases import MERGE_CASES, MergeCase
from harness.proof.checks import (
    WIDTHS,
    Check,
    CheckFailed,
    CheckSkipped,
    RecordingMeter,
    RefusingMeter,
    Words,
    accepts,
    expect_merges,
    expect_phases,
    learn,
    learn_from,
    shown,
    to_exhaustion,
)
from harness.proof.counterexamples import WrongWords, shown_by
from variants.contract import GREATEST_BYTES, PHASES, Merge, Meter, TieBreak, WordCounts

Train = Callable[..., Any]

NEEDED_PHASES = ("init", "max", "update")

SAMPLES: tuple[Words, ...] = (
    {b"low": 5, b"lower": 2, b"widest": 3, b"newest": 6},
    {b"abcststefstbbef": 1, b"\x00!?!?": 2, b"aaaaa": 3},
    {b"zb": 1, b" a": 1, b"\xc3\xa9": 1, b"usz": 1, b"usbz": 1, b"ab": 1, b"ac": 1, b"caca": 1},
)


def worked_examples(tie_breaks: Sequence[TieBreak]) -> list[Check]:
    """One check for each case whose tie-break is among `tie_breaks`."""
    return [
        Check(f"check_worked_example[{case.name}]", "worked examples", functools.partial(check_worked_example, case))
        for case in MERGE_CASES
        if case.tie_break in tie_breaks
    ]


def check_worked_example(case: MergeCase, train: Train) -> None:
    with shown_by(WrongWords(case.words, case.num_merges, case.tie_break, case.min_count)):
        merges = learn(train, case.words, case.num_merges, tie_break=case.tie_break, min_count=case.min_count)
        expect_merges(merges, case.merges, case.words, case.why)


def properties(tie_break: TieBreak) -> list[Check]:
    """What must hold for any word counts, checked under one tie-break, cheapest first."""
    bodies = (
        check_returns_pairs_of_bytes,
        check_returns_nothing_when_nothing_is_asked,
        check_stops_at_num_merges,
        check_prefix_property,
        check_word_order_is_irrelevant,
        check_counts_scale,
        check_leaves_input_alone,
        check_is_repeatable,
        check_reports_phases,
        check_tallies_are_deterministic,
        check_follows_its_merges,
        check_stops_when_told,
        check_width_is_irrelevant,
    )
    return [Check(body.__name__, "properties", functools.partial(body, tie_break)) for body in bodies]


def check_returns_pairs_of_bytes(tie_break: TieBreak, train: Train) -> None:
    for words in SAMPLES:
        for merge in learn(train, words, to_exhaustion(words), tie_break=tie_break):
            if type(merge) is not tuple or [type(token) for token in merge] != [bytes, bytes] or not all(merge):
                raise CheckFailed(f"a merge is a tuple of two bytes, neither empty; this is {merge!r}\n{shown(words)}")


def check_returns_nothing_when_nothing_is_asked(tie_break: TieBreak, train: Train) -> None:
    for words in SAMPLES:
        expect_merges(learn(train, words, 0, tie_break=tie_break), [], words, "num_merges=0 asks for no merges")


def check_stops_at_num_merges(tie_break: TieBreak, train: Train) -> None:
    for words in SAMPLES:
        total = len(learn(train, words, to_exhaustion(words), tie_break=tie_break))
        for num_merges in range(1, total + 2):
            got = len(learn(train, words, num_merges, tie_break=tie_break))
            if got != min(num_merges, total):
                raise CheckFailed(f"called for {num_merges} merges of {total}: got {got}\n{shown(words)}")


def check_prefix_property(tie_break: TieBreak, train: Train) -> None:
    for words in SAMPLES:
        merges = learn(train, words, to_exhaustion(words), tie_break=tie_break)
        for num_merges in range(1, len(merges)):
            fewer = learn(train, words, num_merges, tie_break=tie_break)
            why = f"a call for {num_merges} merges gives the first of all merges"
            expect_merges(fewer[:num_merges], merges[: len(fewer)][:num_merges], words, why)


def check_word_order_is_irrelevant(tie_break: TieBreak, train: Train) -> None:
    for words in SAMPLES:
        want = learn(train, words, to_exhaustion(words), tie_break=tie_break)
        for order in reorderings(words):
            got = learn(train, order, to_exhaustion(words), tie_break=tie_break)
            expect_merges(got, want, order, f"the same words gave these in this order: {list(words)}")


def reorderings(words: Words) -> list[Words]:
    shuffled = list(words.items())
    random.Random(1).shuffle(shuffled)
    return [dict(reversed(list(words.items()))), dict(shuffled)]


def check_counts_scale(tie_break: TieBreak, train: Train) -> None:
    for words in SAMPLES:
        want = learn(train, words, to_exhaustion(words), tie_break=tie_break)
        for factor in (3, 3_000_000_019):
            scaled = {word: count * factor for word, count in words.items()}
            got = learn(train, scaled, to_exhaustion(words), tie_break=tie_break)
            expect_merges(got, want, scaled, f"every weight times {factor} leaves the merges as they were")


def check_leaves_input_alone(tie_break: TieBreak, train: Train) -> None:
    """Pass columns that can be written, unlike those of a measured run, and compare them afterwards."""
    keywords = {} if tie_break is GREATEST_BYTES else {"tie_break": tie_break}
    for words in SAMPLES:
        original = WordCounts.from_items(words.items())
        content, counts = bytearray(original.data), array("Q", original.counts)
        offsets = array("q", original.offsets)
        given = WordCounts(memoryview(content), memoryview(offsets), memoryview(counts))
        learn_from(train, given, to_exhaustion(words), **keywords)
        for name, column in (("data", content), ("offsets", offsets), ("counts", counts)):
            before = getattr(original, name).tolist()
            for after in (list(column), getattr(given, name).tolist()):
                if after != before:
                    raise CheckFailed(f"changed {name} of its input from {before} to {after}\n{shown(words)}")


def check_is_repeatable(tie_break: TieBreak, train: Train) -> None:
    """Train on the same words twice, on others, and on the first again: no state may survive a call."""
    first: dict[int, list[Merge]] = {}
    for number in (0, 0, 1, 2, 0, 2, 1):
        words = SAMPLES[number]
        merges = list(learn(train, words, to_exhaustion(words), tie_break=tie_break))
        expect_merges(merges, first.setdefault(number, merges), words, "the same call gave other merges before")


def learn_metered(train: Train, words: Words, tie_break: TieBreak, meter: Meter) -> list[Merge]:
    if not accepts(train, "meter"):
        raise CheckSkipped("the trainer takes no meter, so it reports no phases")
    return learn(train, words, to_exhaustion(words), meter, tie_break=tie_break)


def check_reports_phases(tie_break: TieBreak, train: Train) -> None:
    for words in SAMPLES:
        start = time.perf_counter()
        meter = RecordingMeter()
        learn_metered(train, words, tie_break, meter)
        wall = time.perf_counter() - start
        expect_phases(meter, PHASES, wall, "the trainer", f"\n{shown(words)}")
        missing = [phase for phase in NEEDED_PHASES if phase not in meter.seconds]
        if missing == [*NEEDED_PHASES]:
            raise CheckSkipped(f"the trainer reports no phase but {', '.join(meter.seconds)}; the rest shows as other")
        if missing:
            raise CheckFailed(
                f"reported {', '.join(meter.seconds)}, but never {', '.join(missing)}: a lap is missing, and its time "
                f"shows under another phase\n{shown(words)}"
            )


def check_tallies_are_deterministic(tie_break: TieBreak, train: Train) -> None:
    """Counts of work are compared from machine to machine, so neither chance nor the order of words may move them."""
    for words in SAMPLES:
        tallied = []
        for order in (words, words, *reorderings(words)):
            meter = RecordingMeter()
            learn_metered(train, order, tie_break, meter)
            tallied.append(meter.tallies)
        if not any(tallied):
            raise CheckSkipped("the trainer keeps no tallies")
        for name, count in tallied[0].items():
            if type(count) is not int or count < 0:
                raise CheckFailed(f"tallied {count!r} for {name}; a tally is a whole number\n{shown(words)}")
        for again, how in zip(tallied[1:], ("run again", "run with the words reversed", "run with the words shuffled")):
            if again != tallied[0]:
                raise CheckFailed(f"tallied {tallied[0]}, and {how}, {again}\n{shown(words)}")


def check_follows_its_merges(tie_break: TieBreak, train: Train) -> None:
    """The list must be handed over once and grow as merges are made: it is all that is left of a run cut short."""
    for words in SAMPLES:
        meter = RecordingMeter()
        merges = learn_metered(train, words, tie_break, meter)
        if not meter.follow_calls:
            raise CheckSkipped("the trainer never calls follow; a native one polls progress instead")
        if meter.follow_calls > 1:
            raise CheckFailed(f"called follow {meter.follow_calls} times, not once\n{shown(words)}")
        expect_merges(list(meter.followed), merges, words, "the list it handed to follow must hold what it returned")
        lengths = meter.lengths_at_update
        if len(lengths) > 1 and not lengths[0] < lengths[-1]:
            raise CheckFailed(f"handed a list to follow that did not grow with the merges: {lengths}\n{shown(words)}")


def check_stops_when_told(tie_break: TieBreak, train: Train) -> None:
    for words in SAMPLES:
        merges = learn(train, words, to_exhaustion(words), tie_break=tie_break)
        stopped = learn_metered(train, words, tie_break, RefusingMeter())
        why = "when progress answers False, what was learned so far is the beginning of all"
        expect_merges(stopped, merges[: len(stopped)], words, why)


def check_width_is_irrelevant(tie_break: TieBreak, train: Train) -> None:
    if not accepts(train, "threads"):
        raise CheckSkipped("the trainer takes no threads")
    for words in SAMPLES:
        want = learn(train, words, to_exhaustion(words), tie_break=tie_break)
        for threads in WIDTHS:
            got = learn(train, words, to_exhaustion(words), tie_break=tie_break, threads=threads)
            expect_merges(got, want, words, f"threads={threads} gives the merges of the default")
