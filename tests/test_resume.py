"""An unfinished run is gone on with, whatever ended it: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from workbench import (
    CHECKOUT,
    HEAP,
    NAIVE,
    TESTS,
    cell_of,
    first_fast,
    heed_signals,
    measuring,
    reading_of,
    settings_for,
    wait_until,
)

from harness.common.registry import VariantCard
from harness.records.file import Record
from harness.records.load import read_records
from harness.runs import journal, running, store
from harness.runs.cells import TrainCell
from harness.runs.journal import UNFINISHED, Journal, plan_key
from harness.runs.outcome import Block
from harness.runs.schedule import Run
from harness.runs.settings import Preset

pytestmark = [pytest.mark.usefixtures("measured_once"), pytest.mark.xdist_group("one after the other")]
runs = itertools.count()
OTHER_FAMILY = VariantCard("heap_again", "variants.heap:train", family="another")


class Stop(Exception):
    """What ends a run in the middle, as kill -9 would: nothing is done about it."""


def finished(folder: Path, cells: Sequence[TrainCell], **settings: Any) -> Run:
    chosen = settings_for(folder, **settings)
    with measuring(cells, chosen, folder / f"jobs{next(runs)}") as run:
        pass
    return run


def interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, cells: Sequence[TrainCell], after: int, **settings: Any
) -> None:
    """Measure so many trainers, then stop without recording anything, as kill -9 would."""
    train = Run.train
    begun = itertools.count()

    def train_some(run: Run, cell: TrainCell, block: Block) -> Any:
        if next(begun) == after:
            raise Stop
        return train(run, cell, block)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "train", train_some)
        patched.setattr(running, "append_once", lambda *_: None)
        with pytest.raises(Stop):
            finished(folder, cells, **settings)


def stored(folder: Path) -> list[Record]:
    return [each for each in read_records([folder / "results"]) if each["cell"] == "train"]


def moments(records: Sequence[Record]) -> Counter[tuple[Any, ...]]:
    return Counter((each["variant"], each["warm_up"], each["block"], each["block_whole"]) for each in records)


def three(folder: Path) -> list[TrainCell]:
    reading = reading_of(folder)
    return [cell_of(reading, variant) for variant in (HEAP, NAIVE, OTHER_FAMILY)]


# One block.


@pytest.mark.parametrize("after", first_fast([1, 0, 2]))
def test_a_single_block_goes_on_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    cells = three(tmp_path)
    interrupted(tmp_path, monkeypatch, cells, after)
    assert stored(tmp_path) == []
    trained: list[str] = []
    train = Run.train

    def train_and_tell(run: Run, cell: TrainCell, block: Block) -> Any:
        trained.append(cell.key())
        return train(run, cell, block)

    monkeypatch.setattr(Run, "train", train_and_tell)
    run = finished(tmp_path, cells)
    assert len(trained) == 3 - after
    assert Counter(each["variant"] for each in stored(tmp_path)) == {"heap": 1, "naive": 1, "heap_again": 1}
    assert {each["block_whole"] for each in stored(tmp_path)} == {after == 0}
    assert {each["identity"]["kind"] for each in stored(tmp_path)} == {"identical"}
    assert {each["run_id"] for each in stored(tmp_path)} == {run.run_id}
    assert [each["cell"] for each in read_records([tmp_path / "results"])].count("count") == 1
    assert not (tmp_path / "results" / UNFINISHED).exists()


def test_a_finished_plan_runs_anew(tmp_path: Path) -> None:
    cells = three(tmp_path)
    first, second = finished(tmp_path, cells), finished(tmp_path, cells)
    assert first.run_id != second.run_id
    assert len(stored(tmp_path)) == 6


def test_rerun_runs_anew_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = three(tmp_path)
    interrupted(tmp_path, monkeypatch, cells, 2)
    run = finished(tmp_path, cells, rerun=True)
    by_run = Counter(each["run_id"] == run.run_id for each in stored(tmp_path))
    assert by_run == {True: 3, False: 2}


# Several blocks.


@pytest.mark.slow
def test_of_several_blocks_the_interrupted_one_is_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = three(tmp_path)
    paired = {"repeat": 2, "measure": Preset("paired", warm_up=1)}
    interrupted(tmp_path, monkeypatch, cells, 7, **paired)  # warm-up and the first block whole, one of the second
    finished(tmp_path, cells, **paired)
    expected = Counter(
        (variant, warm_up, block, True)
        for variant in ("heap", "naive", "heap_again")
        for warm_up, block in ((True, 0), (False, 0), (False, 1))
    )
    found = moments(stored(tmp_path))
    assert found - expected == Counter(key for key in found if not key[3])
    assert sum((found - expected).values()) == 1
    assert expected - found == Counter()


@pytest.mark.slow
def test_each_block_has_the_order_it_would_have_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again = [VariantCard(name, "variants.heap:train", family=name) for name in ("once_more", "and_again")]
    cells = [*three(tmp_path), *(cell_of(reading_of(tmp_path), variant) for variant in again)]
    whole = finished(tmp_path, cells, repeat=2)
    (tmp_path / "again").mkdir()
    settings = {"repeat": 2, "results": tmp_path / "again"}
    interrupted(tmp_path, monkeypatch, cells, 7, **settings)
    continued = finished(tmp_path, cells, **settings)

    def order(run: Run) -> list[str]:
        second = [each for each in run.trained if each.block == Block(1) and not each.cut_short]
        return [each.cell.key() for each in second]

    assert order(whole) == order(continued)
    assert len(order(whole)) == 5


# What is the same plan.


@pytest.mark.parametrize(
    "changed",
    [
        {"repeat": 2},
        {"seed": 1},
        {"measure": Preset("other")},
        {"measure": Preset("quick", quiet_seconds=1)},
        {"affinity": (0,)},
        {"concurrent": True},
    ],
)
def test_other_settings_are_another_plan(tmp_path: Path, changed: dict[str, Any]) -> None:
    cells = three(tmp_path)
    assert plan_key(cells, settings_for(tmp_path), "m") != plan_key(cells, settings_for(tmp_path, **changed), "m")


def test_other_cells_code_limits_or_machines_are_another_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = reading_of(tmp_path)
    (tmp_path / "mine.py").write_text("def train(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    mine = VariantCard("mine", "mine:train")
    settings = settings_for(tmp_path)
    key = plan_key([cell_of(reading, mine)], settings, "m")
    assert key == plan_key([cell_of(reading, mine)], settings, "m")
    assert key == plan_key([cell_of(reading, mine)], settings_for(tmp_path, save=tmp_path / "s"), "m")
    others = [
        plan_key([cell_of(reading, mine)], settings, "n"),
        plan_key([cell_of(reading, mine, 11)], settings, "m"),
        plan_key([cell_of(reading, VariantCard("mine", "mine:train", params={"a": 1}))], settings, "m"),
        plan_key([cell_of(reading_of(tmp_path, "other"), mine)], settings, "m"),
    ]
    (tmp_path / "mine.py").write_text("def train(): ...  # changed\n")
    others.append(plan_key([cell_of(reading, mine)], settings, "m"))
    assert key not in others
    assert len(set(others)) == len(others)


def test_the_order_in_which_cells_are_said_does_not_matter(tmp_path: Path) -> None:
    cells = three(tmp_path)
    assert plan_key(cells, settings_for(tmp_path), "m") == plan_key(cells[::-1], settings_for(tmp_path), "m")


# Ended twice.


@pytest.mark.slow
@pytest.mark.parametrize("after", first_fast(sorted(itertools.product(range(3), repeat=2), reverse=True), of_one=True))
def test_a_block_that_was_interrupted_twice_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: tuple[int, int]
) -> None:
    cells = three(tmp_path)
    for number in after:
        interrupted(tmp_path, monkeypatch, cells, number, repeat=2)
    finished(tmp_path, cells, repeat=2)
    whole = Counter(key for key in moments(stored(tmp_path)).elements() if key[3])
    assert whole == Counter(itertools.product(("heap", "naive", "heap_again"), (False,), (0, 1), (True,)))
    assert len(stored(tmp_path)) == 6 + sum(after)


def test_a_single_block_in_pieces_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is measured when the second attempt ends, and a third has only to record it."""
    cells = three(tmp_path)
    interrupted(tmp_path, monkeypatch, cells, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Run, "prove", lambda *_, **__: (_ for _ in ()).throw(Stop))
        patched.setattr(running, "append_once", lambda *_: None)
        with pytest.raises(Stop):
            finished(tmp_path, cells)
    finished(tmp_path, cells)
    assert {each["block_whole"] for each in stored(tmp_path)} == {False}
    assert len(stored(tmp_path)) == 3


