"""The gate's decision about time: against a plain reference, by its rates on synthetic machines,
and as a table.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import pytest
from gating import timed

from harness.gate.card import Stage, TimeRule
from harness.gate.evidence import INCONCLUSIVE, PASS, REGRESSION, Sides
from harness.gate.rule import CONTROL_EVERY, ESCALATE, Decision, decide
from harness.records.file import Record

RULE = TimeRule()
SHORT = TimeRule(triage=Stage(8, 0.015), confirm=Stage(12, 0.025))
MB = 1_000_000


def blocks_with(ratios: Sequence[float], control: Sequence[float] = ()) -> list[Sides]:
    """Blocks of one thread in which head takes so many times as long as base."""
    blocks: list[dict[str, Record]] = [
        {"base": timed(number, 1.0), "head": timed(number, ratio)}
        for number, ratio in enumerate(ratios)
    ]
    for number, ratio in enumerate(control):
        blocks[number]["again"] = timed(number, ratio)
    return [*blocks]


def one_block(one: Callable[[float], Record], slower: float, number: int) -> Sides:
    """A block whose samples are taken by `one`, which is told how much slower each is."""
    arms = {"base": 1.0, "head": 1 + slower} | (
        {"again": 1.0} if number % CONTROL_EVERY == 0 else {}
    )
    return {arm: one(factor) for arm, factor in arms.items()}


Machine = Callable[[random.Random, float, int], Sides]


def gate_run(machine: Machine, slower: float, chance: random.Random) -> Decision:
    """One gate run: confirmation only if it is requested, from fresh blocks."""
    triage = [machine(chance, slower, number) for number in range(RULE.triage.blocks)]
    decision = decide(RULE, triage)
    if decision.state != ESCALATE:
        return decision
    fresh = [machine(chance, slower, number) for number in range(RULE.confirm.blocks)]
    return decide(RULE, triage, fresh)


def drifting(spread: float, bursts: float) -> Machine:
    """Times drift together, differ by `spread`, and now and then one takes half as long again."""

    def block(chance: random.Random, slower: float, number: int) -> Sides:
        level = math.exp(chance.gauss(0, 0.3))

        def one(factor: float) -> Record:
            burst = 1.5 if chance.random() < bursts else 1.0
            return timed(number, level * factor * burst * math.exp(chance.gauss(0, spread)))

        return one_block(one, slower, number)

    return block


def contended(chance: random.Random, slower: float, number: int) -> Sides:
    """Two threads on a machine where every third sample waits for a CPU and takes up to four
    times as long.
    """

    def one(factor: float) -> Record:
        waits = chance.random() < 0.33
        seconds = (
            factor * math.exp(chance.gauss(0, 0.02)) * (chance.uniform(1.2, 4) if waits else 1)
        )
        return timed(number, seconds, threads=2, pressure=0.5 if waits else 0.01)

    return one_block(one, slower, number)


@pytest.mark.parametrize(
    "machine",
    [drifting(0.01, 0.0), drifting(0.03, 0.1), contended],
    ids=["quiet", "noisy", "contended, wall time"],
)
def test_rates_on_synthetic_machines(machine: Machine) -> None:
    chance = random.Random(7)
    found = {
        slower: sum(gate_run(machine, slower, chance).state == REGRESSION for _ in range(runs))
        for slower, runs in ((0.0, 200), (0.01, 100), (0.05, 100))
    }
    assert found[0.0] <= 1
    assert found[0.01] <= 5
    assert found[0.05] >= 99


def test_too_noisy_machine_is_inconclusive_and_never_a_regression() -> None:
    chance = random.Random(3)
    states = [gate_run(drifting(0.5, 0.3), 0.0, chance).state for _ in range(30)]
    assert REGRESSION not in states
    assert states.count(INCONCLUSIVE) > 15


def peaks(base: int, head: int, count: int) -> list[Sides]:
    return [
        {
            "base": timed(each, 1.0, peak_rss_bytes=base),
            "head": timed(each, 1.0, peak_rss_bytes=head),
        }
        for each in range(count)
    ]


def waiting(pressures: Sequence[float]) -> list[Sides]:
    """Blocks of two threads in which head is 30 % slower, and base waited for a CPU."""
    return [
        {
            "base": timed(block, 1.0, threads=2, pressure=each),
            "head": timed(block, 1.3, threads=2),
        }
        for block, each in enumerate(pressures)
    ]


EVEN, SLOWER, WAITING = blocks_with([1.0] * 12), blocks_with([1.1] * 12), waiting([0.5] * 8)


@pytest.mark.parametrize(
    ("triage", "confirm", "state", "why"),
    [
        (EVEN[:7], [], INCONCLUSIVE, "7 of 8 blocks were measured"),
        (blocks_with([1.014] * 8), [], PASS, "no slower"),
        (blocks_with([1.016] * 8), [], ESCALATE, "head looks slower"),
        (blocks_with([1.0] * 7 + [1.051]), [], ESCALATE, "too few blocks to tell"),
        (blocks_with([1.0] * 7 + [1.049]), [], PASS, "no slower"),
        (SLOWER[:8], blocks_with([1.024] * 12), PASS, "no slower"),
        (SLOWER[:8], blocks_with([1.026] * 12), REGRESSION, "head is slower"),
        (
            SLOWER[:8],
            blocks_with([1.02] * 9 + [1.051] * 3),
            INCONCLUSIVE,
            "a slow-down by 5 % cannot be excluded",
        ),
        (
            SLOWER[:8],
            blocks_with([0.99] * 3 + [1.04] * 9),
            INCONCLUSIVE,
            "the machine is too noisy",
        ),
        (SLOWER[:8], blocks_with([1.1] * 12, [1.014] * 12), REGRESSION, "head is slower"),
        (
            SLOWER[:8],
            blocks_with([1.1] * 12, [1.016] * 12),
            INCONCLUSIVE,
            "two measurements of base differ by 1.6 %",
        ),
        (
            SLOWER[:8],
            blocks_with([1.1] * 12, [0.98] * 12),
            INCONCLUSIVE,
            "two measurements of base differ by 2.0 %",
        ),
        (
            SLOWER[:8],
            blocks_with([1.1] * 12, [0.99] + [1.05] * 11),
            INCONCLUSIVE,
            "two measurements of base differ",
        ),
        (
            SLOWER[:8],
            blocks_with([1.1] * 12, [0.99] * 2 + [1.05] * 10),
            REGRESSION,
            "head is slower",
        ),
        (SLOWER[:8], [], ESCALATE, "head looks slower"),
        (SLOWER[:8], SLOWER[:5], INCONCLUSIVE, "5 of 12 blocks of confirmation"),
        (SLOWER[:8], EVEN, PASS, "no slower"),  # only fresh blocks can confirm
        (EVEN[:8], SLOWER, PASS, "no slower"),  # nobody requested a confirmation
        (WAITING, waiting([0.5] * 12), INCONCLUSIVE, "only 0 of 12 blocks were undisturbed"),
        (WAITING, waiting([0.5] * 2 + [0.1] * 10), REGRESSION, "head is slower"),
        (
            peaks(100 * MB, 107 * MB, 8),
            peaks(100 * MB, 107 * MB, 12),
            REGRESSION,
            "the peak of memory is higher",
        ),
        # below the share
        (peaks(100 * MB, 104 * MB, 8), peaks(100 * MB, 104 * MB, 12), PASS, "no slower"),
        # below the bytes
        (peaks(10 * MB, 11 * MB, 8), peaks(10 * MB, 11 * MB, 12), PASS, "no slower"),
        (peaks(100 * MB, 50 * MB, 8), peaks(100 * MB, 50 * MB, 12), PASS, "no slower"),
    ],
)
def test_decision(triage: list[Sides], confirm: list[Sides], state: str, why: str) -> None:
    decision = decide(SHORT, triage, confirm)
    assert decision.state == state
    assert decision.why.startswith(why)
