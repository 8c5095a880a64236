"""Forecasts: a power law is found again, its interval holds what was left out, and a pruned table is what is said."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from harness.common.errors import USAGE
from harness.forecast import main
from harness.runs.drift import positions, without_rare
from harness.runs.forecasting import Slice, checked, grown
from harness.runs.growth import KINDS, TRAINING_MEMORY, WORDS, growth
from variants.contract import WordCounts

SIZES = (10**6, 10**7, 10**8, 10**9)


def test_a_power_law_is_found_again_and_reached_where_it_says() -> None:
    found = growth(WORDS, [(size, 3 * size**0.55) for size in SIZES])
    assert found is not None
    assert found.exponent == pytest.approx(0.55, abs=0.01)
    ahead = found.expected(1e12)
    assert ahead.low < 3 * 1e12**0.55 < ahead.high
    reached = found.reaches(3 * 1e12**0.55)
    assert reached.low < 1e12 < reached.high
    assert found.expected(reached.value).value == pytest.approx(3 * 1e12**0.55, rel=1e-6)


def test_what_a_process_has_anyhow_is_no_growth() -> None:
    found = growth(TRAINING_MEMORY, [(size, 2e7 + 5 * size**0.6) for size in SIZES])
    assert found is not None
    assert found.exponent == pytest.approx(0.6, abs=0.05)
    assert found.base == pytest.approx(2e7, rel=0.01)


def test_an_interval_widens_with_the_distance() -> None:
    found = growth(WORDS, [(size, 3 * size**0.55) for size in SIZES])
    assert found is not None
    widths = [ahead.high / ahead.low for ahead in (found.expected(10.0**power) for power in range(9, 15))]
    assert widths == sorted(widths)
    assert widths[0] < 1.3 < 2 < widths[-1]


def test_intervals_hold_what_was_left_out_nine_times_in_ten() -> None:
    """Growth with noise and with a bent exponent, as texts have: the largest is predicted from the others."""
    held = 0
    for seed in range(300):
        chance = random.Random(seed)
        exponent, bend = chance.uniform(0.4, 0.75), chance.uniform(-0.008, 0.002)
        slices = [
            (size, 5 * size ** (exponent + bend * math.log(size / 1e6)) * math.exp(chance.gauss(0, 0.03)))
            for size in SIZES
        ]
        found = growth(WORDS, slices[:-1])
        assert found is not None
        held += found.expected(slices[-1][0]).holds(slices[-1][1])
    assert held >= 270


def test_where_growth_has_changed_before_it_may_change_again() -> None:
    """The distinct words of a sorted corpus, the sources of Linux: one slice brings little, the next much."""
    slices = [(10**7, 38_364.0), (3 * 10**7, 82_722.0), (10**8, 174_774.0), (3 * 10**8, 210_941.0)]
    found = growth(WORDS, slices)
    assert found is not None
    assert found.expected(1_176_841_382).holds(681_722)
    steady = growth(WORDS, slices[:3])
    assert steady is not None
    assert steady.missed == 0 < found.missed


def test_one_size_tells_no_growth() -> None:
    assert growth(WORDS, [(10**6, 5.0), (10**6, 6.0)]) is None


def test_the_largest_slice_is_held_against_the_others() -> None:
    slices = [Slice(size, {kind.name: 1e3 + size ** kind.usual[0] for kind in KINDS}) for size in SIZES]
    assert all(check.held for check in checked(slices))
    assert set(grown(slices)) == {kind.name for kind in KINDS}
    other = Slice(SIZES[-1], {kind.name: 100.0 * SIZES[-1] for kind in KINDS})
    assert not any(check.held for check in checked([*slices[:-1], other]))
    assert checked(slices[:2]) == []


def test_a_pruned_table_has_the_frequent_words_alone() -> None:
    words = {b"low": 5, b"er": 1, b"newest": 2, b"a": 1}
    pruned = without_rare(WordCounts.from_items(words.items()), 2)
    assert dict(pruned) == {b"low": 5, b"newest": 2}
    assert (positions(WordCounts.from_items(words.items())), positions(pruned)) == (21, 20)
    assert dict(without_rare(pruned, 9)) == {}


def test_a_forecast_takes_slices_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", "stdlib", "data.bytes=1MB"]) == USAGE
    assert "data.bytes is not for a forecast, which takes slices of its own; say --sizes" in capsys.readouterr().err


def write(folder: Path) -> Path:
    chance = random.Random(1)
    words = [f"w{number}" for number in range(60_000)]
    drawn = (words[int(chance.paretovariate(0.5)) % len(words)] for _ in range(150_000))
    text = folder / "text.txt"
    text.write_text("".join(word + ("<|endoftext|>" if place % 50 == 0 else " ") for place, word in enumerate(drawn)))
    return text


@pytest.mark.slow
def test_a_forecast_is_measured_checked_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = ["--data", str(write(tmp_path)), "--sizes", "30kB,100kB,300kB,900kB", "variant=flat", "counting=native"]
    usual += ["vocab_size=400", f"results={tmp_path / 'results'}"]
    assert main([*usual, "--bytes", "1GB", "--machine", "1GB"]) == 0
    told = capsys.readouterr().out
    assert "at 1.00 GB" in told
    assert "the largest slice, predicted from the others:" in told
    assert "a machine of 1.00 GB has room for the memory of counting of about" in told
    assert main([*usual, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == 10**12
    assert [each["bytes"] for each in told["slices"]] == sorted(each["bytes"] for each in told["slices"])
    assert len(told["slices"]) == 4
    assert {check["name"] for check in told["checks"]} <= {kind.name for kind in KINDS}


@pytest.mark.slow
def test_the_drift_of_parts_is_told_against_the_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = ["--data", str(write(tmp_path)), "--sizes", "30kB,300kB", "--drift", "variant=flat", "vocab_size=400"]
    assert main([*usual, "--format", "json"]) == 0
    whole, *others = json.loads(capsys.readouterr().out)
    assert whole["first_difference"] is None
    assert whole["common"] == 1
    assert len(others) == 5
    assert [each["words"] for each in others[:4]] == sorted((each["words"] for each in others[:4]), reverse=True)
    assert all(each["bytes_per_token"] <= whole["bytes_per_token"] * 1.05 for each in others)
    assert main([*usual, "--format", "markdown"]) == 0
    assert "| all " in capsys.readouterr().out
