"""How often the gate's decision about time is wrong on synthetic machines."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable

import pytest
from gating import timed
from workbench import first_fast

from harness.gate.card import read_gate_card
from harness.gate.evidence import SideRecords
from harness.gate.rule import decide
from harness.records.file import Record

RULE = read_gate_card("usual").time


def noisy(
    chance: random.Random, slower: float, blocks: int, spread: float, bursts: float
) -> list[SideRecords]:
    """Blocks whose times differ by `spread`, and now and then one takes half as long again."""

    def noise() -> float:
        burst = 1.5 if chance.random() < bursts else 1.0
        return burst * math.exp(chance.gauss(0, spread))

    measured: list[SideRecords] = []
    for number in range(blocks):
        head = (1 + slower) * noise() / noise()
        walls = {"base": 1.0, "head": head, "again": noise() / noise()}
        measured.append({side: timed(number, wall) for side, wall in walls.items()})
    return measured


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
    blocks = machine(chance, slower, RULE.triage.blocks)
    if decide(RULE, blocks).state == "escalate":
        blocks += machine(chance, slower, RULE.confirm.blocks)
    return decide(RULE, blocks).state


QUIET = functools.partial(noisy, spread=0.01, bursts=0.0)
BUSY = functools.partial(noisy, spread=0.03, bursts=0.1)


@pytest.mark.parametrize("machine", first_fast([QUIET, BUSY, contended]))
def test_rates_on_synthetic_machines(machine: Machine) -> None:
    chance = random.Random(7)
    found = {}
    for slower, runs in ((0.0, 200), (0.01, 100), (0.05, 100)):
        states = [gate_run(machine, chance, slower) for _ in range(runs)]
        found[slower] = states.count("regression")
    assert found[0.0] <= 1
    assert found[0.01] <= 5
    assert found[0.05] >= 99


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "bursts"), [(0.1, 0.1), (0.5, 0.3)])
def test_noisy_machine_is_inconclusive_and_hardly_a_regression(
    spread: float, bursts: float
) -> None:
    machine = functools.partial(noisy, spread=spread, bursts=bursts)
    chance = random.Random(11)
    states = [gate_run(machine, chance, 0.0) for _ in range(400)]
    assert states.count("regression") <= 4
    assert states.count("inconclusive") > 100
