"""The checks of a trainer: worked examples, what holds for any word counts, and comparisons with
the definition.

The definition is a slow, short program (the registry names it), run on the same words; merges are
compared one by one. A trainer that takes `inherited` by name is also checked going on from merges as
variants/extending.py defines it.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from harness.common.units import count_text
from harness.proof.cases import (
    EXTENSION_CASES,
    MERGE_CASES,
    SAMPLES,
    UNINHERITABLE,
    Case,
    large_calls,
    merges_from,
    random_call,
    random_extension,
)
from harness.proof.checks import (
    WIDTHS,
    Check,
    CheckFailed,
    CheckSkipped,
    Subject,
    TrainerCall,
    reported_phases,
    to_exhaustion,
)
from variants.contract import PHASES, Meter, TieBreak, Unavailable, WordCounts

NEEDED_PHASES = ("init", "max", "update")
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
    for name, call in large_calls(first).items():
        group = "long words" if len(call.words) == 1 else "large inputs"
        checks.append(Check(f"check_{name}", group, call.expect_definition))
    checks.append(Check("check_a_thousand_calls", "large inputs", partial(check_many_calls, first)))
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
    calls = [TrainerCall(words, to_exhaustion(words), tie_break) for words in SAMPLES]
    return [Check(body.__name__, "properties", partial(on_calls, body, calls)) for body in bodies]


def extension_checks(tie_breaks: Sequence[TieBreak]) -> list[Check]:
    """All checks of an extender, the most telling first."""
    group, first = "extending", tie_breaks[0]
    calls = [random_extension(seed, first) for seed in range(5)]
    at_any_width = partial(on_calls, check_width_is_irrelevant, calls)

    return [
        *examples("check_extends", group, EXTENSION_CASES, tie_breaks),
        Check("check_refuses_to_inherit", group, partial(check_refuses_to_inherit, first)),
        Check("check_extends_at_any_width", group, at_any_width),
        *seeded(
            "check_extends_as_defined",
            "extending random words",
            random_extension,
            EXTENSION_SEEDS,
            tie_breaks,
        ),
    ]


def examples(
    name: str, group: str, cases: Sequence[Case], tie_breaks: Sequence[TieBreak]
) -> list[Check]:
    """A check for each case; those of another tie-break are compared with the definition under the
    first of these.
    """
    checks = []
    for case in cases:
        call, body = case.call, partial(case.call.expect, want=case.want, why=case.why)
        if call.tie_break not in tie_breaks:
            call = replace(call, num_merges=to_exhaustion(call.words), tie_break=tie_breaks[0])
            body = partial(call.expect_definition, advice=f"\n{case.why}")
        checks.append(Check(f"{name}[{case.name}]", group, body))
    return checks


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
        call = make(seed, tie_breaks[seed // 10 % len(tie_breaks)])
        checks.append(Check(f"{name}[{seed}]", group, call.expect_definition))
    return checks


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


def on_calls(
    body: Callable[[Subject, TrainerCall], None], calls: Sequence[TrainerCall], train: Subject
) -> None:
    for call in calls:
        body(train, call)


def check_stops_at_num_merges(train: Subject, call: TrainerCall) -> None:
    total = len(call.defined())
    for num_merges in range(total + 2):
        replace(call, num_merges=num_merges).expect_definition(train, f"; in all there are {total}")


def check_leaves_input_alone(train: Subject, call: TrainerCall) -> None:
    """Pass columns that can be written, unlike those of a measured run, and compare them
    afterwards.
    """
    original = call.word_counts
    offsets, counts = array("q", original.offsets), array("Q", original.counts)
    columns: list[Any] = [bytearray(original.data), offsets, counts]
    passed = WordCounts(*[memoryview(column) for column in columns])
    call.run(train, word_counts=passed)
    for name, column in zip(("data", "offsets", "counts"), columns):
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
    seconds = reported_phases(call, train, PHASES)
    missing = [phase for phase in NEEDED_PHASES if phase not in seconds]
    if missing == [*NEEDED_PHASES]:
        raise CheckSkipped(
            f"the trainer reports no phase but {', '.join(seconds)}; the rest shows as other"
        )
    if missing:
        reported = f"reported {', '.join(seconds)}, but never {', '.join(missing)}"
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


def check_width_is_irrelevant(train: Subject, call: TrainerCall) -> None:
    for threads in WIDTHS:
        replace(call, threads=threads).expect_definition(train)


# Going on from merges


def check_refuses_to_inherit(tie_break: TieBreak, train: Subject) -> None:
    for merges, num_merges, why in UNINHERITABLE:
        call = TrainerCall({b"abcd": 2}, num_merges, tie_break, inherited=merges_from(merges))
        try:
            train(call.word_counts, num_merges, tie_break=tie_break, inherited=call.inherited)
        except (ValueError, Unavailable):
            continue
        except Exception as error:
            raise CheckFailed(
                f"raised {type(error).__name__}, not ValueError: {why}\n{call}"
            ) from error
        raise CheckFailed(f"raised no ValueError: {why}\n{call}")
