"""A trainer that reads the file by itself: what it is given, what its record says, where it cannot run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from shown import explanations
from workbench import HEAP, SUPPORT, cell_of, reading_of, settings_for, unruly

from harness import conformance
from harness.common import registry
from harness.common.errors import USAGE
from harness.measure.process import Limits, measure
from harness.records.file import Record
from harness.records.schema import BY_ITSELF
from harness.runs.cells import GIVEN, TrainCell, train_job
from harness.runs.schedule import Run
from harness.worker.calling import reads_corpus

pytestmark = pytest.mark.usefixtures("measured_once")

BY_FILE = unruly("trains_from_a_file")
SILENT = replace(BY_FILE, name="silent", params={"silent": True})


@pytest.fixture(autouse=True)
def unruly_trainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))


def trained(folder: Path, *cells: TrainCell) -> list[Record]:
    run = Run(cells, settings_for(folder), folder / "jobs")
    run.measure_all()
    return [record for record in run.records() if record["cell"] == "train"]


def test_it_comes_to_the_merges_that_the_words_of_a_counter_give(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    by_words, by_file = trained(tmp_path, cell_of(reading, HEAP), cell_of(reading, BY_FILE))
    assert (by_file["status"], by_file["reason"]) == ("ok", None)
    assert by_file["merges_sha256"] == by_words["merges_sha256"]
    assert by_file["identity"]["kind"] == "identical"
    assert by_file["data"] == by_words["data"]


def test_its_total_is_the_whole_and_no_counters_time_is_added(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    told, silent = trained(tmp_path, cell_of(reading, BY_FILE), cell_of(reading, SILENT))
    assert told["counting"] == silent["counting"] == BY_ITSELF
    assert told["seconds"]["count"] > 0
    assert told["tallies"]["bytes_scanned"] == reading.file.bytes
    assert (silent["seconds"]["read"], silent["seconds"]["count"]) == (None, None)
    assert silent["seconds"]["other"] == silent["seconds"]["total"]
    assert "One total from the file to the merges, without phases: silent." in explanations([told, silent], notes=True)


def test_no_counters_time_stands_beside_one_that_ended_without_an_answer(tmp_path: Path) -> None:
    killed = replace(unruly("is_killed_before_it_reads"), tags=("from_file",))
    reading = reading_of(tmp_path)
    _, record = trained(tmp_path, cell_of(reading, HEAP), cell_of(reading, killed))
    assert (record["status"], record["counting"]) == ("killed", BY_ITSELF)
    assert (set(record["seconds"].values()), record["cpu_seconds"]) == ({None}, None)


def test_a_table_of_words_is_nothing_that_it_could_read(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    table = replace(reading, file=replace(reading.file, table=True))
    job = train_job(cell_of(table, BY_FILE, counter=GIVEN), BY_FILE, 5, tmp_path / "words", None)
    answer = measure(job, tmp_path / "output", Limits())
    assert answer["status"] == "skipped"
    assert answer["reason"] == "it reads text by itself, and here are only words with their counts"


def test_it_is_known_by_its_first_two_parameters() -> None:
    assert [
        reads_corpus(registry.resolve(target)) for target in ("variants.heap:train", "unruly:trains_from_a_file")
    ] == [
        False,
        True,
    ]
    assert not reads_corpus(min)
    assert not reads_corpus(registry.resolve("variants.counting.pretokenize:serial"))


@pytest.mark.parametrize("name", [card.name for card in registry.variants().values() if "from_file" in card.tags])
def test_the_tag_says_who_trains_from_a_file(name: str) -> None:
    """Every other card is held against the checks of words, which refuse such a trainer."""
    assert reads_corpus(registry.resolve(registry.variants()[name].target))


def test_the_checks_of_words_refuse_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert conformance.main(["variants.flat_file:train"]) == USAGE
    assert "trains from a file" in capsys.readouterr().err


def test_it_is_asked_the_same_question_as_everybody(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading, variant, 60, tie_break="raw_bytes", min_count=3) for variant in (HEAP, BY_FILE)]
    by_words, by_file = trained(tmp_path, *cells)
    assert by_words["merges"] < 60
    assert by_file["merges_sha256"] == by_words["merges_sha256"]
