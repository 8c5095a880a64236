"""The gate's decision about time: against a plain reference, by its rates on synthetic machines,
and as a table.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Sequence

import pytest
from gating import timed

from harness.gate.card import Stage, TimeRule
from harness.gate.evidence import INCONCLUSIVE, PASS, REGRESSION, SideRecords
from harness.gate.rule import ESCALATE, decide
from harness.records.file import Record

RULE = TimeRule()
SHORT = TimeRule(triage=Stage(8, 0.015), confirm=Stage(12, 0.025))
MB = 1_000_000


def blocks_with(ratios: Sequence[float], control: Sequence[float] = ()) -> list[SideRecords]:
    """Blocks of one thread in which head takes so many times as long as base."""
    blocks: list[dict[str, Record]] = [
        {"base": timed(number, 1.0), "head": timed(number, ratio)}
        for number, ratio in enumerate(ratios)
    ]
    for number, ratio in enumerate(control):
        blocks[number]["again"] = timed(number, ratio)
    return [*blocks]


def noisy(
    chance: random.Random, slower: float, blocks: int, spread: float, bursts: float
) -> list[SideRecords]:
    """Blocks whose times differ by `spread`, and now and then one takes half as long again."""

    def noise() -> float:
        burst = 1.5 if chance.random() < bursts else 1.0
        return burst * math.exp(chance.gauss(0, spread))

    ratios = [(1 + slower) * noise() / noise() for _ in range(blocks)]
    control = [noise() / noise() for _ in range(blocks)]
    return blocks_with(ratios, control)


def contended(chance: random.Random, slower: float, blocks: int) -> list[SideRecords]:
    """Two threads on a machine where every third sample waits for a CPU and takes up to four times
    as long.
    """

    def sample(number: int, factor: float) -> Record:
        waits = chance.random() < 0.33
        delay = chance.uniform(1.2, 4) if waits else 1.0
        seconds = factor * delay * math.exp(chance.gauss(0, 0.02))
        return timed(number, seconds, threads=2, pressure=0.5 if waits else 0.01)

    factors = {"base": 1.0, "head": 1 + slower, "again": 1.0}
    return [
        {side: sample(number, factor) for side, factor in factors.items()}
        for number in range(blocks)
    ]


Machine = Callable[[random.Random, float, int], list[SideRecords]]


def gate_run(machine: Machine, chance: random.Random, slower: float) -> str:
    """The state after one gate run: confirmation is from fresh blocks, and only if requested."""
    triage = machine(chance, slower, RULE.triage.blocks)
    state = decide(RULE, triage).state
    if state != ESCALATE:
        return state
    return decide(RULE, triage, machine(chance, slower, RULE.confirm.blocks)).state


QUIET = functools.partial(noisy, spread=0.01, bursts=0.0)
BUSY = functools.partial(noisy, spread=0.03, bursts=0.1)


@pytest.mark.parametrize("machine", [QUIET, BUSY, contended], ids=["quiet", "busy", "contended"])
def test_rates_on_synthetic_machines(machine: Machine) -> None:
    chance = random.Random(7)
    found = {}
    for slower, runs in ((0.0, 200), (0.01, 100), (0.05, 100)):
        states = [gate_run(machine, chance, slower) for _ in range(runs)]
        found[slower] = states.count(REGRESSION)
    assert found[0.0] <= 1
    assert found[0.01] <= 5
    assert found[0.05] >= 99


@pytest.mark.parametrize(("spread", "bursts"), [(0.1, 0.1), (0.5, 0.3)])
def test_noisy_machine_is_inconclusive_and_hardly_a_regression(
    spread: float, bursts: float
) -> None:
    machine = functools.partial(noisy, spread=spread, bursts=bursts)
    chance = random.Random(11)
    states = [gate_run(machine, chance, 0.0) for _ in range(400)]
    assert states.count(REGRESSION) <= 4
    assert states.count(INCONCLUSIVE) > 100


def peaks(base: int, head: int, count: int) -> list[SideRecords]:
    return [
        {
            "base": timed(each, 1.0, peak_rss_bytes=base),
            "head": timed(each, 1.0, peak_rss_bytes=head),
        }
        for each in range(count)
    ]


def waiting(pressures: Sequence[float]) -> list[SideRecords]:
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
def test_decision(
    triage: list[SideRecords], confirm: list[SideRecords], state: str, why: str
) -> None:
    decision = decide(SHORT, triage, confirm)
    assert decision.state == state
    assert decision.why.startswith(why)
