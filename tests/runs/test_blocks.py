"""Blocks of measurements: their order, counted words, what one failure costs the others, and what
is recorded.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import regex
from measured import measured
from msgspec import structs
from workbench import (
    BRIEF,
    HEAP,
    NAIVE,
    SERIAL,
    TEXT,
    cell_of,
    pretend_to_train,
    reading_of,
    recorded_run,
    run_of,
    settings_for,
    unruly,
    unruly_counter,
)

from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal
from harness.common.files import cache_folder
from harness.common.registry import GIVEN, CounterCard, VariantCard
from harness.corpora import Part
from harness.measure.process import WorkerLimits, measure
from harness.records.file import Record, read_records
from harness.records.log import RunLog
from harness.records.schema import BY_ITSELF
from harness.results.ratios import against
from harness.results.rows import rows
from harness.runs import blocks, run
from harness.runs.blocks import measure_task
from harness.runs.cells import Plan, Task, make_tasks
from harness.runs.jobs import train_job
from harness.runs.run import trained
from harness.runs.session import Session, now
from harness.worker import exchange
from variants.contract import GPT2_PATTERN, WordCounts
from variants.counting.pretokenize import serial
from variants.heap import train

pytestmark = pytest.mark.usefixtures("measured_once", "unruly_trainers")
ANOTHER_COUNTER = CounterCard("native", "variants.counting.processes:processes")
BY_FILE = unruly("trains_from_a_file")


def by_variant(records: Sequence[Record]) -> dict[str, Record]:
    return {record["variant"]: record for record in trained(records)}


# Blocks.


def test_every_block_measures_every_cell_once_after_warm_up(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, HEAP), cell_of(reading, NAIVE), cell_of(reading, HEAP)]
    records = run_of(tmp_path, cells, repeat=2, measure="paired", warm_up=1).records()
    names = [(record["warm_up"], record["block"], record["variant"]) for record in trained(records)]
    assert names == [
        (*block, name)
        for block in [(True, 0), (False, 0), (False, 1)]
        for name in ("heap", "naive")
    ]
    assert {(record["measure"], record["repeat"]) for record in records} == {("paired", 2)}
    assert [row.runs for row in rows(records) if row.name == "heap"] == [2]
    counted = [record["seconds"]["count"] for record in records if record["cell"] == "count"]
    assert [record["seconds"]["count"] for record in trained(records)] == [
        each for each in counted for _ in "ab"
    ]


def test_the_seed_decides_the_order_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [cell_of(reading_of(tmp_path), VariantCard(name, "not:measured")) for name in "abcde"]
    pretend_to_train(monkeypatch)

    def order_of(seed: int) -> str:
        records = trained(run_of(tmp_path, cells, seed=seed, repeat=2).records())
        assert [record["variant"] for record in records] == [*"abcdeabcde"]
        return "".join(
            record["variant"]
            for record in sorted(records, key=lambda record: str(record["started"]))
        )

    assert order_of(1) == order_of(1)
    assert len({order_of(seed) for seed in range(5)}) > 1
    assert order_of(1)[:5] != order_of(1)[5:]


# Tasks.


def test_tasks_are_measured_one_by_one_and_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [
        cell_of(reading_of(tmp_path), variant, size)
        for variant in (HEAP, NAIVE)
        for size in (13, 23)
    ]
    plan = Plan(make_tasks(cells), settings_for(tmp_path))

    def shown(stop_after: int = -1) -> list[tuple[int, str, str]]:
        """The records at the end; nothing is really trained, and trainer `stop_after` interrupts
        the run.
        """
        records: list[Record] = []
        with monkeypatch.context() as patched:
            pretend_to_train(patched, stop_after=stop_after)
            assert (
                run.run_plan(plan, tmp_path / "jobs", lambda own, _: records.extend(trained(own)))
                == OK
            )
        return [(record["vocab_size"], record["variant"], record["run_id"]) for record in records]

    with pytest.raises(KeyboardInterrupt):
        shown(stop_after=3)  # in the second task
    stored = trained(read_records([tmp_path / "results"]))
    assert [(record["vocab_size"], record["block_whole"]) for record in stored] == [
        (270, True)
    ] * 2 + [(280, False)]
    run_id = stored[0]["run_id"]
    everything = [(size, name, run_id) for size in (270, 280) for name in ("heap", "naive")]
    assert shown(stop_after=1) == everything  # a single trainer is left
    assert len(trained(read_records([tmp_path / "results"]))) == 4
    assert run_id not in {own_id for _, _, own_id in shown()}


def test_cells_that_differ_in_threads_alone_are_of_one_task(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    tasks = make_tasks(
        [cell_of(reading, threads=1), cell_of(reading, threads=2), cell_of(reading, num_merges=20)]
    )
    assert [[cell.count.threads for cell in task.cells] for task in tasks] == [[1, 2], [1]]
    records = run_of(tmp_path, tasks[0].cells).records()
    assert sorted(record["threads"] for record in records if record["cell"] == "count") == [1, 2]


# Failures and exit codes.


def test_a_failure_costs_only_its_own_row(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    bad = {"segfaults": "killed", "ends_at_once": "error", "returns_none": "error"}
    records = run_of(
        tmp_path, [cell_of(reading, card) for card in (HEAP, *map(unruly, bad), NAIVE)]
    ).records()
    row_of = by_variant(records)
    assert {name: row_of[name]["status"] for name in row_of} == {"heap": "ok", **bad, "naive": "ok"}
    assert row_of["naive"]["identity"]["kind"] == "identical"
    assert run.exit_code(records) == 22


@pytest.mark.parametrize(
    ("outcomes", "exit_code"),
    [
        ("ok ok", 0),
        ("ok skipped", 0),
        ("", 22),
        ("skipped", 22),
        ("ok timeout", 22),
        ("error mismatch", 21),
        ("ok ok:none", 22),
        ("ok ok:unproved", 22),
        ("ok ok:none:cd", 21),
        ("ok ok:different_by_design:cd", 0),
    ],
)
def test_only_proved_merges_are_a_success(outcomes: str, exit_code: int) -> None:
    """A status, what was proved of the merges, and the first letters of their digest."""
    records = []
    for outcome in outcomes.split():
        status, _, rest = outcome.partition(":")
        kind, _, digest = rest.partition(":")
        verdict = {"status": status, "reason": "because", "merges_sha256": (digest or "ab") * 32}
        identity = None if kind == "none" else {"kind": kind or "identical"}
        records.append(measured("heap", 1.0, identity=identity, **verdict))
    assert run.exit_code(records) == exit_code


# Notes.


def test_notes_below_the_table(tmp_path: Path) -> None:
    empty = run_of(tmp_path, [cell_of(reading_of(tmp_path, "", "empty.txt"))]).records()
    assert (empty[1]["merges"], run.exit_code(empty)) == (0, 0)
    assert run.notes(empty) == ["empty.txt holds no words, so there is nothing to merge"]
    for counter, note in (
        (
            SERIAL,
            [
                "threads above 1 change nothing for heap: neither the counter nor the trainer takes any"
            ],
        ),
        (ANOTHER_COUNTER, []),
    ):
        cell = cell_of(reading_of(tmp_path), HEAP, counter=counter, threads=2)
        assert run.notes(run_of(tmp_path, [cell]).records()) == note


# Counting.


def test_without_times_words_in_the_cache_are_enough(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path))
    run_of(tmp_path, [cell])
    records = run_of(tmp_path, [cell], kind="proof").records()
    assert [record["cell"] for record in records] == ["train"]


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("counter_that_stops_on_request", "timeout", "over limits.wall=0.3 s; raise that,"),
        ("counter_that_dies", "killed", "its process was ended by SIGKILL"),
    ],
)
def test_after_a_counter_that_fails_nothing_is_trained(
    tmp_path: Path, name: str, status: str, reason: str
) -> None:
    stopped = status == "timeout"  # what is over the limit is not run again in the second block
    cell = cell_of(
        reading_of(tmp_path), counter=unruly_counter(name), limits=BRIEF if stopped else None
    )
    records = run_of(tmp_path, [cell], repeat=1 + stopped, warm_up=int(stopped)).records()
    found = [(each["cell"], each["status"], each["warm_up"]) for each in records]
    assert found == [("count", status, stopped), ("train", status, False)]
    assert records[1]["reason"].startswith(f"counting text.txt ({name}) failed: {reason}")


@pytest.mark.parametrize(("name", "content"), [("data", b"lowloweR"), ("manifest.json", b"[]")])
def test_damaged_words_in_the_cache_are_removed(tmp_path: Path, name: str, content: bytes) -> None:
    reading = reading_of(tmp_path)
    manifest = exchange.write_words(
        tmp_path / "written", WordCounts.from_items([(b"low", 2), (b"lower", 1)])
    )
    reading.keep(tmp_path / "written", manifest)
    assert (reading.words() or {})["sha256"] == manifest["sha256"]
    (reading.folder / name).write_bytes(content)
    assert reading.words() is None
    assert not reading.folder.exists()


@pytest.mark.parametrize("cached", [False, True])
def test_a_counter_that_loses_a_word_gets_no_time(tmp_path: Path, cached: bool) -> None:
    reading = reading_of(tmp_path)
    if cached:
        run_of(tmp_path, [cell_of(reading, HEAP)])
    wrong = cell_of(reading, NAIVE, counter=unruly_counter("counter_that_loses_a_word"))
    records = run_of(tmp_path, [wrong, cell_of(reading, HEAP)]).records()
    counted = {each["counting"]: each for each in records if each["cell"] == "count"}[
        "counter_that_loses_a_word"
    ]
    assert (counted["status"], counted["seconds"].get("total"), counted["words_sha256"]) == (
        "mismatch",
        None,
        None,
    )
    row_of = by_variant(records)
    assert (row_of["heap"]["status"], row_of["naive"]["status"], run.exit_code(records)) == (
        "ok",
        "error",
        21,
    )
    failed = "counting text.txt (counter_that_loses_a_word) failed: its words are not those of counting=native; check"
    assert row_of["naive"]["reason"].startswith(failed)


def test_words_of_an_outside_counter_are_checked_once_for_each_corpus(tmp_path: Path) -> None:
    own = cell_of(
        reading_of(tmp_path), HEAP, counter=CounterCard("mine", "sabotaged_counters:honest")
    )
    session = Session(settings_for(tmp_path, repeat=3), RunLog(None, now()), tmp_path / "jobs")
    measure_task(Task(0, [own]), session)
    records = session.log.records()
    assert (run.exit_code(records), next(session.numbers)) == (0, len(records) + 1)
    assert {each["counting"] for each in records if each["cell"] == "count"} == {"mine"}


def test_wrong_words_in_the_cache_do_not_reject_an_honest_counter(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path))
    good = run_of(tmp_path, [cell]).records()
    shutil.rmtree(cell.reading.folder)
    exchange.write_words(cell.reading.folder, WordCounts.from_items([(b"wrong", 1)]))
    records = run_of(tmp_path, [cell_of(cell.reading, counter=ANOTHER_COUNTER)]).records()
    assert (run.exit_code(records), records[1]["merges_sha256"]) == (0, good[1]["merges_sha256"])


def test_words_of_a_file_that_changes_are_not_kept(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    reading.file.path.write_text(TEXT + "and more")
    records = run_of(tmp_path, [cell_of(reading)]).records()
    assert [record["status"] for record in records] == ["error", "error"]
    assert records[0]["reason"] == "text.txt was changed while it was read; run the same again"
    assert reading.words() is None


@pytest.mark.parametrize("spoiler", ["removes_its_words", "replaces_its_words"])
@pytest.mark.parametrize("seed", [0, 1])  # of the order
def test_trainer_that_spoils_the_words_gets_nothing_and_gives_nothing(
    tmp_path: Path, spoiler: str, seed: int
) -> None:
    cells = [cell_of(reading_of(tmp_path), variant) for variant in (HEAP, unruly(spoiler))]
    records = run_of(tmp_path, cells, seed=seed, repeat=2).records()
    spoiled = [record for record in trained(records) if record["variant"] == spoiler]
    assert {record["status"] for record in spoiled} == {"rejected"}
    assert "words that it was given were changed or removed" in spoiled[0]["reason"]
    right = [record for record in trained(records) if record["variant"] == "heap"]
    assert {record["status"] for record in right} <= {"ok", "error"}
    merges = train(serial(cells[0].reading.corpus), 10)
    for record in right:
        if record["status"] == "ok":
            assert record["merges_sha256"] == exchange.merges_sha256(merges)
            assert record["identity"]["kind"] == "identical"
    assert run.exit_code(records) == UNMEASURED


def test_a_full_cache_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, copyfile = [cell_of(reading_of(tmp_path))], shutil.copyfile

    def full(source: Any, target: Any, **others: Any) -> None:
        if cache_folder() in Path(target).parents:
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        copyfile(source, target, **others)

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(Refusal) as refused:
        recorded_run(tmp_path, cells)
    place = cells[0].reading.folder
    assert str(refused.value) == (
        f"cannot write {place} (No space left on device); "
        "set BPE_HARNESS_CACHE to a folder that can be written and has room"
    )


def test_clearing_the_cache_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell, measured = cell_of(reading_of(tmp_path)), blocks.train

    def clear_and_train(*arguments: Any) -> Any:
        shutil.rmtree(cell.reading.folder.parents[2], ignore_errors=True)
        return measured(*arguments)

    monkeypatch.setattr(blocks, "train", clear_and_train)
    records = run_of(tmp_path, [cell, cell_of(cell.reading, NAIVE)], repeat=2).records()
    assert run.exit_code(records) == OK
    assert {record["identity"]["kind"] for record in trained(records)} == {"identical"}


def test_merges_that_nothing_proves_are_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "prove_merges", lambda *_: None)
    reading = reading_of(tmp_path)
    records = run_of(tmp_path, [cell_of(reading), cell_of(reading, NAIVE)]).records()
    assert {record["status"] for record in records} == {"ok"}
    assert run.exit_code(records) == UNMEASURED
    assert [pair.ratio() for pair in against(rows(records))] == [None, None]
    others = [cell_of(reading), cell_of(reading, unruly("returns_one_too_few"))]
    assert run.exit_code(run_of(tmp_path, others).records()) == MISMATCH


PRE_TOKENS = regex.findall(GPT2_PATTERN, TEXT)
FACTS = {"documents": 1, "pre_tokens": len(PRE_TOKENS), "words": len(set(PRE_TOKENS))}


@pytest.mark.parametrize("fact", FACTS)
def test_facts_of_a_card_are_compared_with_the_counted_words(tmp_path: Path, fact: str) -> None:
    def records(facts: dict[str, int], **read: Any) -> list[Record]:
        reading = reading_of(tmp_path)
        reading = replace(reading, file=replace(reading.file, facts=facts), **read)
        return run_of(tmp_path, [cell_of(reading)]).records()

    right = records(FACTS)[0]
    assert (right["status"], {name: right["data"][name] for name in FACTS}) == ("ok", FACTS)
    wrong = records({**FACTS, fact: 7})
    assert [record["status"] for record in wrong] == ["error", "error"]
    assert (
        f"data=text.txt has {fact} {FACTS[fact]}, its card says 7; it is another text"
        in wrong[1]["reason"]
    )
    # facts are of the default pattern
    assert records({**FACTS, fact: 7}, pattern_name="line")[0]["status"] == "ok"


def test_a_bad_byte_is_located_in_its_own_file(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, b"good text<|endoftext|>\xff")
    file = replace(reading.file, parts=(Part(0, "one.txt"), Part(18, "two.txt")))
    records = run_of(tmp_path, [cell_of(replace(reading, file=file))]).records()
    assert (
        records[0]["reason"]
        == "two.txt: invalid UTF-8 at byte 4; fix the file, or set errors=replace"
    )


# Trainers that read the file.


def test_a_file_trainer_makes_the_merges_of_the_words_and_its_total_is_the_whole(
    tmp_path: Path,
) -> None:
    reading = reading_of(tmp_path)
    cards = HEAP, BY_FILE, structs.replace(BY_FILE, name="silent", params={"silent": True})
    settings: dict[str, Any] = {"tie_break": "raw_bytes", "min_count": 3}
    records = trained(
        run_of(tmp_path, [cell_of(reading, card, 60, **settings) for card in cards]).records()
    )
    by_words, by_file, silent = records
    assert by_words["merges"] < 60
    assert (by_file["status"], by_file["identity"]["kind"]) == ("ok", "identical")
    assert (by_file["merges_sha256"], by_file["data"]) == (
        by_words["merges_sha256"],
        by_words["data"],
    )
    assert by_file["counting"] == silent["counting"] == BY_ITSELF
    assert by_file["seconds"]["count"] > 0
    assert by_file["tallies"]["bytes_scanned"] == reading.file.bytes
    assert (silent["seconds"]["read"], silent["seconds"]["count"]) == (None, None)
    assert silent["seconds"]["other"] == silent["seconds"]["total"]


def test_a_file_trainer_without_an_answer_has_no_time_of_a_counter(tmp_path: Path) -> None:
    killed = structs.replace(unruly("is_killed_before_it_reads"), tags=("from_file",))
    reading = reading_of(tmp_path)
    _, record = trained(
        run_of(tmp_path, [cell_of(reading, HEAP), cell_of(reading, killed)]).records()
    )
    assert (record["status"], record["counting"]) == ("killed", BY_ITSELF)
    assert (set(record["seconds"].values()), record["cpu_seconds"]) == ({None}, None)


def test_a_file_trainer_skips_a_table_of_words(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    table = replace(reading, file=replace(reading.file, table=True))
    job = train_job(cell_of(table, BY_FILE, counter=GIVEN), BY_FILE, tmp_path / "words")
    answer = measure(job, tmp_path / "output", WorkerLimits())
    reason = "it reads text, and there are only words with their counts here"
    assert (answer.status, answer.reason) == ("skipped", reason)
