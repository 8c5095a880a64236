"""What a machine resolves is worked out from pairs whose truth is known: no difference but the one that was planted."""

from __future__ import annotations

import math
import random

import pytest
import scipy.stats  # noqa: F401  (imported at first use, which takes longer than Hypothesis lets a case take)
from hypothesis import given
from hypothesis import strategies as st
from workbench import first_fast

from harness.common.comparison import CONFIDENCE, MARGIN, Sample
from harness.runs.aa import POWER, Twins, Way, alarms, detectable, found_different, rate_interval, ways, windows


def pairs(number: int, noise: float, seed: int = 0, pressure: float | None = 0.0) -> list[Twins]:
    """Pairs of one program on a machine whose mood both share, and whose own noise neither does."""
    draw = random.Random(seed)

    def sample(block: int, mood: float) -> Sample:
        seconds = mood * math.exp(draw.gauss(0, noise))
        return Sample("run", block, seconds, seconds, 1, pressure)

    moods = [1 + draw.random() for _ in range(number)]
    return [(sample(block, mood), sample(block, mood)) for block, mood in enumerate(moods)]


@pytest.mark.parametrize("blocks", first_fast([6, 30, 10, 20], 2))
def test_a_program_differs_from_itself_no_more_often_than_the_confidence_allows(blocks: int) -> None:
    false, compared = alarms(Way("CPU").log_ratios(pairs(600 * blocks, 0.03)), blocks)
    assert compared == 600
    assert false / compared <= 1 - CONFIDENCE + 3 * math.sqrt(0.05 * 0.95 / 600)


@pytest.mark.parametrize("blocks", first_fast([6, 30]))
def test_what_is_called_detectable_is_detected_that_often(blocks: int) -> None:
    measured = Way("CPU").log_ratios(pairs(400, 0.03))
    smallest = detectable(measured, blocks)
    assert smallest is not None
    assert smallest > 0
    fresh = Way("CPU").log_ratios(pairs(600 * blocks, 0.03, seed=1))
    found, compared = alarms(fresh, blocks, planted=smallest)
    assert found / compared > POWER - 0.04


def test_more_blocks_resolve_more_and_more_noise_resolves_less() -> None:
    quiet, loud = (Way("CPU").log_ratios(pairs(300, noise)) for noise in (0.02, 0.1))
    few, many, noisy = detectable(quiet, 6), detectable(quiet, 30), detectable(loud, 30)
    assert few is not None
    assert many is not None
    assert noisy is not None
    assert MARGIN < many < few
    assert many < noisy


def test_a_machine_without_noise_resolves_what_is_over_the_margin() -> None:
    smallest = detectable([0.0] * 50, 10)
    assert smallest == pytest.approx(MARGIN)
    assert not found_different([0.0] * 10, math.log1p(MARGIN * 0.99))
    assert found_different([0.0] * 10, math.log1p(MARGIN * 1.01))


def test_disturbed_pairs_are_left_out_of_wall_times_only_and_too_few_left_find_nothing() -> None:
    calm, busy = pairs(6, 0.01), pairs(30, 0.01, pressure=0.9)
    assert Way("wall", filtered=True).log_ratios(busy) == [None] * 30
    assert detectable(Way("wall", filtered=True).log_ratios(busy), 30) is None
    assert detectable(Way("wall").log_ratios(busy), 30) is not None
    mixed = Way("wall", filtered=True).log_ratios(busy[:20] + calm)
    assert not found_different(mixed[:20], math.log(9))
    assert found_different(mixed, math.log(9))


def test_only_what_was_measured_is_compared() -> None:
    assert [way.name for way in ways(pairs(2, 0.1))] == [
        "CPU time",
        "wall time",
        "wall time, disturbed blocks left out",
    ]
    assert [way.clock for way in ways(pairs(2, 0.1, pressure=None))] == ["CPU", "wall"]
    wide = [(Sample("run", 0, 1.0, 1.9, 2), Sample("run", 0, 1.0, 1.9, 2))]
    assert [way.clock for way in ways(wide)] == ["wall"]


@given(st.lists(st.floats(-1, 1), max_size=60), st.integers(1, 20))
def test_windows_share_no_block_and_keep_the_order(log_ratios: list[float], blocks: int) -> None:
    cut = windows(log_ratios, blocks)
    assert [ratio for window in cut for ratio in window] == log_ratios[: len(cut) * blocks]
    assert len(log_ratios) - len(cut) * blocks < blocks


def test_the_rate_of_false_alarms_has_an_interval() -> None:
    low, high = rate_interval(0, 300)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 300))
