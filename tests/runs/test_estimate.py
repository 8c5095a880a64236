"""What limits.wall stops has its total estimated from runs on parts of its input, and never a
time.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from measured import record_of
from workbench import BRIEF, cell_of, cells, reading_of, run_of, unruly

from harness.common import registry
from harness.common.registry import VariantCard
from harness.measure.process import Answer, WorkerLimits, measure
from harness.results.rows import AT_LEAST, rows
from harness.runs import jobs
from harness.runs.cells import TrainCell
from harness.runs.jobs import estimate_total, make_part, power_law, train_job, write_beginning
from harness.runs.run import exit_code
from harness.worker import exchange
from variants.contract import WordCounts

pytestmark = pytest.mark.usefixtures("measured_once", "unruly_trainers")

MANY_WORDS = " ".join(
    f"{a}{b}{c}" for a, b, c in itertools.product("abcdefghijklmnopqrst", repeat=3)
)


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_parts_grow_until_the_time_of_the_limit_is_over_again(tmp_path: Path, power: float) -> None:
    text = tmp_path / "text"
    text.write_text(MANY_WORDS)
    spent, merges = [], []

    def grow(part: Path, num_merges: int, seconds: float) -> Answer:
        """A cell that takes a power of its input's size, 40 seconds for all, without being run."""
        took = 40.0 * (part.stat().st_size / len(MANY_WORDS)) ** power
        spent.append(min(took, seconds))
        merges.append(num_merges)
        status = "ok" if took < seconds else "timeout"
        return Answer(status, total=spent[-1], merges_done=num_merges)

    found = estimate_total(text, 1000, 10.0, grow)
    assert found is not None
    assert sum(spent) <= 10.0
    assert merges[:4] == [1, 3, 7, 15]  # of 1,000; a 1,024th would be none
    assert found.exponent == pytest.approx(power, abs=0.05)
    assert found.low_seconds < 40 < found.high_seconds


def test_no_part_or_a_single_one_says_nothing(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(MANY_WORDS)
    for failing in (
        Answer("error", "it raised"),
        Answer("ok", total=1.0, merges_done=0),
    ):
        assert estimate_total(text, 1000, 10.0, lambda *_: failing) is None  # noqa: B023
    assert power_law([(0.25, 1.0)]) is power_law([(0.25, 0.0), (0.5, 1.0)]) is None


# Parts.


def test_a_part_of_words_is_their_first_bytes_with_their_counts(tmp_path: Path) -> None:
    words = tmp_path / "words"
    exchange.write_words(
        words, WordCounts.from_items([(b"a", 1), (b"bc", 2), (b"defgh", 3), (b"ij", 4)])
    )
    assert dict(exchange.read_words(make_part(words, 2, tmp_path / "half"))[0]) == {
        b"a": 1,
        b"bc": 2,
        b"de": 3,
    }
    one_word = tmp_path / "one_word"
    exchange.write_words(one_word, WordCounts.from_items([(b"abcdefgh", 7)]))
    assert dict(exchange.read_words(make_part(one_word, 2, tmp_path / "its_half"))[0]) == {
        b"abcd": 7
    }


@pytest.mark.parametrize("size", range(15))
def test_a_beginning_ends_with_a_whole_character(tmp_path: Path, size: int) -> None:
    content = "aé\u8a9e\U0001f600b\né".encode()
    (tmp_path / "whole").write_bytes(content)
    write_beginning(tmp_path / "whole", min(size, len(content)), tmp_path / "part")
    assert (tmp_path / "part").read_text("utf-8") == content[:size].decode(errors="ignore")


# Runs.


def test_a_trainer_that_hangs_is_not_extrapolated(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path), unruly("hangs_after_some_merges"), limits=BRIEF)
    (record,) = [each for each in run_of(tmp_path, [cell]).records() if each["cell"] == "train"]
    assert (record["status"], record["extrapolated"]) == ("timeout", None)


@pytest.mark.parametrize("name", ["makes_rubbish_slowly", "starts_slowly"])
def test_parts_that_prove_or_show_nothing_give_no_estimate(tmp_path: Path, name: str) -> None:
    limits = WorkerLimits(wall_seconds=2.0)
    cell = cell_of(reading_of(tmp_path, MANY_WORDS), unruly(name), 2000, limits=limits)
    (record,) = [each for each in run_of(tmp_path, [cell]).records() if each["cell"] == "train"]
    assert (record["status"], record["extrapolated"]) == ("timeout", None)
    (row,) = rows([record])
    assert (row.time.form, row.time.number) == (AT_LEAST, 2.0)


