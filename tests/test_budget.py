"""Under limits.wall: cheap first, what is over stops once, and its total is extrapolated and never a time."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st
from workbench import BRIEF, HEAP, TESTS, TEXT, cell_of, limits_wait, reading_of, settings_for, unruly

from harness.common.registry import VariantCard
from harness.measure.process import Limits
from harness.runs import costs as budget
from harness.runs.cells import TrainCell
from harness.runs.costs import (
    Part,
    Slices,
    beginning,
    expected_cost,
    keep_cost,
    of_stopped,
    predicted,
    predicted_from_beginnings,
)
from harness.runs.extrapolation import MEASURED, Estimate
from harness.runs.record_keys import complaints
from harness.runs.running import exit_code
from harness.runs.schedule import Run
from harness.runs.settings import Preset
from harness.worker import word_store
from variants.contract import WordCounts

pytestmark = pytest.mark.usefixtures("measured_once")

INCREMENTAL = VariantCard("incremental", "variants.incremental:train", family="indexed")
runs = itertools.count()
LIMITED = Limits(wall_seconds=60.0)
MANY_MERGES = 2000
"""Of `merges_slowly` in BRIEF's time there are only some."""
MANY_WORDS = " ".join(f"{a}{b}{c}" for a, b, c in itertools.product("abcdefghijklmnopqrst", repeat=3))


@pytest.fixture(autouse=True)
def unruly_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def run_of(folder: Path, cells: Sequence[TrainCell], **settings: Any) -> Run:
    run = Run(cells, settings_for(folder, **settings), folder / f"jobs{next(runs)}")
    run.measure_all()
    run.prove()
    return run


def estimated(seconds: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(seconds, low or seconds, high or seconds, 1.5, "slices")


# Order.


@pytest.mark.slow
def test_the_first_block_goes_from_the_cheapest_to_the_dearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, HEAP, size, limits=LIMITED) for size in range(1, 7)]
    costs = dict(zip([cell.key() for cell in cells], (3.0, 1.0, None, 2.0, 6.0, 0.5), strict=True))
    monkeypatch.setattr(Run, "predicted", lambda _, cell: (cost := costs[cell.key()]) and estimated(cost))
    run = run_of(tmp_path, cells, repeat=3)
    orders = [[costs[each.cell.key()] for each in run.trained if each.block.number == number] for number in range(3)]
    assert orders[0] == [0.5, 1.0, 2.0, 3.0, 6.0, None]
    assert [sorted(order, key=str) for order in orders] == [sorted(orders[0], key=str)] * 3
    assert orders[1] != orders[0]
    assert orders[1] != orders[2]


def test_without_a_limit_nothing_is_run_to_predict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "run_slice", lambda *_: pytest.fail("ran a slice"))
    assert run_of(tmp_path, [cell_of(reading_of(tmp_path, MANY_WORDS))]).trained[0].answer["status"] == "ok"


def test_what_is_predicted_to_be_over_is_left_out_of_warm_up_and_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, HEAP, limits=LIMITED), cell_of(reading, unruly("hangs"), limits=BRIEF)]
    dear = cells[1].key()
    monkeypatch.setattr(Run, "predicted", lambda _, cell: estimated(9.0 if cell.key() == dear else 0.01))
    run = run_of(tmp_path, cells, repeat=2, measure=Preset("paired", warm_up=1))
    moments = [(each.cell.variant.name, each.block.warm_up, each.block.number) for each in run.trained]
    assert [moment for moment in moments if moment[0] == "hangs"] == [("hangs", False, 0)]
    assert len(moments) == 4


# What was stopped.


def stopped_after_some_merges(folder: Path, monkeypatch: pytest.MonkeyPatch) -> TrainCell:
    """A cell that is over its limit, but not before some merges were seen."""
    limits_wait(monkeypatch, lambda merges: merges >= 20)
    return cell_of(reading_of(folder, MANY_WORDS), unruly("merges_slowly"), MANY_MERGES, limits=BRIEF)


