"""The checks of a trainer: worked examples, what holds for any word counts, and comparisons with
the definition.

The definition is a slow, short program (the registry names it), run on the same words; merges are
compared one by one. Alphabets of few symbols, with NUL and 0xFF among them, make runs, repeats and
ties, which is where trainers go wrong. A trainer that takes `inherited` by name is also checked
going on from merges as variants/extending.py defines it.
"""

from __future__ import annotations

import functools
import itertools
import random
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness.common import registry
from harness.common.units import count_text
from harness.proof.calls import (
    CheckFailed,
    CheckSkipped,
    Subject,
    TrainerCall,
    Words,
    to_exhaustion,
)
from harness.proof.cases import EXTENSION_CASES, MERGE_CASES, Case
from harness.proof.checks import WIDTHS, Check, expect_phases
from variants.contract import PHASES, Merge, Meter, TieBreak, Unavailable, WordCounts

NEEDED_PHASES = ("init", "max", "update")
SAMPLES: tuple[Words, ...] = (
    {b"low": 5, b"lower": 2, b"widest": 3, b"newest": 6},
    {b"abcststefstbbef": 1, b"\x00!?!?": 2, b"aaaaa": 3},
    {b"zb": 1, b" a": 1, b"\xc3\xa9": 1, b"usz": 1, b"usbz": 1, b"ab": 1, b"ac": 1, b"caca": 1},
)
ALPHABET = (ord("a"), ord("b"), 0x00, 0x01, 0xFF)
LETTERS = b"ab :\xc3\xa9\n"
VETOES = (
    "none", "superbpe", "bytes:3", "characters:2", "whole_characters",
    "[whole_characters,bytes:4]", "protected:61.c3a9", "none",
)  # fmt: skip
SEEDS, EXTENSION_SEEDS = 200, 60
MANY_CALLS, SECONDS_FOR_CALLS = 1200, 10.0


def trainer_checks(
    tie_breaks: Sequence[TieBreak] = tuple(TieBreak), *, extending: bool = False
) -> list[Check]:
    """All checks of a trainer, the most telling first; most are made under the first of the
    tie-breaks.

    Those of `extending` are for a trainer that can go on from inherited merges.
    """
    first, *others = tie_breaks
    checks = examples("check_worked_example", "worked examples", MERGE_CASES, tie_breaks)
    checks += properties(first)
    checks += seeded(
        "check_equals_definition", "random words", random_call, SEEDS, [first] * 4 + others
    )
    for name, (group, number, words) in INPUTS.items():
        checks.append(Check(name, group, check_words, (words, number, first)))
    checks.append(Check("check_a_thousand_calls", "large inputs", check_many_calls, (first,)))
    return checks + (extension_checks(tie_breaks) if extending else [])


def properties(tie_break: TieBreak) -> list[Check]:
    """What must hold for any word counts, checked on samples under one tie-break, cheapest
    first.
    """
    bodies = (
        check_stops_at_num_merges,
        check_leaves_input_alone,
        check_reports_phases,
        check_tallies_are_deterministic,
        check_follows_its_merges,
        check_stops_when_progress_is_refused,
        check_width_is_irrelevant,
    )
    return [Check(body.__name__, "properties", on_samples, (body, tie_break)) for body in bodies]


def extension_checks(tie_breaks: Sequence[TieBreak]) -> list[Check]:
    """All checks of an extender, the most telling first."""
    cases = [case for case in EXTENSION_CASES if case.call.tie_break in tie_breaks]
    bodies = (check_refuses_to_inherit, check_extends_at_any_width)
    checks = examples("check_extends", "extending", cases, tie_breaks)
    checks += [Check(body.__name__, "extending", body, (tie_breaks[0],)) for body in bodies]
    name, group = "check_extends_as_defined", "extending random words"
    return checks + seeded(name, group, random_extension, EXTENSION_SEEDS, tie_breaks)