@pytest.mark.parametrize(
    ("times", "known"),
    [
        ([(1 / 16, 0.01), (1 / 8, 0.02), (1 / 4, 0.04)], False),  # too short
        ([(1 / 16, 0.01), (1 / 8, 0.06), (1 / 4, 0.12)], True),
        ([(1 / 16, 1.0), (1 / 8, 1.2), (1 / 4, 1.5)], False),  # a fixed cost
        ([(1 / 16, 0.1), (1 / 8, 1.0), (1 / 4, 10.0)], False),  # steeper than any trainer
        ([(1 / 16, 0.1), (1 / 8, 0.4), (1 / 4, 1.6)], True),
    ],
)
def test_law_is_that_of_a_trainer(times: list[tuple[float, float]], known: bool) -> None:
    assert (power_law(times) is not None) == known


def test_law_that_the_time_already_spent_refutes_says_nothing() -> None:
    law = power_law([(1 / 16, 1.0), (1 / 8, 2.0), (1 / 4, 4.0)])
    assert law is not None
    assert law.beyond(16.0) is law.beyond(20.0) is None
    assert law.beyond(10.0, 3.0) == law._replace(
        total_seconds=19.0, low_seconds=13.0, high_seconds=law.high_seconds + 3.0
    )


SLOWLY, READING = 2000 * 0.02, len(MANY_WORDS) / 4000
"""Seconds of 2,000 merges, and of the text."""


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
    tmp_path: Path,
    name: str,
    tags: tuple[str, ...],
    merges: int,
    seconds: float,
    limit: float,
    doubt: float,
) -> None:
    reading = reading_of(tmp_path, MANY_WORDS)
    slow = VariantCard(name, f"unruly:{name}", family=name, tags=tags)
    cell = cell_of(reading, slow, merges, limits=WorkerLimits(wall_seconds=limit))
    run = run_of(tmp_path, [cell, cell_of(reading, num_merges=merges)], repeat=2)
    # and not once in each block
    (record,) = [each for each in run.records() if each["variant"] == name]
    assert (record["status"], record["merges"], record["seconds"]["total"]) == (
        "extrapolated",
        None,
        None,
    )
    estimated = record["extrapolated"]
    assert estimated["low_seconds"] <= seconds + doubt
    assert estimated["high_seconds"] >= seconds
    if name == "merges_slowly":
        assert (record["identity"]["kind"], estimated["merges_done"]) == (
            "identical",
            record["merges_done"],
        )
    assert record_of(record).identity == record.identity
    assert exit_code(run.records()) == 0
    assert exit_code([record]) == 22


STAGES = (
    "naive",
    "incremental",
    "fine_grained",
    "heap",
    "seg_status",
    "cpp_updater",
    "cpp_fine_grained",
)


@pytest.mark.slow
def test_the_interval_holds_the_total_nine_times_in_ten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stages that do end, by their CPU time, as if limits.wall had stopped them at a half down to a
    32nd of it.
    """
    monkeypatch.setattr(jobs, "SECONDS_TO_START", 0.0)
    monkeypatch.setattr(jobs, "SHORTEST_SECONDS", 0.0)  # of CPU time, which needs no start
    numbers = itertools.count()
    held = []
    for stage, data in itertools.product(
        STAGES, ("stdlib data.bytes=250kB", "one_word data.source.bytes=20000")
    ):
        (cell,) = cells(
            f"variant={stage}",
            *f"data={data}".split(),
            f"vocab_size={1257 if 'stdlib' in data else 357}",
        )
        words = tmp_path / f"words{next(numbers)}"
        counter = registry.resolve(cell.count.counter.target)
        exchange.write_words(words, counter(cell.reading.corpus, **cell.count.counter.params))

        def run(part: Path, num_merges: int, cell: TrainCell = cell) -> Answer:
            job = replace(train_job(cell, cell.variant, part), num_merges=num_merges)
            return measure(job, tmp_path / f"job{next(numbers)}", WorkerLimits())

        whole = run(words, cell.num_merges).cpu_seconds
        assert whole is not None
        parts: dict[int, Answer] = {}

        def run_part(
            part: Path, num_merges: int, seconds: float, known: dict[int, Answer] = parts
        ) -> Answer:
            answer = known.get(num_merges) or known.setdefault(num_merges, run(part, num_merges))
            took = answer.cpu_seconds
            assert took is not None
            status = answer.status if took < seconds else "timeout"
            return msgspec.structs.replace(answer, total=took, status=status)

        for divisor in (2, 4, 8, 16, 32):
            found = estimate_total(words, cell.num_merges, whole / divisor, run_part)
            # what takes less is the start of a process
            bounds = None if found is None else found.beyond(whole / divisor)
            if bounds is not None and whole / divisor > 0.02:
                held.append(bounds.low_seconds <= whole <= bounds.high_seconds)
    assert len(held) > 30
    assert sum(held) / len(held) >= 0.9, f"{sum(held)} of {len(held)}"
