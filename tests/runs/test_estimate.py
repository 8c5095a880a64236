"""What limits.wall stops has its total estimated from runs on parts of its input, and never a
time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomllib
from measured import record_of
from workbench import BRIEF, cell_of, first_fast, reading_of, run_of, unruly

from harness.common.registry import VariantCard
from harness.measure.process import Answer, WorkerLimits
from harness.runs import jobs
from harness.runs.jobs import Estimate, estimate_total, make_part, power_law, write_beginning
from harness.runs.run import exit_code
from harness.worker import exchange
from variants.contract import WordCounts

pytestmark = pytest.mark.usefixtures("measured_once", "unruly_trainers")

MANY_WORDS = " ".join(map("".join, itertools.product("abcdefghijklmnopqrst", repeat=3)))
GROWTH = Path(__file__).with_name("growth.toml")


# Laws, from times that are told.


def estimated(
    text: Path, merges: int, wall: float, seconds_of: Callable[[int], float]
) -> tuple[Estimate | None, dict[int, float]]:
    """The estimate for a trainer that takes such a time for so many merges, without being run; and
    what each part took.
    """
    spent: dict[int, float] = {}

    def run_part(_: Path, num_merges: int, seconds: float) -> Answer:
        took = seconds_of(num_merges)
        spent[num_merges] = min(took, seconds)
        status = "ok" if took < seconds else "timeout"
        return Answer(status, total=spent[num_merges], merges_done=num_merges)

    return estimate_total(text, merges, wall, run_part), spent


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text(MANY_WORDS)
    return path


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_parts_grow_until_the_time_of_the_limit_is_over_again(text: Path, power: float) -> None:
    found, spent = estimated(text, 1000, 10.0, lambda merges: 40.0 * (merges / 1000) ** power)
    assert found is not None
    assert sum(spent.values()) <= 10.0
    assert [*spent][:4] == [1, 3, 7, 15]  # of 1,000; a 1,024th would be none
    assert found.exponent == pytest.approx(power, abs=0.05)
    assert found.low_seconds < 40 < found.high_seconds


def test_the_interval_holds_the_total_nine_times_in_ten(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trainers that did end, by their CPU time, as if limits.wall had stopped them at a half down
    to a 32nd of it.
    """
    monkeypatch.setattr(jobs, "SECONDS_TO_START", 0.0)
    monkeypatch.setattr(jobs, "SHORTEST_SECONDS", 0.0)  # of CPU time, which needs no start
    held = []
    for row in tomllib.loads(GROWTH.read_text())["row"]:
        parts = {int(merges): seconds for merges, seconds in row["parts"].items()}
        for divisor in (2, 4, 8, 16, 32):
            wall = row["whole"] / divisor
            found, _ = estimated(text, row["merges"], wall, parts.__getitem__)
            # what takes less is the start of a process
            bounds = None if found is None else found.beyond(wall)
            if bounds is not None and wall > 0.02:
                held.append(bounds.low_seconds <= row["whole"] <= bounds.high_seconds)
    assert len(held) > 30
    assert sum(held) / len(held) >= 0.9


@pytest.mark.parametrize(
    "answer", [Answer("error", "it raised"), Answer("ok", total=1.0, merges_done=0)]
)
def test_parts_that_fail_say_nothing(text: Path, answer: Answer) -> None:
    assert estimate_total(text, 1000, 10.0, lambda *_: answer) is None


@pytest.mark.parametrize(
    ("seconds", "is_law"),
    [
        ([0.01, 0.02, 0.04], False),  # too short
        ([0.01, 0.06, 0.12], True),
        ([1.0, 1.2, 1.5], False),  # a fixed cost
        ([0.1, 1.0, 10.0], False),  # steeper than any trainer
        ([0.1, 0.4, 1.6], True),
        ([1.0], False),
        ([0.0, 1.0], False),
    ],
)
def test_law_is_that_of_a_trainer(seconds: list[float], is_law: bool) -> None:
    times = zip((1 / 16, 1 / 8, 1 / 4), seconds, strict=False)
    assert (power_law([*times]) is not None) == is_law


