"""The gate's decision about time: against a plain reference, and by its rates on synthetic machines."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import median

import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st

from harness.common.comparison import Sample
from harness.gate.card import StageSaid, TimeSaid
from harness.gate.rule import ESCALATE, INCONCLUSIVE, PASS, REGRESSION, Blocked, Decision, Timed, decide, slower_phase

RULE = TimeSaid()
SHORT = TimeSaid(triage=StageSaid(8, 0.015), confirm=StageSaid(12, 0.025), fewest=8)
MB = 1_000_000


def sample(seconds: float, block: int = 0, threads: int = 1, pressure: float = 0.0) -> Sample:
    return Sample("test", block, seconds, seconds * threads, threads, pressure)


def blocks_with(ratios: Sequence[float], control: Sequence[float] = ()) -> list[Blocked]:
    """Blocks of one thread in which head takes so many times as long as base."""
    return [
        Blocked(
            Timed(sample(1.0, number)),
            Timed(sample(ratio, number)),
            Timed(sample(control[number], number)) if number < len(control) else None,
        )
        for number, ratio in enumerate(ratios)
    ]


# The reference: the same rule written as plainly as can be, for one thread, without memory.


def plain_interval(values: Sequence[float], confidence: float) -> tuple[float, float] | None:
    """The innermost pair of ordered values with the median between them at least so often."""
    n, ordered = len(values), sorted(values)
    beyond = [sum(math.comb(n, wins) for wins in range(place + 1)) / 2**n for place in range(n)]
    places = [place for place in range(n // 2) if beyond[place] <= (1 - confidence) / 2]
    return (ordered[places[-1]], ordered[n - 1 - places[-1]]) if places else None


def plain(rule: TimeSaid, triage: Sequence[float], confirm: Sequence[float], control: Sequence[float]) -> str:
    first = plain_interval(triage, 0.95)
    if median(triage) <= 1 + rule.triage.most and first is not None and first[1] <= 1 + rule.must_see:
        return PASS
    if not confirm:
        return ESCALATE
    second = plain_interval(confirm, 0.95)
    if median(confirm) <= 1 + rule.confirm.most:
        return PASS if second is not None and second[1] <= 1 + rule.must_see else INCONCLUSIVE
    if control and abs(median(control) - 1) > rule.control.most:
        ends = plain_interval(control, 0.99)
        if ends is not None and not ends[0] <= 1 <= ends[1]:
            return INCONCLUSIVE
    return REGRESSION if second is not None and second[0] > 1 else INCONCLUSIVE


RATIOS = st.sampled_from([0.9, 0.97, 0.99, 1.0, 1.01, 1.02, 1.03, 1.04, 1.06, 1.1, 1.3])


def odd(number: int) -> st.SearchStrategy[list[float]]:
    """Of an odd number the median is one of them, whether it is taken of ratios or of their logarithms."""
    return st.lists(RATIOS, min_size=number, max_size=number)


@examples(300)
@given(triage=odd(9), confirm=st.one_of(st.just([]), odd(13)), control=st.one_of(st.just([]), odd(9)))
def test_the_rule_decides_as_the_plain_reference_does(
    triage: list[float], confirm: list[float], control: list[float]
) -> None:
    rule = TimeSaid(triage=StageSaid(9, 0.015), confirm=StageSaid(13, 0.025), fewest=5)
    found = decide(rule, blocks_with(triage), blocks_with(confirm, control))
    assert found.state == plain(rule, triage, confirm, control)


# Rates, on machines whose noise is known.


def run_on(
    machine: Callable[[random.Random, float, int], Blocked], slower: float, chance: random.Random, rule: TimeSaid = RULE
) -> Decision:
    """One run of the gate: confirmation only if it is asked for, from fresh blocks."""
    triage = [machine(chance, slower, number) for number in range(rule.triage.blocks)]
    decision = decide(rule, triage)
    if decision.state != ESCALATE:
        return decision
    return decide(rule, triage, [machine(chance, slower, number) for number in range(rule.confirm.blocks)])


def drifting(spread: float, bursts: float) -> Callable[[random.Random, float, int], Blocked]:
    """Times drift together, differ by `spread`, and now and then one takes half as long again."""

    def block(chance: random.Random, slower: float, number: int) -> Blocked:
        level = math.exp(chance.gauss(0, 0.3))

        def one(factor: float) -> Timed:
            burst = 1.5 if chance.random() < bursts else 1.0
            return Timed(sample(level * factor * burst * math.exp(chance.gauss(0, spread)), number))

        return Blocked(one(1), one(1 + slower), one(1) if number % RULE.control.every == 0 else None)

    return block


def contended(chance: random.Random, slower: float, number: int) -> Blocked:
    """Two threads on a machine where every third sample waits for a processor and takes up to four times as long."""

    def one(factor: float) -> Timed:
        waits = chance.random() < 0.33
        seconds = factor * math.exp(chance.gauss(0, 0.02)) * (chance.uniform(1.2, 4) if waits else 1)
        return Timed(sample(seconds, number, threads=2, pressure=0.5 if waits else 0.01))

    return Blocked(one(1), one(1 + slower), one(1) if number % RULE.control.every == 0 else None)


@pytest.mark.parametrize(
    "machine",
    [drifting(0.01, 0.0), drifting(0.03, 0.1), contended],
    ids=["a quiet machine", "a noisy machine", "a contended machine, by the clock"],
)
def test_the_rates_are_those_that_are_aimed_at(machine: Callable[[random.Random, float, int], Blocked]) -> None:
    chance = random.Random(7)
    flagged = {
        slower: sum(run_on(machine, slower, chance).state == REGRESSION for _ in range(runs))
        for slower, runs in ((0.0, 200), (0.01, 100), (0.05, 100))
    }
    assert flagged[0.0] <= 1
    assert flagged[0.01] <= 5
    assert flagged[0.05] >= 99


def test_a_machine_too_noisy_to_tell_is_inconclusive_and_never_a_regression() -> None:
    chance = random.Random(3)
    states = [run_on(drifting(0.5, 0.3), 0.0, chance).state for _ in range(30)]
    assert REGRESSION not in states
    assert states.count(INCONCLUSIVE) > 15


# What a stage looks at.


def test_less_than_the_blocks_of_a_stage_decide_nothing() -> None:
    assert decide(SHORT, blocks_with([1.0] * 7)).state == INCONCLUSIVE
    slower = blocks_with([1.1] * 8)
    assert decide(SHORT, slower).state == ESCALATE
    assert decide(SHORT, slower, slower[:5]).state == INCONCLUSIVE
    assert "5 of 12" in decide(SHORT, slower, slower[:5]).why


def test_only_fresh_blocks_can_confirm() -> None:
    """A look that was bad luck is not held against head."""
    assert decide(SHORT, blocks_with([1.1] * 8), blocks_with([1.0] * 12)).state == PASS
    assert decide(SHORT, blocks_with([1.1] * 8), blocks_with([1.1] * 12)).state == REGRESSION


def test_confirmation_that_nobody_asked_for_changes_nothing() -> None:
    assert decide(SHORT, blocks_with([1.0] * 8), blocks_with([1.5] * 12)).state == PASS


def test_a_control_that_differs_makes_every_regression_inconclusive() -> None:
    confirm = blocks_with([1.1] * 12, control=[1.08] * 12)
    found = decide(SHORT, blocks_with([1.1] * 8), confirm)
    assert (found.state, found.why) == (INCONCLUSIVE, "base differs from itself by +8.0 %")


def test_blocks_that_were_disturbed_are_left_out_of_wall_time_and_too_few_decide_nothing() -> None:
    def block(number: int, pressure: float) -> Blocked:
        return Blocked(Timed(sample(1.0, number, 2, pressure)), Timed(sample(1.3, number, 2, 0.0)))

    disturbed = [block(number, 0.5) for number in range(12)]
    found = decide(SHORT, disturbed[:8], disturbed)
    assert (found.state, found.effect) == (INCONCLUSIVE, None)
    mixed = disturbed[:4] + [block(number, 0.1) for number in range(8)]
    assert decide(SHORT, disturbed[:8], mixed).state == REGRESSION


def with_peak(base: int, head: int, number: int) -> list[Blocked]:
    return [Blocked(Timed(sample(1.0), base), Timed(sample(1.0), head)) for _ in range(number)]


@pytest.mark.parametrize(
    ("base", "head", "state"),
    [
        (100 * MB, 107 * MB, REGRESSION),
        (100 * MB, 104 * MB, PASS),
        (10 * MB, 11 * MB, PASS),
        (100 * MB, 50 * MB, PASS),
    ],
    ids=["over both", "below the share", "below the bytes", "smaller"],
)
def test_a_higher_peak_of_memory_is_a_regression_over_its_own_tolerance(base: int, head: int, state: str) -> None:
    found = decide(SHORT, with_peak(base, head, 8), with_peak(base, head, 12))
    assert found.state == state
    assert found.metric == ("memory" if state == REGRESSION else "time")


def test_the_phase_that_grew_most_is_named() -> None:
    base, head = (("init", 0.2), ("update", 1.0)), (("init", 0.25), ("update", 0.9), ("max", 0.1))
    blocks = [Blocked(Timed(sample(1.2), None, base), Timed(sample(1.25), None, head))] * 3
    assert slower_phase(blocks) == ("max", 0.0, 0.1)
    assert slower_phase([Blocked(Timed(sample(1.0)), Timed(sample(1.0)))]) is None
