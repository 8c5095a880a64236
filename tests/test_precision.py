"""measure.precision: the rule by simulation, and a run that stops by it, is cut short by it, and says so."""

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
from workbench import HEAP, NAIVE, cell_of, reading_of, settings_for

from harness.common.errors import Refusal
from harness.common.registry import VariantCard
from harness.runs import running
from harness.runs.cells import TrainCell
from harness.runs.outcome import Block, Trained
from harness.runs.plan_shown import summary
from harness.runs.precision import GAVE_UP, KNOWN, Known, Rule, rule_of
from harness.runs.record import Record, read_records
from harness.runs.reproduction import command_of
from harness.runs.running import measured, record
from harness.runs.schedule import Run
from harness.runs.settings import Preset

THIRD = VariantCard("third", "variants.heap:train", family="third")
PRECISE = Preset("precise", precision=Rule(0.05))
TRUTH = math.log(1.5)
Noise = Callable[[random.Random], float]


# The rule by itself.


def outcome(rule: Rule, noise: Noise, order: random.Random) -> Known:
    """What comes of a ratio of 1.5 under noise."""
    return rule.known([TRUTH + noise(order) for _ in range(rule.most)])


def often_disturbed(order: random.Random) -> float:
    return order.gauss(0, 0.01) + (order.choice((-1, 1)) * 0.2 if order.random() < 0.1 else 0.0)


@pytest.mark.parametrize(
    "noise",
    [lambda order: order.gauss(0, 0.01), lambda order: order.gauss(0, 0.04), often_disturbed],
    ids=["little", "much", "often disturbed"],
)
def test_the_interval_holds_at_whichever_look_it_stops(noise: Noise) -> None:
    order, number = random.Random(0), 1500
    found = [outcome(Rule(0.05), noise, order) for _ in range(number)]
    held = sum(known.low is not None and known.high is not None and known.low <= 1.5 <= known.high for known in found)
    assert held / number > 0.945
    middles = [math.log((known.low or 0) * (known.high or 0)) / 2 for known in found]
    error = statistics.stdev(middles) / math.sqrt(number)
    assert abs(statistics.fmean(middles) - TRUTH) < 4 * error  # stopping does not move the ratio


def test_an_interval_of_one_look_would_not_hold_at_six() -> None:
    """So that the test above can fail: without sharing the doubt, fewer intervals hold."""
    order, number, rule, held = random.Random(0), 1500, Rule(0.05), 0
    alone = Rule(0.05, 3, 3)  # one look, with all of the doubt
    for _ in range(number):
        ratios = [order.gauss(0, 0.04) for _ in range(rule.most)]
        for look in rule.looks:
            half = alone.half_width(statistics.stdev(ratios[:look]), look)
            if math.expm1(half) <= rule.within or look == rule.most:
                held += abs(statistics.fmean(ratios[:look])) <= half
                break
    assert held / number < 0.94


def test_little_noise_needs_few_blocks_and_much_noise_all_of_them() -> None:
    order = random.Random(1)
    assert outcome(Rule(0.05), lambda _: 0.0, order)._replace(low=None, high=None) == Known(3, None, None, KNOWN)
    assert outcome(Rule(0.05), lambda order: order.gauss(0, 0.5), order).stopped == GAVE_UP
    assert Rule(0.05).known([0.0, 0.3, -0.3, 0.0, 0.1]).stopped is None  # looked at after four


@pytest.mark.parametrize(
    ("precision", "most", "timed", "said"),
    [(0.0, 20, True, "is no share"), (0.05, 2, True, "fewer than the 3"), (0.05, 20, False, "of times")],
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
    settings = settings_for(folder, measure=PRECISE, repeat=3)
    with monkeypatch.context() as patched:
        patched.setattr(Run, "train", lambda run, cell, block: clocked.train(run, cell, block))
        patched.setattr(Run, "prove", lambda *_, **__: None)
        with measured(cells, settings, folder / "jobs") as run:
            record(run, run.records())
    return [each for each in read_records([folder / "results"]) if each["cell"] == "train"]


NOISY = {"heap": 0.001, "naive": 0.001, "third": 0.06}


def test_what_is_known_is_not_run_again_and_its_reference_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = finished(tmp_path, monkeypatch, Clocked(NOISY))
    blocks = Counter(each["variant"] for each in records)
    assert blocks["naive"] == 3
    assert blocks["heap"] == blocks["third"] > 4
    told = {each["variant"]: each["precision"] for each in records}
    assert told["naive"]["blocks"] == 3
    assert told["naive"]["stopped"] == told["heap"]["stopped"] == KNOWN
    assert told["third"]["stopped"] in (KNOWN, GAVE_UP)
    assert told["naive"]["low"] <= 1 <= told["naive"]["high"] * 1.01
    assert {each["reference"] for each in told.values()} == {"heap"}
    assert all(each["block_whole"] for each in records)
    assert "measure=precise" in command_of(records[0])


def test_an_interrupted_run_goes_on_and_knows_which_cells_were_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = [(each["variant"], each["block"]) for each in finished(tmp_path, monkeypatch, Clocked(NOISY))]
    other = tmp_path / "other"
    other.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(running, "append_once", lambda *_: None)  # as kill -9 would leave it
        with pytest.raises(KeyboardInterrupt):
            finished(other, patched, Clocked(NOISY, stop_after=12))  # in a block without the one that is known
    records = finished(other, monkeypatch, Clocked(NOISY))
    assert sorted((each["variant"], each["block"]) for each in records if each["block_whole"]) == sorted(want)


def test_a_plan_tells_how_few_and_how_many_blocks(tmp_path: Path) -> None:
    settings: Any = settings_for(tmp_path, measure=PRECISE, repeat=3)
    told = summary([cell_of(reading_of(tmp_path))], [None], settings)
    assert "1 cell, 3 to 20 blocks until ratios are known within 5%" in told