# Between any two steps.


def test_a_kill_between_recording_and_forgetting_records_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = three(tmp_path)

    def stop(_: Journal) -> None:
        raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "finish", stop)
        with pytest.raises(Stop):
            finished(tmp_path, cells)
    before = stored(tmp_path)
    assert len(before) == 3
    finished(tmp_path, cells)
    assert stored(tmp_path) == before


def test_records_that_a_kill_cut_short_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = three(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "finish", lambda _: None)
        finished(tmp_path, cells)
    file = tmp_path / "results" / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-40])
    assert len(stored(tmp_path)) == 2
    finished(tmp_path, cells)
    assert Counter(each["variant"] for each in stored(tmp_path)) == {"heap": 1, "naive": 1, "heap_again": 1}


def test_half_an_entry_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = three(tmp_path)
    interrupted(tmp_path, monkeypatch, cells, 2)
    (place,) = (tmp_path / "results" / UNFINISHED).iterdir()
    last = max(place.glob("0*"))
    last.rename(last.with_name(last.name + journal.PARTIAL))
    run = finished(tmp_path, cells)
    assert len(run.trained) == len(stored(tmp_path)) == 3


@pytest.mark.parametrize("left", [0, 1, 30, -1], ids=["nothing", "a byte", "half a line", "merges without an end"])
def test_an_entry_that_was_cut_short_is_reported_and_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], left: int
) -> None:
    cells = three(tmp_path)
    interrupted(tmp_path, monkeypatch, cells, 2)
    (place,) = (tmp_path / "results" / UNFINISHED).iterdir()
    last = max(place.glob("0*"))
    last.write_bytes(last.read_bytes()[:left])
    run = finished(tmp_path, cells)
    assert f"{last}: skipped, not a whole measurement; it is measured again" in capsys.readouterr().err
    assert len(run.trained) == len(stored(tmp_path)) == 3


