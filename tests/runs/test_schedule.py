"""Many measurements: blocks, counts that are kept and counts that are not, and what one failure costs the others."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import regex
from measured import measured
from workbench import (
    BRIEF,
    HEAP,
    NAIVE,
    SUPPORT,
    TEXT,
    cell_of,
    first_fast,
    measuring,
    reading_of,
    settings_for,
    unruly,
    unruly_counter,
)

from harness.common.errors import Refusal
from harness.common.registry import CounterCard, VariantCard
from harness.corpora import Part
from harness.records.file import Record
from harness.records.load import read_records
from harness.results.rows import rows
from harness.runs import schedule, store
from harness.runs.cells import Reading, TrainCell, read_merges
from harness.runs.outcome import Counted, Trained
from harness.runs.resume import Block
from harness.runs.running import exit_code, notes, quicker_later, reasons_not_counted
from harness.runs.schedule import Run
from harness.runs.settings import Preset
from harness.worker import word_store
from variants.contract import GPT2_PATTERN, WordCounts

pytestmark = pytest.mark.usefixtures("measured_once")

runs = itertools.count()
ANOTHER_COUNTER = CounterCard("native", "variants.counting.processes:processes")


@pytest.fixture(autouse=True)
def unruly_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))


def run_of(folder: Path, cells: Sequence[TrainCell], **settings: Any) -> Run:
    """Measure and prove."""
    run = Run(cells, settings_for(folder, **settings), folder / f"jobs{next(runs)}")
    run.measure_all()
    return run


def by_variant(records: Sequence[Record]) -> dict[str, Record]:
    return {record["variant"]: record for record in records if record["cell"] == "train"}


# Blocks.


def test_every_block_measures_every_cell_once(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    run = run_of(tmp_path, [cell_of(reading, HEAP), cell_of(reading, NAIVE), cell_of(reading, HEAP)], repeat=2)
    records = run.records()
    assert [(each["cell"], each["variant"], each["block"]) for each in records] == [
        ("count", None, 0),
        ("count", None, 1),
        ("train", "heap", 0),
        ("train", "naive", 0),
        ("train", "heap", 1),
        ("train", "naive", 1),
    ]
    assert {each["repeat"] for each in records} == {2}


def test_warm_up_comes_first_and_says_so(tmp_path: Path) -> None:
    run = run_of(tmp_path, [cell_of(reading_of(tmp_path))], repeat=2, measure=Preset("paired", warm_up=1))
    trained = [each for each in run.records() if each["cell"] == "train"]
    assert [(each["warm_up"], each["block"]) for each in trained] == [(True, 0), (False, 0), (False, 1)]
    assert {(each["measure"], each["repeat"]) for each in trained} == {("paired", 2)}
    (row,) = rows(run.records())
    assert row.runs == 2


def test_the_seed_decides_the_order_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "b", "c", "d", "e"]
    cells = [cell_of(reading_of(tmp_path), VariantCard(name, "not:measured")) for name in names]
    trained: list[str] = []

    def train_nothing(_: Run, cell: TrainCell, block: Block) -> Trained:
        trained.append(cell.variant.name)
        return Trained(cell, block, schedule.now(), {"status": "error", "reason": "x"}, Counted({}, None))

    monkeypatch.setattr(Run, "train", train_nothing)
    monkeypatch.setattr(Run, "count", lambda *_: Counted({"status": "ok"}, None))

    def order(seed: int) -> list[str]:
        trained.clear()
        run = Run(cells, settings_for(tmp_path, seed=seed, repeat=2), tmp_path)
        run.measure_all()
        assert [each["variant"] for each in run.records()] == names * 2
        return list(trained)

    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1
    assert order(1)[:5] != order(1)[5:]


def test_tallies_are_the_same_in_two_runs(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    first, second = (by_variant(run_of(tmp_path, [cell_of(reading)]).records())["heap"] for _ in "ab")
    assert first["tallies"] == second["tallies"]
    assert first["merges_sha256"] == second["merges_sha256"]
    assert first["run_key"] == second["run_key"]
    assert first["started"] != second["started"]


# One cell's failure.


def test_a_failure_costs_only_its_own_row(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    bad = ["segfaults", "ends_at_once", "raises", "returns_none"]
    records = run_of(tmp_path, [cell_of(reading, trainer) for trainer in (HEAP, *map(unruly, bad), NAIVE)]).records()
    row_of = by_variant(records)
    assert [row_of[name]["status"] for name in bad] == ["killed", "error", "error", "error"]
    for good in ("heap", "naive"):
        assert (row_of[good]["status"], row_of[good]["identity"]["kind"]) == ("ok", "identical")
    assert exit_code(records, []) == 22


def test_exit_codes() -> None:
    def code(*statuses: str, disagreements: Sequence[str] = ()) -> int:
        return exit_code([{"cell": "train", "status": status} for status in statuses], disagreements)

    assert code("ok", "ok") == 0
    assert code("ok", "skipped") == 0
    assert code("skipped") == 22
    assert code("ok", "timeout") == code("ok", "rejected") == code("ok", "killed") == code() == 22
    assert code("error", "mismatch") == code("ok", disagreements=["two counters disagree"]) == 21


# Counting.


def test_every_block_counts_and_its_trainers_share_what_that_took(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    records = run_of(tmp_path, [cell_of(reading, HEAP), cell_of(reading, NAIVE)], repeat=2).records()
    counted = {each["block"]: each["seconds"]["count"] for each in records if each["cell"] == "count"}
    trained = [each for each in records if each["cell"] == "train"]
    assert len(counted) == 2
    assert [each["seconds"]["count"] for each in trained] == [counted[0], counted[0], counted[1], counted[1]]
    (record,) = (each for each in run_of(tmp_path, [cell_of(reading)]).records() if each["cell"] == "train")
    assert record["seconds"]["count"] is not None


def test_without_times_words_in_the_cache_will_do(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path))
    run_of(tmp_path, [cell])
    records = run_of(tmp_path, [cell], measure=Preset("proof", kind="proof")).records()
    assert [each["cell"] for each in records] == ["train"]


def test_a_counter_over_the_limit_is_not_run_again_and_nothing_is_trained(tmp_path: Path) -> None:
    slow = unruly_counter("counter_that_stops_when_told")
    run = run_of(tmp_path, [cell_of(reading_of(tmp_path), counter=slow, limits=BRIEF)], repeat=2)
    assert [(each["cell"], each["status"]) for each in run.records()] == [("count", "timeout"), ("train", "timeout")]
    (reason,) = reasons_not_counted(run)
    assert reason.startswith("counting text.txt with counting=counter_that_stops_when_told was over limits.wall=0.3 s;")


def test_a_cache_that_is_emptied_during_a_run_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("UNRULY_CACHE", str(cache_folder))
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, trainer) for trainer in (unruly("empties_the_cache"), HEAP, NAIVE)]
    run = run_of(tmp_path, cells, repeat=2)
    trained = [record for record in run.records() if record["cell"] == "train"]
    assert [record["status"] for record in trained] == ["ok"] * 6
    assert all(record["data"]["words"] for record in trained)


def test_a_trainer_that_is_quicker_in_a_later_block_is_named(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path))
    blocks = [measured("heap", spent, run_key=cell.key()) for spent in (2.0, 0.1)]
    note = quicker_later(cell, blocks)
    assert note == (
        "heap used 2.00 s of CPU time in its first block and 0.10 s in a later one; it may keep results between its "
        "processes"
    )


def test_a_counter_at_another_width_is_another_measurement(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    records = run_of(tmp_path, [cell_of(reading, threads=1), cell_of(reading, threads=2)]).records()
    assert sorted(each["threads"] for each in records if each["cell"] == "count") == [1, 2]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data", b""),
        ("data", b"lowloweR"),
        ("offsets", b"\x00" * 8 + b"\x04" + b"\x00" * 7 + b"\x08" + b"\x00" * 7),
        ("counts", b"\x02" + b"\x00" * 7 + b"\x02" + b"\x00" * 7),
        ("offsets", b"\x00" * 8),
        ("offsets", b"\x00" * 24),
        ("counts", b"\x01"),
        ("manifest.json", b""),
        ("manifest.json", b"[]"),
        ("manifest.json", b"{}"),
        ("manifest.json", b'{"words": 1, "sizes": {"data": 8, "offsets": 24, "counts": 16}}'),
        ("manifest.json", b'{"words": 2, "sizes": {"data": 8, "offsets": 24, "counts": 16}}'),
    ],
)
def test_damaged_kept_words_are_none_and_make_room(tmp_path: Path, name: str, content: bytes) -> None:
    reading = reading_of(tmp_path)
    words = store.keep_words(reading, written(tmp_path))
    assert store.words_of(reading) == words
    (words / name).write_bytes(content)
    assert store.words_of(reading) is None
    assert not words.exists()


@pytest.mark.parametrize("kept_before", [False, True])
def test_what_was_counted_is_told_when_the_cache_has_gone(tmp_path: Path, kept_before: bool) -> None:
    """Whoever clears the cache, at whichever moment, ends no run with a traceback."""
    reading = reading_of(tmp_path)
    words = store.keep_words(reading, written(tmp_path))
    if kept_before:
        store._told.clear()
        assert store.words_of(reading) == words
    shutil.rmtree(words)
    assert store.manifest_of(words)["words"] == 2


def test_what_is_damaged_is_made_again(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path))
    good = run_of(tmp_path, [cell]).records()
    for file in store.folder_of(cell.reading).rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-1])
    again = run_of(tmp_path, [cell]).records()
    assert [each["cell"] for each in again] == ["count", "train"]
    assert again[1]["merges_sha256"] == good[1]["merges_sha256"]
    assert (again[1]["status"], again[1]["identity"]) == ("ok", good[1]["identity"])


def written(folder: Path) -> Path:
    """Words as a counting process leaves them."""
    word_store.write(folder / "written", WordCounts.from_items([(b"low", 2), (b"lower", 1)]))
    return folder / "written"


# Counters that disagree, fail, or meet a file that changes.


@pytest.mark.parametrize("kept", [False, True])
def test_a_counter_of_ones_own_that_loses_a_word_gets_no_time(tmp_path: Path, kept: bool) -> None:
    reading = reading_of(tmp_path)
    if kept:
        run_of(tmp_path, [cell_of(reading, HEAP)])
    wrong = cell_of(reading, NAIVE, counter=unruly_counter("counter_that_loses_a_word"))
    run = run_of(tmp_path, [wrong, cell_of(reading, HEAP)])
    records = run.records()
    counted = {each["counting"]: each for each in records if each["cell"] == "count"}["counter_that_loses_a_word"]
    assert (counted["status"], counted["seconds"].get("total"), counted["words_sha256"]) == ("mismatch", None, None)
    row_of = by_variant(records)
    assert (row_of["heap"]["status"], row_of["naive"]["status"]) == ("ok", "error")
    assert row_of["naive"]["reason"] == "counting failed: its words are not those of counting=native"
    assert exit_code(records, run.disagreements) == 21
    (sentence,) = run.disagreements
    assert "the words of counting=counter_that_loses_a_word are not those of counting=native; check it with" in sentence
    assert sentence in notes(run)


def test_the_words_of_a_counter_of_ones_own_are_checked_once_for_each_corpus(tmp_path: Path) -> None:
    own = CounterCard("mine", "sabotaged_counters:honest")
    run = run_of(tmp_path, [cell_of(reading_of(tmp_path), HEAP, counter=own)], repeat=3)
    assert exit_code(run.records(), run.disagreements) == 0
    assert run.jobs == len(run.records()) + 1
    assert {each["counting"] for each in run.records() if each["cell"] == "count"} == {"mine"}


def test_nothing_in_the_cache_refuses_an_honest_counter(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path))
    good = run_of(tmp_path, [cell]).records()
    words = store.words_of(cell.reading)
    assert words is not None
    shutil.rmtree(words)
    word_store.write(words, WordCounts.from_items([(b"wrong", 1)]))
    store._told.clear()
    run = run_of(tmp_path, [cell_of(cell.reading, counter=ANOTHER_COUNTER)])
    assert exit_code(run.records(), run.disagreements) == 0
    assert run.records()[1]["merges_sha256"] == good[1]["merges_sha256"]


def test_where_no_counter_comes_to_words_the_reasons_are_all_there_is_to_say(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    run = run_of(tmp_path, [cell_of(reading, counter=unruly_counter("counter_that_dies"))])
    (reason,) = reasons_not_counted(run)
    assert "its process was ended by SIGKILL" in reason
    assert by_variant(run.records())["heap"]["status"] == "killed"


def test_a_file_that_is_changed_meanwhile_does_not_lend_its_words_to_the_old_one(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    reading.file.path.write_text(TEXT + "and more")
    run = run_of(tmp_path, [cell_of(reading)])
    assert [each["status"] for each in run.records()] == ["error", "error"]
    assert run.records()[0]["reason"] == "text.txt was changed while it was read; run the same again"
    assert store.words_of(reading) is None


PRE_TOKENS = regex.findall(GPT2_PATTERN, TEXT)
FACTS = {"documents": 1, "pre_tokens": len(PRE_TOKENS), "words": len(set(PRE_TOKENS))}


def reading_with_facts(tmp_path: Path, **facts: int) -> Reading:
    reading = reading_of(tmp_path)
    return replace(reading, file=replace(reading.file, facts=facts))


def test_facts_of_a_card_that_hold_are_passed_over(tmp_path: Path) -> None:
    run = run_of(tmp_path, [cell_of(reading_with_facts(tmp_path, **FACTS))])
    assert [each["status"] for each in run.records()] == ["ok", "ok"]
    assert {fact: run.records()[0]["data"][fact] for fact in FACTS} == FACTS


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_of_a_card_that_does_not_hold_ends_the_matter(tmp_path: Path, fact: str) -> None:
    run = run_of(tmp_path, [cell_of(reading_with_facts(tmp_path, **{**FACTS, fact: 7}))])
    assert [each["status"] for each in run.records()] == ["error", "error"]
    told = (
        f"data=text.txt: its card says 7 {fact.replace('_', '-')}, counted were {FACTS[fact]}; it is another text, or "
    )
    assert reasons_not_counted(run) == {f"{told}fix the card: data.facts.{fact}={FACTS[fact]}"}


def test_facts_are_of_the_pattern_that_cards_speak_of(tmp_path: Path) -> None:
    reading = reading_with_facts(tmp_path, words=7)
    by_lines = replace(reading.corpus, pattern=r"[^\n]*\n|[^\n]+")
    reading = replace(reading, pattern_name="line", corpus=by_lines)
    assert [each["status"] for each in run_of(tmp_path, [cell_of(reading)]).records()] == ["ok", "ok"]


def test_a_bad_byte_is_told_of_the_file_it_comes_from(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, b"good text<|endoftext|>\xff")
    file = replace(reading.file, parts=(Part(0, "one.txt"), Part(22, "two.txt", 4)))
    run = run_of(tmp_path, [cell_of(replace(reading, file=file))])
    assert run.records()[0]["reason"] == "two.txt: invalid UTF-8 at byte 4; fix the file, or set errors=replace"


def test_threads_that_nobody_takes_are_named(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    run = run_of(tmp_path, [cell_of(reading, HEAP, threads=2)])
    assert notes(run) == ["threads above 1 change nothing for heap: neither the counter nor the trainer takes any"]
    run = run_of(tmp_path, [cell_of(reading, HEAP, counter=ANOTHER_COUNTER, threads=2)])
    assert notes(run) == []


# Interruption.


@pytest.mark.parametrize("end", first_fast([KeyboardInterrupt, OSError, Refusal]))
def test_what_was_measured_is_recorded_whatever_breaks_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, trainer) for trainer in (HEAP, NAIVE, unruly("takes_two"))]
    train = Run.train
    trained: list[str] = []

    def train_two(run: Run, cell: TrainCell, block: Block) -> Any:
        if len(trained) == 2:
            raise end("that is all")
        trained.append(cell.variant.name)
        return train(run, cell, block)

    monkeypatch.setattr(Run, "train", train_two)
    with pytest.raises(end, match="that is all"), measuring(cells, settings_for(tmp_path), tmp_path / "jobs"):
        pass
    records = read_records([tmp_path / "results"])
    assert [each["cell"] for each in records] == ["count", "train", "train"]
    assert {each["variant"] for each in records[1:]} == set(trained)
    assert [each["identity"]["kind"] for each in records[1:]] == ["identical", "identical"]


def test_half_written_merges_are_none(tmp_path: Path) -> None:
    (tmp_path / "merges").write_bytes(b"\x01")
    assert read_merges(tmp_path, {"status": "timeout"}) is None


def test_nothing_to_merge_is_a_result(tmp_path: Path) -> None:
    run = run_of(tmp_path, [cell_of(reading_of(tmp_path, ""))])
    assert run.records()[1]["merges"] == 0
    assert notes(run) == ["text.txt holds no words, so there is nothing to merge"]
    assert exit_code(run.records(), run.disagreements) == 0


# The rest.