@pytest.mark.slow
def test_a_cell_found_over_the_limit_is_extrapolated_and_its_merges_are_proved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = stopped_after_some_merges(tmp_path, monkeypatch)
    cells = [over, *(cell_of(over.reading, variant, MANY_MERGES) for variant in (HEAP, INCREMENTAL))]
    run = run_of(tmp_path, cells, repeat=2)
    slow = [each for each in run.records() if each["variant"] == "merges_slowly"]
    assert len(slow) == 1  # it would only show the same again
    (record,) = slow
    assert (record["status"], record["proof"]["state"]) == ("extrapolated", "confirmed")
    assert record["merges"] is None
    assert record["seconds"]["total"] is None
    told = record["extrapolated"]
    assert 20 <= told["merges_done"] == record["merges_done"] < MANY_MERGES
    # It had slept so long already.
    assert 20 * 0.02 <= told["low_seconds"] <= told["total_seconds"] <= told["high_seconds"]
    assert exit_code(run.records(), []) == 0
    assert exit_code(slow, []) == 22


def test_a_cell_alone_that_is_over_the_limit_is_proved_against_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = stopped_after_some_merges(tmp_path, monkeypatch)
    (record,) = [each for each in run_of(tmp_path, [cell]).records() if each["cell"] == "train"]
    assert (record["status"], record["proof"]["state"]) == ("extrapolated", "reference")
    assert len(record["proof"]["by"]) > 1


def test_a_trainer_that_hangs_is_not_extrapolated(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path), unruly("hangs_after_some_merges"), limits=BRIEF)
    (record,) = [each for each in run_of(tmp_path, [cell]).records() if each["cell"] == "train"]
    assert (record["status"], record["extrapolated"]) == ("timeout", None)


def test_what_smaller_slices_took_says_what_one_would_take_that_tells_nothing_on_its_way(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path, TEXT * 8), unruly("hangs"), limits=BRIEF)
    run = Run([cell], settings_for(tmp_path), tmp_path / "jobs")
    for times in (1, 2):
        (tmp_path / str(times)).mkdir()
        smaller = cell_of(reading_of(tmp_path / str(times), TEXT * times), unruly("hangs"), limits=BRIEF)
        keep_cost(smaller, run.machine, Estimate(10.0 * times, 10.0 * times, 10.0 * times, None, MEASURED))
    run.measure_all()
    (trained,) = run.trained
    assert trained.answer["status"] == "extrapolated"
    assert 40 < trained.answer["extrapolated"]["total_seconds"] < 160


def curve(seconds_per_merge: float, merges: int) -> list[dict[str, Any]]:
    return [
        {"merges": each, "seconds": {"update": each * seconds_per_merge}, "total": each * seconds_per_merge}
        for each in range(1, merges + 1)
    ]


def test_of_curve_and_slices_the_more_certain_is_believed() -> None:
    answer = {"status": "timeout", "total": 10.0, "curve": curve(0.1, 100)}
    own = of_stopped(answer, 200, None)
    assert own is not None
    assert (own.source, own.exponent) == ("curve", None)
    slices = of_stopped(answer, 200, estimated(20.0, 19.0, 21.0))
    assert slices is not None
    assert (slices.source, slices.seconds, slices.exponent) == ("slices", 20.0, 1.5)
    vague = of_stopped(answer, 200, estimated(20.0, 1.0, 400.0))
    assert vague is not None
    assert (vague.source, vague.exponent) == ("curve", 1.5)


def test_slices_that_the_clock_has_proved_wrong_say_nothing() -> None:
    answer = {"status": "timeout", "total": 10.0, "curve": []}
    assert of_stopped(answer, 200, estimated(3.0, 2.0, 9.9)) is None
    certain = of_stopped(answer, 200, estimated(3.0, 2.0, 12.0))
    assert certain is not None
    assert (certain.low, certain.seconds, certain.high) == (10.0, 10.0, 12.0)
    silent = {"status": "timeout", "limits": {"wall_seconds": 10.0}}
    assert of_stopped(silent, 200, estimated(3.0, 2.0, 9.9)) is None
    assert of_stopped(silent, 200, estimated(3.0, 2.0, 12.0)) == certain


# Slices.