def test_words_that_are_gone_start_the_run_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = three(tmp_path)
    interrupted(tmp_path, monkeypatch, cells, 1)
    (store.folder_of(cells[0].reading) / "words" / "manifest.json").unlink()
    run = finished(tmp_path, cells)
    assert Counter(each["run_id"] == run.run_id for each in stored(tmp_path)) == {True: 3, False: 1}


def test_what_a_killed_run_of_another_plan_has_measured_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = three(tmp_path)
    interrupted(tmp_path, monkeypatch, cells, 2)
    finished(tmp_path, cells[:1])
    assert len(stored(tmp_path)) == 3
    assert len(finished(tmp_path, cells).trained) == 3
    assert len(stored(tmp_path)) == 4


def test_two_runs_of_a_plan_at_once_have_a_journal_each(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    first = journal.open_journal(folder, "plan", "one")
    first.add({"cell": "train", "task": "task", "record": {}}, [])
    second = journal.open_journal(folder, "plan", "two")
    assert first.folder != second.folder
    assert (second.run_id, second.entries) == ("two", [])
    first.close()
    third = journal.open_journal(folder, "plan", "three")
    assert (third.folder, third.run_id, len(third.entries)) == (first.folder, "one", 1)
    for held in (second, third):
        held.finish()
        held.close()
    assert not (folder / UNFINISHED).exists()


# A real end.


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness", f"data.path={folder}/text.txt", f"results={folder}/results", *arguments]


def measured_so_far(folder: Path) -> int:
    return len(list((folder / "results" / UNFINISHED).glob("*/0*[0-9]")))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "moments"),
    [(signal.SIGKILL, [1]), (signal.SIGKILL, [2, 5]), (signal.SIGKILL, [4, 4]), (signal.SIGINT, [3])],
)
def test_a_run_that_is_ended_from_outside_is_gone_on_with(
    tmp_path: Path, number: signal.Signals, moments: Sequence[int]
) -> None:
    """Ended when so many measurements are on disk, once or again after going on; then it is left to finish."""
    reading_of(tmp_path)
    journals = tmp_path / "results" / UNFINISHED
    environment = {**os.environ, "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{TESTS}", "UNRULY_JOURNAL": str(journals)}
    trainers = "variant._target_=unruly:waits_to_be_ended,variants.naive:train,variants.incremental:train"
    arguments = command(tmp_path, "-m", trainers, "vocab_size=270", "repeat=2")
    for entries in moments:
        process = subprocess.Popen(
            arguments,
            env={**environment, "UNRULY_ENOUGH": str(entries)},
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=heed_signals,
        )
        wait_until(lambda at=entries: measured_so_far(tmp_path) >= at, f"{entries} measurements")  # type: ignore[misc]
        assert process.poll() is None
        process.send_signal(number)
        process.wait(timeout=60)
    again = subprocess.run(
        arguments,
        env={**environment, "UNRULY_ENOUGH": "1000"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    records = read_records([tmp_path / "results"])
    assert "skipped" not in again.stderr
    measurements = [json.dumps(journal.measurement_of(each)) for each in records]
    assert len(measurements) == len(set(measurements))
    trained = [each for each in records if each["cell"] == "train"]
    whole = Counter((each["variant"], each["block"]) for each in trained if each["block_whole"])
    assert sorted(whole.values()) == [1] * 6
    assert len(trained) - 6 <= 2 * len(moments)
    assert not (tmp_path / "results" / UNFINISHED).exists()
