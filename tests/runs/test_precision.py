"""measure.precision: the rule by simulation, and a run that stops by it and goes on after an interruption."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from workbench import HEAP, NAIVE, cell_of, measuring, reading_of, settings_for

from harness.common.comparison import interval
from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.records.file import Record
from harness.records.load import read_records
from harness.runs import precision
from harness.runs.cells import TrainCell
from harness.runs.outcome import Trained
from harness.runs.precision import blocks_needed
from harness.runs.prove import Prover
from harness.runs.resume import Block
from harness.runs.schedule import Run
from harness.runs.settings import Preset, Rule, rule_of

THIRD = VariantCard("third", "variants.heap:train", family="third")
PRECISE = Preset("precise", precision=Rule(0.05))
pytestmark = pytest.mark.usefixtures("measured_once")
TRUTH = math.log(1.5)
Noise = Callable[[random.Random], float]


# The rule by itself.


def often_disturbed(order: random.Random) -> float:
    return order.gauss(0, 0.01) + (order.choice((-1, 1)) * 0.2 if order.random() < 0.1 else 0.0)


@pytest.mark.parametrize(
    "noise",
    [
        lambda order: order.gauss(0, 0.01),
        lambda order: order.gauss(0, 0.1),
        lambda order: 0.03 * math.tan(math.pi * (order.random() - 0.5)),
        lambda order: order.uniform(-0.1, 0.1),
        often_disturbed,
    ],
    ids=["little", "much", "heavy tails", "even", "often disturbed"],
)
def test_intervals_hold_and_ratios_have_no_bias_when_the_spread_decides_the_blocks(noise: Noise) -> None:
    order, number = random.Random(0), 3000
    held, ratios = 0, []
    for _ in range(number):
        logs = [TRUTH + noise(order) for _ in range(6)]
        logs += [TRUTH + noise(order) for _ in range(6, blocks_needed(logs, 0.05, 6, 20))]
        low, high = interval(logs)
        assert low is not None
        assert high is not None
        held += low <= TRUTH <= high
        ratios.append(statistics.median(logs))
    assert held / number >= 0.94
    error = statistics.stdev(ratios) / math.sqrt(number)
    assert abs(statistics.fmean(ratios) - TRUTH) < 4 * error


def test_little_noise_needs_six_blocks_and_much_noise_all_of_them() -> None:
    assert blocks_needed([0.0, 0.01, 0.02, 0.0, 0.01, 0.02], 0.05, 6, 20) == 6
    assert blocks_needed([-0.07, 0.0, 0.07, 0.0, 0.0, 0.0], 0.05, 6, 20) == math.ceil(6 * (0.07 / math.log(1.05)) ** 2)
    assert blocks_needed([-0.5, 0.5, 0.0, 0.0, 0.0, 0.0], 0.05, 6, 20) == 20
    assert blocks_needed([0.0, 0.5], 0.05, 6, 20) == 6  # disturbed blocks do not count: there is no interval yet


@pytest.mark.parametrize(("log_ratios", "far"), [([30] * 3, True), ([30] * 2, False), ([19] * 3, False)])
def test_far_cells_are_measured_three_times(monkeypatch: pytest.MonkeyPatch, log_ratios: list[int], far: bool) -> None:
    monkeypatch.setattr(precision, "log_ratios", lambda *_: list(map(math.log, log_ratios)))
    cell: Any = None
    assert precision.is_far(cell, [], {}) == far
    assert precision.needs_more(cell, [], {}, Rule(0.05)) != far


@pytest.mark.parametrize(
    ("precision", "most", "timed", "said"),
    [(0.0, 20, True, "between 0 and 1"), (0.05, 5, True, "fewer than the 6"), (0.05, 20, False, "of times")],
)
def test_what_cannot_be_is_refused(precision: float, most: int, timed: bool, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        rule_of(precision, 1, most, timed=timed)


# Runs by it.


class Clocked:
    """Trainers that take what they are told to, without being run."""

    def __init__(self, noise: dict[str, float], stop_after: int | None = None) -> None:
        self.noise, self.stop_after, self.begun = noise, stop_after, itertools.count()

    def train(self, run: Run, cell: TrainCell, block: Block) -> Trained:
        if next(self.begun) == self.stop_after:
            raise KeyboardInterrupt
        order = random.Random(f"{cell.variant.name} {block.number}")
        seconds = math.exp(order.gauss(0, self.noise[cell.variant.name]))
        answer: dict[str, Any] = {
            "status": "ok",
            "reason": None,
            "total": seconds,
            "cpu_seconds": seconds,
            "seconds": {},
        }
        counted = run.counts[next(iter(run.counts))]
        started = datetime.fromtimestamp(next(moments), timezone.utc).isoformat()
        return Trained(cell, block, started, answer, counted, [])


moments = itertools.count()


def finished(folder: Path, monkeypatch: pytest.MonkeyPatch, clocked: Clocked) -> list[Record]:
    """The records of three trainers, heap the reference."""
    reading = reading_of(folder)
    cells = [cell_of(reading, variant) for variant in (HEAP, NAIVE, THIRD)]
    settings = settings_for(folder, measure=PRECISE, repeat=6)
    with monkeypatch.context() as patched:
        patched.setattr(Run, "train", lambda run, cell, block: clocked.train(run, cell, block))
        patched.setattr(Prover, "prove", lambda *_, **__: None)
        with measuring(cells, settings, folder / "jobs"):
            pass
    return [each for each in read_records([folder / "results"]) if each["cell"] == "train"]


NOISY = {"heap": 0.001, "naive": 0.001, "third": 0.06}


def test_what_needs_no_more_blocks_is_not_run_again_and_its_reference_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = finished(tmp_path, monkeypatch, Clocked(NOISY))
    blocks = Counter(each["variant"] for each in records)
    assert blocks["naive"] == 6
    assert 6 < blocks["heap"] == blocks["third"] <= 20
    assert all(each["precision"] == {"asked": 0.05, "most": 20, "reference": "heap"} for each in records)
    assert all(each["block_whole"] for each in records)


def test_an_interrupted_run_goes_on_and_knows_which_cells_need_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = [(each["variant"], each["block"]) for each in finished(tmp_path, monkeypatch, Clocked(NOISY))]
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(KeyboardInterrupt):
        finished(other, monkeypatch, Clocked(NOISY, stop_after=20))  # in a block without the one that is precise
    records = finished(other, monkeypatch, Clocked(NOISY))
    assert sorted((each["variant"], each["block"]) for each in records if each["block_whole"]) == sorted(want)
