"""The doctor: what disturbs timing, and the smallest difference that this machine resolves."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from workbench import first_fast

from harness import doctor
from harness.common.comparison import CONFIDENCE, MARGIN, Sample, differ, interval
from harness.common.errors import OK, UNMEASURED, USAGE
from harness.doctor import POWER, Clock, LogRatios, Pair, SelfComparison, clocks, detectable, usual_beside
from harness.measure import lock


def pairs(number: int, noise: float, seed: int = 0, pressure: float | None = 0.0) -> list[Pair]:
    """Pairs of one program on a machine whose mood both share, and whose own noise neither does."""
    draw = random.Random(seed)

    def sample(block: int, mood: float) -> Sample:
        seconds = mood * math.exp(draw.gauss(0, noise))
        return Sample("run", block, seconds, seconds, 1, pressure)

    moods = [1 + draw.random() for _ in range(number)]
    return [(sample(block, mood), sample(block, mood)) for block, mood in enumerate(moods)]


def alarms(log_ratios: LogRatios, blocks: int, planted: float = 0.0) -> tuple[int, int]:
    """How many of how many comparisons find a difference, with a slow-down planted or none; none shares a block."""
    starts = range(0, len(log_ratios) - blocks + 1, blocks)
    return sum(differs(log_ratios[start : start + blocks], math.log1p(planted)) for start in starts), len(starts)


def differs(log_ratios: LogRatios, shift: float = 0.0) -> bool:
    low, high = interval([ratio + shift for ratio in log_ratios if ratio is not None])
    return low is not None and high is not None and differ(math.exp(low), math.exp(high))


@pytest.mark.parametrize("blocks", first_fast([6, 30, 10, 20], 2))
def test_a_program_differs_from_itself_no_more_often_than_the_confidence_allows(blocks: int) -> None:
    false, compared = alarms(Clock("CPU").log_ratios(pairs(600 * blocks, 0.03)), blocks)
    assert compared == 600
    assert false / compared <= 1 - CONFIDENCE + 3 * math.sqrt(0.05 * 0.95 / 600)


@pytest.mark.parametrize("blocks", first_fast([6, 30]))
def test_what_is_called_detectable_is_detected_that_often(blocks: int) -> None:
    measured = Clock("CPU").log_ratios(pairs(400, 0.03))
    smallest = detectable(measured, blocks)
    assert smallest is not None
    assert smallest > 0
    fresh = Clock("CPU").log_ratios(pairs(600 * blocks, 0.03, seed=1))
    found, compared = alarms(fresh, blocks, planted=smallest)
    assert found / compared > POWER - 0.04


def test_more_blocks_resolve_more_and_more_noise_resolves_less() -> None:
    quiet, loud = (Clock("CPU").log_ratios(pairs(300, noise)) for noise in (0.02, 0.1))
    few, many, noisy = detectable(quiet, 6), detectable(quiet, 30), detectable(loud, 30)
    assert few is not None
    assert many is not None
    assert noisy is not None
    assert MARGIN < many < few
    assert many < noisy


def test_a_machine_without_noise_resolves_what_is_over_the_margin() -> None:
    smallest = detectable([0.0] * 50, 10)
    assert smallest == pytest.approx(MARGIN)
    assert not differs([0.0] * 10, math.log1p(MARGIN * 0.99))
    assert differs([0.0] * 10, math.log1p(MARGIN * 1.01))


def test_disturbed_pairs_are_left_out_of_wall_times_only_and_too_few_left_find_nothing() -> None:
    calm, busy = pairs(6, 0.01), pairs(30, 0.01, pressure=0.9)
    assert Clock("wall", filtered=True).log_ratios(busy) == [None] * 30
    assert detectable(Clock("wall", filtered=True).log_ratios(busy), 30) is None
    assert detectable(Clock("wall").log_ratios(busy), 30) is not None
    mixed = Clock("wall", filtered=True).log_ratios(busy[:20] + calm)
    assert not differs(mixed[:20], math.log(9))
    assert differs(mixed, math.log(9))


def test_only_what_was_measured_is_compared() -> None:
    assert [clock.name for clock in clocks(pairs(2, 0.1))] == [
        "CPU time",
        "wall time",
        "wall time, disturbed blocks left out",
    ]
    assert [clock.kind for clock in clocks(pairs(2, 0.1, pressure=None))] == ["CPU", "wall"]
    wide = [(Sample("run", 0, 1.0, 1.9, 2), Sample("run", 0, 1.0, 1.9, 2))]
    assert [clock.kind for clock in clocks(wide)] == ["wall"]


# The command

PAIRS = pairs(40, 0.03)


def test_a_look_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--no-run"]) == OK
    out = capsys.readouterr().out
    assert "disturb timing (!)" in out
    assert "A/A run" not in out
    assert doctor.main(["--no-run", "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert told["resolution"] is None
    assert {"load", "processors", "valgrind"} <= {finding["name"] for finding in told["findings"]}


@pytest.mark.slow
def test_an_aa_run_says_what_can_be_told_apart(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SelfComparison, "pair", lambda _, block: PAIRS[block % len(PAIRS)])
    assert doctor.main(["--seconds", "0", "--repeat", "12"]) == OK
    out = capsys.readouterr().out
    assert "A/A run: heap against itself on stdlib, 20 pairs" in out
    assert "With repeat=12 this machine now resolves" in out
    assert doctor.main(["--seconds", "0", "--json", "--set", "data.bytes=100kB"]) == OK
    told = json.loads(capsys.readouterr().out)["resolution"]
    assert told["pairs"] == 20
    assert told["detectable"]["CPU time"]["10"] > 0


@pytest.mark.slow
def test_pairs_are_measured_in_fresh_processes(tmp_path: Path) -> None:
    compared = SelfComparison(["data.bytes=50kB", "vocab_size=300"], tmp_path)
    first, second = compared.pair(3)
    assert (first.block, first.threads) == (second.block, second.threads) == (3, 1)
    assert first.wall_seconds > 0
    assert first.wall_seconds != second.wall_seconds


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--repeat", "3"], USAGE, "--repeat=3 is not possible; it is a number of 6 or more"),
        (["--seconds", "0", "--set", "variant=nobody"], USAGE, "nobody"),
        (["--seconds", "0", "--set", "variants=all"], USAGE, "an A/A run is of one cell"),
        (["--seconds", "0", "--set", "variant._target_=nowhere:train"], UNMEASURED, "be compared with itself (error"),
    ],
)
def test_what_cannot_be_done_is_answered_with_a_sentence(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.main(arguments) == code
    assert said in capsys.readouterr().err


def test_the_usual_gives_way_to_what_was_said() -> None:
    assert usual_beside([]) == ["data=stdlib", "data.bytes=600kB", "vocab_size=1000", "limits.wall=60"]
    assert usual_beside(["data.path=book.txt", "limits.memory=1GB"]) == ["vocab_size=1000"]


def test_an_aa_run_may_be_made_beside_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SelfComparison, "pair", lambda _, block: PAIRS[block % len(PAIRS)])
    with lock.timing():
        assert doctor.main(["--seconds", "0", "--set", "data.bytes=50kB", "--concurrent"]) == OK
