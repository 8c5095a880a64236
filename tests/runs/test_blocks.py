"""Blocks of measurements: their order, counted words, what one failure costs the others, and what
is recorded.
"""

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from measured import measured
from msgspec import structs
from rows import Row, each_row
from workbench import (
    BRIEF,
    HEAP,
    NAIVE,
    TEXT,
    cell_of,
    reading_of,
    recorded_run,
    settings_for,
    unruly,
    unruly_counter,
)

from harness.common import cache
from harness.common.errors import OK, UNMEASURED
from harness.common.registry import CounterCard, VariantCard
from harness.measure.process import WorkerLimits
from harness.records.file import Record, read_records
from harness.records.schema import BY_ITSELF
from harness.results.rows import Time, rows
from harness.runs import blocks, run
from harness.runs.cells import Plan, TrainCell, make_tasks
from harness.worker import exchange
from variants.contract import WordCounts
from variants.counting.pretokenize import serial
from variants.heap import train

pytestmark = pytest.mark.usefixtures("measured_once", "unruly_trainers")
ANOTHER_COUNTER = CounterCard("native", "variants.counting.processes:processes")
BY_FILE = unruly("trains_from_a_file")


def records_of(folder: Path, *cells: TrainCell, **settings: Any) -> list[Record]:
    return recorded_run(folder, cells, **settings).records()


def trained_records(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.trains]


# Blocks and tasks.


@pytest.mark.parametrize("name", ["hangs_after_some_merges", "reads_slowly_without_letting_go"])
def test_stopped_trainer_runs_once_and_has_no_time(tmp_path: Path, name: str) -> None:
    limits = WorkerLimits(wall_seconds=2.0)  # enough to count the words on a busy machine
    reads = name.startswith("reads")
    card = structs.replace(unruly(name), tags=("from_file",) if reads else ())
    cell = cell_of(reading_of(tmp_path, TEXT * 200), card, limits=limits)

    (record,) = trained_records(records_of(tmp_path, cell, repeat=2, measure="paired"))
    assert (record.status, record.cell.counting) == ("timeout", BY_ITSELF if reads else "serial")
    assert record.sample is None
    (row,) = rows([record])
    assert (row.total, row.time) == (None, Time(limits.wall_seconds, is_limit=True))


def test_every_block_measures_every_cell_once_after_warm_up(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, HEAP), cell_of(reading, NAIVE), cell_of(reading, HEAP)]
    records = records_of(tmp_path, *cells, repeat=2, measure="paired", warm_up=1)
    trained = trained_records(records)
    assert [record["variant"] for record in trained] == ["heap", "naive"] * 3
    blocks_of_both = [(record["warm_up"], record["block"]) for record in trained[::2]]
    assert blocks_of_both == [(True, 0), (False, 0), (False, 1)]
    assert {(record["measure"], record["repeat"]) for record in records} == {("paired", 2)}
    assert [row.runs for row in rows(records)] == [2, 2]

    counted = [record["seconds"]["count"] for record in records if not record.trains]
    for own in (trained[::2], trained[1::2]):
        assert [record["seconds"]["count"] for record in own] == counted


def test_the_seed_decides_the_order_and_nothing_else(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, VariantCard(name, "variants.heap:train")) for name in "abcde"]

    def order_of(seed: int) -> str:
        records = trained_records(records_of(tmp_path, *cells, seed=seed, repeat=2))
        assert [record["variant"] for record in records] == [*"abcdeabcde"]
        records.sort(key=lambda record: str(record["started"]))
        return "".join(record["variant"] for record in records)

    first = order_of(1)
    assert order_of(1) == first
    assert {order_of(seed) for seed in (2, 3, 4)} != {first}
    assert first[:5] != first[5:]