def test_a_slice_is_every_kth_word_with_its_count(tmp_path: Path) -> None:
    words = tmp_path / "words"
    word_store.write(words, WordCounts.from_items([(b"a", 1), (b"bc", 2), (b"def", 3), (b"g", 4), (b"hi", 5)]))
    part = Slices(tmp_path / "slices").every(words, 2, 10)
    assert dict(word_store.read(part.path)[0]) == {b"a": 1, b"def": 3, b"hi": 5}
    assert (part.size, part.num_merges) == (6, 10)


def test_slices_grow_up_to_a_half_and_no_further_than_is_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps(size: int) -> list[int]:
        monkeypatch.setattr(budget, "size_of", lambda _: size)
        return Slices(tmp_path).steps(tmp_path)

    assert steps(100) == [2]
    for size in (1_000_000, 70_000_000, 5_000_000_000):
        taken = steps(size)
        assert len(taken) > 2
        assert size / taken[0] >= 1_500
        assert size / taken[-1] <= 6_000_000


def test_a_prediction_stays_within_its_share_of_the_limit(tmp_path: Path) -> None:
    words = tmp_path / "words"
    spelled = [f"word{number:06}".encode() for number in range(20_000)]
    word_store.write(words, WordCounts.from_columns(spelled, [1] * len(spelled)))
    cell = cell_of(reading_of(tmp_path), limits=Limits(wall_seconds=10.0))
    spent: list[float] = []

    def grows(_: TrainCell, part: Part, limits: Limits) -> dict[str, Any]:
        wall = limits.wall_seconds
        assert wall is not None
        assert part.num_merges == cell.num_merges
        took = (budget.size_of(part.path) / 10_000) ** 2 * 0.05
        spent.append(min(took, wall))
        return {"status": "ok" if took < wall else "timeout", "total": spent[-1], "curve": [], "merges_done": 10}

    estimate = predicted(cell, words, Slices(tmp_path / "slices"), grows)
    assert len(spent) > 1
    assert sum(spent) <= budget.SHARE_OF_LIMIT * 10.0
    assert estimate is not None
    assert estimate.exponent == pytest.approx(2, abs=0.25)
    assert estimate.low <= 0.05 * 20**2 <= estimate.high


def test_a_trainer_that_fails_on_a_slice_is_not_predicted(tmp_path: Path) -> None:
    words = tmp_path / "words"
    word_store.write(words, WordCounts.from_items([(b"low", 2), (b"lower", 1)]))
    cell = cell_of(reading_of(tmp_path), limits=LIMITED)
    failing: dict[str, Any] = {"status": "error", "reason": "it raised"}
    assert predicted(cell, words, Slices(tmp_path / "slices"), lambda *_: failing) is None


def test_a_slice_that_runs_out_of_pairs_says_nothing(tmp_path: Path) -> None:
    words = tmp_path / "words"
    spelled = [f"word{number:06}".encode() for number in range(20_000)]
    word_store.write(words, WordCounts.from_columns(spelled, [1] * len(spelled)))
    cell = cell_of(reading_of(tmp_path), limits=LIMITED)
    ran: list[int] = []

    def exhausted(_: TrainCell, part: Part, __: Limits) -> dict[str, Any]:
        ran.append(budget.size_of(part.path))
        return {"status": "ok", "total": 0.01, "merges_done": 9 if ran[-1] < 20_000 else 10}

    assert predicted(cell, words, Slices(tmp_path / "slices"), exhausted) is not None
    assert len(ran) == budget.MOST_SLICES
    ran.clear()
    always = cell_of(reading_of(tmp_path), num_merges=11, limits=LIMITED)
    assert predicted(always, words, Slices(tmp_path / "others"), exhausted) is None


# Beginnings.


@examples(60)
@given(st.text("ab\u00e9\u8a9e\U0001f600\n", max_size=12), st.integers(0, 40))
def test_a_beginning_ends_with_a_whole_character(text: str, size: int) -> None:
    content = text.encode()
    size = min(size, len(content))
    with tempfile.TemporaryDirectory() as folder:
        whole, path = Path(folder) / "whole", Path(folder) / "text"
        whole.write_bytes(content)
        part = beginning(whole, size, path, 10)
        assert part.path.read_bytes() == content[: part.size]
    assert size - 3 <= part.size <= size
    assert content[: part.size].decode() == content[:size].decode(errors="ignore")