def test_law_that_the_time_already_spent_refutes_says_nothing() -> None:
    law = power_law([(1 / 16, 1.0), (1 / 8, 2.0), (1 / 4, 4.0)])
    assert law is not None
    assert law.beyond(16.0) is law.beyond(20.0) is None
    high = law.high_seconds + 3.0
    assert law.beyond(10.0, 3.0) == Estimate(19.0, 13.0, high, law.exponent)


# Parts.


def test_a_part_of_words_is_their_first_bytes_with_their_counts(tmp_path: Path) -> None:
    def half(items: dict[bytes, int]) -> dict[bytes, int]:
        words = tmp_path / f"{len(items)} words"
        exchange.write_words(words, WordCounts.from_items(items.items()))
        part = make_part(words, 2, tmp_path / f"half of {len(items)}")
        return dict(exchange.read_words(part)[0])

    assert half({b"a": 1, b"bc": 2, b"defgh": 3, b"ij": 4}) == {b"a": 1, b"bc": 2, b"de": 3}
    assert half({b"abcdefgh": 7}) == {b"abcd": 7}


def test_a_beginning_ends_with_a_whole_character(tmp_path: Path) -> None:
    content = "aé\u8a9e\U0001f600b\né".encode()
    whole, part = tmp_path / "whole", tmp_path / "part"
    whole.write_bytes(content)
    for size in range(len(content) + 1):
        write_beginning(whole, size, part)
        assert part.read_text("utf-8") == content[:size].decode(errors="ignore")


# Runs.


@pytest.mark.parametrize(
    ("name", "content", "limit"),
    first_fast(
        [
            ("hangs_after_some_merges", "low lower lowest", BRIEF.wall_seconds),
            ("makes_rubbish_slowly", MANY_WORDS, 2.0),
            ("starts_slowly", MANY_WORDS, 2.0),
        ]
    ),
)
def test_parts_that_prove_or_show_nothing_give_no_estimate(
    tmp_path: Path, name: str, content: str, limit: float
) -> None:
    limits = WorkerLimits(wall_seconds=limit)
    cell = cell_of(reading_of(tmp_path, content), unruly(name), 2000, limits=limits)
    (record,) = [each for each in run_of(tmp_path, [cell]).records() if each["cell"] == "train"]
    assert (record["status"], record["extrapolated"]) == ("timeout", None)


SLOWLY = 2000 * 0.02
"""Seconds of 2,000 merges."""
READING = len(MANY_WORDS) / 4000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tags", "merges", "seconds", "limit", "doubt"),
    [
        ("merges_slowly", (), 2000, SLOWLY, SLOWLY / 8, SLOWLY * 0.2),
        ("reads_slowly", (), 100, READING, READING / 2, 0.5),
        ("reads_slowly_without_letting_go", ("from_file",), 100, READING, READING / 2, 0.5),
    ],
)
def test_what_is_stopped_is_extrapolated_by_runs_on_beginnings_and_its_merges_are_proved(
    tmp_path: Path, name: str, tags: Any, merges: int, seconds: float, limit: float, doubt: float
) -> None:
    reading = reading_of(tmp_path, MANY_WORDS)
    slow = VariantCard(name, f"unruly:{name}", family=name, tags=tags)
    cell = cell_of(reading, slow, merges, limits=WorkerLimits(wall_seconds=limit))
    records = run_of(tmp_path, [cell, cell_of(reading, num_merges=merges)], repeat=2).records()

    # once, and not in each block
    (record,) = [each for each in records if each["variant"] == name]
    assert (record["status"], record["merges"]) == ("extrapolated", None)
    assert record["seconds"]["total"] is None
    found = record["extrapolated"]
    assert found["low_seconds"] - doubt <= seconds <= found["high_seconds"]
    if name == "merges_slowly":
        assert record["identity"]["kind"] == "identical"
        assert found["merges_done"] == record["merges_done"]
    assert record_of(record).identity == record.identity
    assert (exit_code(records), exit_code([record])) == (0, 22)