def test_tasks_are_measured_one_by_one_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, card, size) for card in (HEAP, NAIVE) for size in (13, 23)]
    plan, whole = Plan(make_tasks(cells), settings_for(tmp_path)), blocks.train

    def shown(stop_after: int = -1) -> list[tuple[int, str, str]]:
        """The records at the end; trainer `stop_after` interrupts the run."""
        records: list[Record] = []
        started = itertools.count()

        def train(*arguments: Any) -> Any:
            if next(started) == stop_after:
                raise KeyboardInterrupt
            return whole(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(blocks, "train", train)
            code = run.run_plan(plan, tmp_path / "jobs", lambda own, _: records.extend(own))
        assert code == OK
        own = trained_records(records)
        return [(record["vocab_size"], record["variant"], record["run_id"]) for record in own]

    with pytest.raises(KeyboardInterrupt):
        shown(stop_after=3)  # in the second task
    stored = trained_records(read_records([tmp_path / "results"]))
    sizes = [(record["vocab_size"], record["block_whole"]) for record in stored]
    assert sizes == [(270, True), (270, True), (280, False)]

    run_id = stored[0]["run_id"]
    everything = [(size, name, run_id) for size in (270, 280) for name in ("heap", "naive")]
    assert shown(stop_after=1) == everything  # a single trainer is left
    assert len(trained_records(read_records([tmp_path / "results"]))) == 4
    assert run_id not in {own_id for _, _, own_id in shown()}


@each_row(__file__, "exit_codes.toml")
def test_only_proved_merges_are_a_success(row: Row) -> None:
    records = []
    for trainer in row["trainers"]:
        records.append(measured("heap", 1.0, **{"reason": "because", **trainer}))
    assert run.exit_code(records) == row["code"]


# Counters.


def test_a_counter_over_the_limit_is_not_run_again_and_nothing_is_trained(tmp_path: Path) -> None:
    name = "counter_that_stops_on_request"
    cell = cell_of(reading_of(tmp_path), counter=unruly_counter(name), limits=BRIEF)
    records = records_of(tmp_path, cell, repeat=2, warm_up=1)
    found = [(each["cell"], each["status"], each["warm_up"]) for each in records]
    assert found == [("count", "timeout", True), ("train", "timeout", False)]
    failed = f"counting text.txt ({name}) failed: over limits.wall=0.3 s; raise that,"
    assert records[1]["reason"].startswith(failed)
    assert rows(records)[0].time == Time(BRIEF.wall_seconds, is_limit=True)


def test_words_of_an_outside_counter_are_checked_once_for_each_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_default = Mock(wraps=blocks.default_words)
    monkeypatch.setattr(blocks, "default_words", by_default)
    honest = CounterCard("mine", "sabotaged_counters:honest")
    records = records_of(tmp_path, cell_of(reading_of(tmp_path), counter=honest), repeat=3)
    assert (run.exit_code(records), by_default.call_count) == (OK, 1)
    assert {each["counting"] for each in records} == {"mine"}


# The cache of words.


def test_wrong_words_in_the_cache_do_not_reject_an_honest_counter(
    tmp_path: Path,
) -> None:
    reading = reading_of(tmp_path)
    _, right = records_of(tmp_path, cell_of(reading))
    (proved,) = records_of(tmp_path, cell_of(reading), kind="proof")
    assert proved["merges_sha256"] == right["merges_sha256"]

    wrong = exchange.write_words(tmp_path / "wrong", WordCounts.from_items([(b"wrong", 1)]))
    reading.keep(tmp_path / "wrong", wrong)
    assert (reading.words() or {})["words"] == 1
    records = records_of(tmp_path, cell_of(reading, counter=ANOTHER_COUNTER, threads=2))
    assert (run.exit_code(records), run.notes_below_table(records)) == (OK, [])
    assert records[1]["merges_sha256"] == right["merges_sha256"]


@pytest.mark.parametrize("counter", ["the file changes", "counter_of_another_file"])
def test_words_of_another_file_are_neither_kept_nor_proved(tmp_path: Path, counter: str) -> None:
    reading = reading_of(tmp_path)
    if counter == "the file changes":
        reading.file.path.write_text(TEXT + "and more")
        cell = cell_of(reading)
    else:
        cell = cell_of(reading, counter=unruly_counter(counter))
    counted, trained = records_of(tmp_path, cell)
    assert (counted["status"], trained["status"]) == ("error", "error")
    assert counted["reason"] == "text.txt was changed while it was read; run the same again"
    assert reading.words() is None


@pytest.mark.parametrize("spoiler", ["removes_its_words", "replaces_its_words"])
@pytest.mark.parametrize("seed", [0, 1])  # of the order
def test_trainer_that_spoils_the_words_gets_nothing_and_gives_nothing(
    tmp_path: Path, spoiler: str, seed: int
) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading), cell_of(reading, unruly(spoiler))]
    records = records_of(tmp_path, *cells, seed=seed, repeat=2)
    assert run.exit_code(records) == UNMEASURED
    right = exchange.merges_sha256(train(serial(reading.corpus), 10))
    for record in trained_records(records):
        if record["variant"] == spoiler:
            assert record["status"] == "rejected"
            assert "words that it was given were changed or removed" in record["reason"]
        elif record["status"] == "ok":
            assert (record["merges_sha256"], record["identity"]["kind"]) == (right, "identical")
        else:
            assert record["status"] == "error"


def test_clearing_the_cache_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = reading_of(tmp_path)
    whole = blocks.train

    def clear_and_train(*arguments: Any) -> Any:
        shutil.rmtree(cache.root(), ignore_errors=True)
        return whole(*arguments)

    monkeypatch.setattr(blocks, "train", clear_and_train)
    records = records_of(tmp_path, cell_of(reading), cell_of(reading, NAIVE), repeat=2)
    assert run.exit_code(records) == OK


# Trainers that read the file.


def test_a_file_trainer_makes_the_merges_of_the_words_and_its_total_is_the_whole(
    tmp_path: Path,
) -> None:
    reading = reading_of(tmp_path)
    cards = (HEAP, BY_FILE, structs.replace(BY_FILE, name="silent", params={"silent": True}))
    cells = [cell_of(reading, card, 60, tie_break="raw_bytes", min_count=3) for card in cards]
    by_words, by_file, silent = trained_records(records_of(tmp_path, *cells))
    assert by_words["merges"] < 60
    assert (by_file["status"], by_file["identity"]["kind"]) == ("ok", "identical")
    for key in ("merges_sha256", "data"):
        assert by_file[key] == by_words[key]
    assert by_file["counting"] == silent["counting"] == BY_ITSELF
    assert by_file["seconds"]["count"] > 0
    assert by_file["tallies"]["bytes_scanned"] == reading.file.bytes
    assert silent["seconds"]["read"] is silent["seconds"]["count"] is None
    assert silent["seconds"]["other"] == silent["seconds"]["total"]


def test_a_file_trainer_without_an_answer_has_no_time_of_a_counter(tmp_path: Path) -> None:
    killed = structs.replace(unruly("is_killed_before_it_reads"), tags=("from_file",))
    reading = reading_of(tmp_path)
    record = trained_records(records_of(tmp_path, cell_of(reading), cell_of(reading, killed)))[1]
    assert (record["status"], record["counting"]) == ("killed", BY_ITSELF)
    assert (set(record["seconds"].values()), record["cpu_seconds"]) == ({None}, None)