def test_of_bytes_that_are_no_characters_hardly_any_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(b"\x80" * 100)
    part = beginning(tmp_path / "whole", 50, tmp_path / "part", 10)
    assert part == Part(tmp_path / "part", 47, 10)
    assert part.path.read_bytes() == b"\x80" * 47


def test_beginnings_grow_until_the_time_of_the_limit_is_over_again(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path, MANY_WORDS), num_merges=1000, limits=Limits(wall_seconds=10.0))
    whole = len(MANY_WORDS)
    spent: list[float] = []
    asked: list[int] = []

    def reads(_: TrainCell, part: Part, limits: Limits) -> dict[str, Any]:
        wall = limits.wall_seconds
        assert wall is not None
        assert MANY_WORDS.startswith(part.path.read_text())
        asked.append(part.num_merges)
        took = (part.size / whole) ** 1.5 * 40
        spent.append(min(took, wall))
        status = "ok" if took < wall else "timeout"
        return {"status": status, "total": spent[-1], "curve": [], "merges_done": part.num_merges}

    estimate = predicted_from_beginnings(cell, tmp_path / "beginnings", reads)
    assert len(spent) > 2
    assert sum(spent) <= 10.0
    assert asked[:4] == [1, 3, 7, 15]  # of 1,000; a 1,024th would be none
    assert estimate is not None
    assert (estimate.source, estimate.exponent) == ("beginnings", None)
    assert estimate.low <= 40 <= estimate.high
    assert list((tmp_path / "beginnings").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tags"), [("reads_slowly", ()), ("reads_slowly_without_letting_go", ("from_file",))])
def test_a_trainer_that_reads_the_file_and_is_stopped_is_run_on_beginnings_of_it(
    tmp_path: Path, name: str, tags: tuple[str, ...]
) -> None:
    card = VariantCard(name, f"unruly:{name}", family=name, tags=tags)
    reading = reading_of(tmp_path, MANY_WORDS)
    seconds = reading.file.bytes / 4000
    cell = cell_of(reading, card, num_merges=100, limits=Limits(wall_seconds=seconds / 2))
    run = run_of(tmp_path, [cell, cell_of(reading, num_merges=100)], repeat=2)
    (record,) = [each for each in run.records() if each["variant"] == name]
    assert (record["status"], record["extrapolated"]["from"]) == ("extrapolated", "beginnings")
    assert record["extrapolated"]["low_seconds"] <= seconds + 0.5
    assert record["extrapolated"]["high_seconds"] >= seconds
    assert list(complaints(record)) == []


# Kept costs.


def test_what_was_measured_is_kept_and_not_given_up_for_a_guess(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path))
    keep_cost(cell, "m", estimated(5.0))
    keep_cost(cell, "m", Estimate(3.0, 3.0, 3.0, None, MEASURED))
    keep_cost(cell, "m", estimated(7.0))
    known = expected_cost(cell, "m")
    assert known is not None
    assert known.seconds == 3.0
    assert expected_cost(cell, "another machine") is None
    assert expected_cost(cell_of(cell.reading, num_merges=11), "m") is None


def test_other_slices_say_what_a_corpus_would_cost_and_other_corpora_do_not(tmp_path: Path) -> None:
    for size in (1000, 2000, 4000):
        cell = cell_of(reading_of(tmp_path, "x" * size))
        keep_cost(cell, "m", Estimate(size**1.5, size**1.5, size**1.5, None, MEASURED))
    assert expected_cost(cell_of(reading_of(tmp_path, "x" * 16_000, "another")), "m") is None
    known = expected_cost(cell_of(reading_of(tmp_path, "x" * 16_000)), "m")
    assert known is not None
    assert known.exponent == pytest.approx(1.5, abs=0.1)
    assert known.low <= 16_000**1.5 <= known.high


@pytest.mark.parametrize("content", ["", "[", "7", "[{}]", '[{"reading": 1}]'])
def test_damaged_costs_are_none(tmp_path: Path, cache_folder: Path, content: str) -> None:
    cell = cell_of(reading_of(tmp_path))
    keep_cost(cell, "m", estimated(5.0))
    (file,) = (cache_folder / "costs").iterdir()
    file.write_text(content)
    assert expected_cost(cell, "m") is None