def examples(
    name: str, group: str, cases: Sequence[Case], tie_breaks: Sequence[TieBreak]
) -> list[Check]:
    """A check for each case; those of another tie-break are compared with the definition under the
    first of these.
    """
    return [
        Check(f"{name}[{case.name}]", group, check_worked_example, (case, tie_breaks))
        for case in cases
    ]


def seeded(
    name: str,
    group: str,
    make: Callable[[int, TieBreak], TrainerCall],
    seeds: int,
    tie_breaks: Sequence[TieBreak],
) -> list[Check]:
    """Comparisons with the definition on random calls; every ten take another tie-break."""
    checks = []
    for seed in range(seeds):
        call = functools.partial(make, seed, tie_breaks[seed // 10 % len(tie_breaks)])
        checks.append(Check(f"{name}[{seed}]", group, check_equals_definition, (call,)))
    return checks


# Comparisons with the definition


def check_worked_example(case: Case, tie_breaks: Sequence[TieBreak], train: Subject) -> None:
    if case.call.tie_break in tie_breaks:
        case.call.expect(train, case.want, case.why)
    else:
        call = replace(
            case.call, num_merges=to_exhaustion(case.call.words), tie_break=tie_breaks[0]
        )
        call.expect_definition(train, f"\n{case.why}")


def check_equals_definition(make: Callable[[], TrainerCall], train: Subject) -> None:
    make().expect_definition(train)


def check_words(
    words: Callable[[], Words], num_merges: int, tie_break: TieBreak, train: Subject
) -> None:
    TrainerCall(words(), num_merges, tie_break).expect_definition(train)


def check_many_calls(tie_break: TieBreak, train: Subject) -> None:
    """Train on several words again and again: no state may survive a call. The calls of a slow
    trainer are cut short, which is no pass.
    """
    give_up = time.monotonic() + SECONDS_FOR_CALLS
    for number in range(MANY_CALLS):
        if number and time.monotonic() > give_up:
            times = f"{count_text(number)} of {count_text(MANY_CALLS)} times"
            raise CheckSkipped(f"called {times} in {SECONDS_FOR_CALLS:g} s")
        call = TrainerCall(SAMPLES[number % 5 % 3], 4, tie_break)
        call.expect_definition(train, "\nother calls came before this one")


# Properties


def on_samples(
    body: Callable[[Subject, TrainerCall], None], tie_break: TieBreak, train: Subject
) -> None:
    for words in SAMPLES:
        body(train, TrainerCall(words, to_exhaustion(words), tie_break))


def check_stops_at_num_merges(train: Subject, call: TrainerCall) -> None:
    total = len(call.defined())
    for num_merges in range(total + 2):
        replace(call, num_merges=num_merges).expect_definition(train, f"; in all there are {total}")


def check_leaves_input_alone(train: Subject, call: TrainerCall) -> None:
    """Pass columns that can be written, unlike those of a measured run, and compare them
    afterwards.
    """
    original = WordCounts.from_items(call.words.items())
    columns: dict[str, Any] = {
        "data": bytearray(original.data),
        "offsets": array("q", original.offsets),
        "counts": array("Q", original.counts),
    }
    passed = WordCounts(*[memoryview(column) for column in columns.values()])
    call.run(train, word_counts=passed)
    for name, column in columns.items():
        before = getattr(original, name).tolist()
        for after in (list(column), getattr(passed, name).tolist()):
            if after != before:
                raise CheckFailed(f"changed {name} of its input from {before} to {after}")


class WatchingMeter(Meter):
    """A meter that remembers how many merges there were whenever one was finished, and may stop the
    training.
    """

    def __init__(self, goes_on: bool = True) -> None:
        super().__init__()
        self.goes_on = goes_on
        self.lengths: list[int] = []

    def lap(self, phase: str) -> None:
        super().lap(phase)
        if phase == "update":
            self.lengths.append(len(self.followed))

    def progress(self, done: int) -> bool:
        return super().progress(done) and self.goes_on


def check_reports_phases(train: Subject, call: TrainerCall) -> None:
    start, meter = time.perf_counter(), Meter()
    call.run(train, meter)
    expect_phases(meter, PHASES, time.perf_counter() - start, "the trainer")
    missing = [phase for phase in NEEDED_PHASES if phase not in meter.seconds]
    if missing == [*NEEDED_PHASES]:
        raise CheckSkipped(
            f"the trainer reports no phase but {', '.join(meter.seconds)}; the rest shows as other"
        )
    if missing:
        reported = f"reported {', '.join(meter.seconds)}, but never {', '.join(missing)}"
        raise CheckFailed(f"{reported}: a lap is missing, and its time shows under another phase")


def check_tallies_are_deterministic(train: Subject, call: TrainerCall) -> None:
    """Counts of work are compared from machine to machine, so neither chance nor the order of words
    may change them.
    """
    backwards = replace(call, words=dict(reversed(list(call.words.items()))))
    tallies = []
    for repeated in (call, call, backwards):
        meter = Meter()
        repeated.run(train, meter)
        tallies.append(meter.tallies)
    if not any(tallies):
        raise CheckSkipped("the trainer keeps no tallies")
    for again, how in zip(tallies[1:], ("run again", "run with the words reversed")):
        if again != tallies[0]:
            raise CheckFailed(f"tallied {tallies[0]}, and {how}, {again}")


def check_follows_its_merges(train: Subject, call: TrainerCall) -> None:
    """The list handed over must grow as merges are made: it is all that is left of a stopped
    run.
    """
    meter = WatchingMeter()
    merges = call.run(train, meter)
    if meter.followed == ():  # as it was at first
        raise CheckSkipped("the trainer never calls follow; a native one polls progress instead")
    call.compare(
        list(meter.followed), merges, "the list it handed to follow must hold what it returned"
    )
    if len(meter.lengths) > 1 and not meter.lengths[0] < meter.lengths[-1]:
        raise CheckFailed(
            f"handed a list to follow that did not grow with the merges: {meter.lengths}"
        )


def check_stops_when_progress_is_refused(train: Subject, call: TrainerCall) -> None:
    merges = call.run(train)
    stopped = call.run(train, WatchingMeter(goes_on=False))
    why = "when progress returns False, the merges so far are the first of all merges"
    call.compare(stopped, merges[: len(stopped)], why)


def check_width_is_irrelevant(train: Subject, *calls: TrainerCall) -> None:
    for call, threads in itertools.product(calls, WIDTHS):
        replace(call, threads=threads).expect_definition(train)


# Going on from merges

UNINHERITABLE: tuple[tuple[list[Merge], int, str], ...] = (
    ([(b"ab", b"c"), (b"a", b"b")], 9, "merges out of their order cannot all be kept"),
    ([(b"a", b"b"), (b"a", b"b")], 9, "a token is spelled once"),
    ([(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")], 9, "a token is spelled once"),
    ([(b"a", b"b"), (b"b", b"c")], 1, "num_merges counts the inherited merges"),
)


def check_refuses_to_inherit(tie_break: TieBreak, train: Subject) -> None:
    for inherited, num_merges, why in UNINHERITABLE:
        call = TrainerCall({b"abcd": 2}, num_merges, tie_break, inherited=tuple(inherited))
        word_counts = WordCounts.from_items(call.words.items())

        try:
            train(
                word_counts,
                num_merges,
                tie_break=tie_break,
                inherited=inherited,
            )
        except (ValueError, Unavailable):
            continue
        except Exception as error:
            raise CheckFailed(
                f"raised {type(error).__name__}, not ValueError: {why}\n{call}"
            ) from error
        raise CheckFailed(f"raised no ValueError: {why}\n{call}")


def check_extends_at_any_width(tie_break: TieBreak, train: Subject) -> None:
    check_width_is_irrelevant(train, *(random_extension(seed, tie_break) for seed in range(5)))


# Random and large inputs


def random_words(seed: int) -> dict[bytes, int]:
    """A small table of words over one to four symbols, the first tiny; one weight in ten is beyond 32
    bits.
    """
    chance = random.Random(seed)
    words_number, letters = min(seed // 10 + 1, 8), min(seed // 5 + 3, 16)
    alphabet = chance.sample(ALPHABET, chance.randint(1, 4))
    words: dict[bytes, int] = {}
    for _ in range(chance.randint(1, words_number)):
        word = bytes(chance.choices(alphabet, k=chance.randint(1, letters)))
        words[word] = chance.randint(1, 6) + (2**32 if chance.random() < 0.1 else 0)
    return words


def random_call(seed: int, tie_break: TieBreak) -> TrainerCall:
    """Random words, trained on to the end; one call in four has a min_count."""
    words, min_count = random_words(seed), (1, 1, 1, 1, 1, 1, 2, 5)[seed % 8]
    return TrainerCall(words, to_exhaustion(words), tie_break, min_count)


def random_extension(seed: int, tie_break: TieBreak) -> TrainerCall:
    """Pieces, some of them long runs, and a list that the definition can inherit."""
    chance = random.Random(seed)
    letters = chance.sample(list(LETTERS), chance.randint(2, len(LETTERS)))
    words: dict[bytes, int] = {}
    for _ in range(chance.randint(1, 7)):
        run = letters[:1] * chance.choice((0, 0, 0, 0, 40))
        word = bytes(chance.choices(letters, k=chance.randint(2, 18)) + run)
        words[word] = chance.randint(1, 5)

    others = {bytes(chance.choices(letters, k=chance.randint(2, 9))): 1 for _ in range(4)}
    learned_from = WordCounts.from_items(
        chance.choice((words, others, {**others, **words})).items()
    )
    inherited = registry.definition()(learned_from, chance.randint(0, 12))
    inheriting = chance.choice(("kept", "met"))
    if inheriting == "met" and chance.random() < 0.5:
        inherited = chance.sample(inherited, len(inherited)) + inherited[:1]

    num_merges = len(inherited) + chance.choice((0, 3, to_exhaustion(words)))
    rules = (chance.choice((1, 1, 2)), tuple(inherited), inheriting, chance.choice(VETOES))
    return TrainerCall(words, num_merges, tie_break, *rules)


def words_with_many_ties() -> dict[bytes, int]:
    """500 short words over few bytes with small weights: after some hundred merges, all are
    ties.
    """
    chance = random.Random(1500)
    alphabet = chance.sample(range(256), 24)
    words: dict[bytes, int] = {}
    while len(words) < 500:
        words[bytes(chance.choices(alphabet, k=chance.randint(2, 7)))] = chance.randint(1, 3)
    return words


def very_many_words() -> dict[bytes, int]:
    """More words than 16 bits can number, of three bytes each; the last ones have the largest
    counts.
    """
    letters = bytes(range(65, 107))
    numbers = random.Random(70_000).sample(range(len(letters) ** 3), 70_000)
    words = [bytes((letters[n % 42], letters[n // 42 % 42], letters[n // 42**2])) for n in numbers]
    return {word: 1 + 50 * (index >= 1 << 16) for index, word in enumerate(words)}


def every_byte() -> dict[bytes, int]:
    """A word for each byte, which is first in one and last in another; no two counts are equal."""
    return {bytes((first, first ^ 0x5A)): 1 + first * 7 % 256 for first in range(256)}


INPUTS: dict[str, tuple[str, int, Callable[[], Words]]] = {
    # lengths stored in one byte, or two
    "check_run_of_70000": ("long words", 200, lambda: {b"a" * 70_000: 1}),
    "check_3000_letters": (
        "long words",
        200,
        lambda: {bytes(random.Random(3000).choices(b"ab", k=3000)): 1},
    ),
    "check_1100_merges_with_many_ties": ("large inputs", 1100, words_with_many_ties),
    "check_70000_words": ("large inputs", 2, very_many_words),
    "check_every_byte_first_and_last": ("large inputs", 256, every_byte),
}
