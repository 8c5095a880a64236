"""The same command continues an interrupted run from its records: nothing measured is lost, and
nothing is doubled.
"""

import contextlib
import io
import itertools
import math
import os
import random
import statistics
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from measured import measured
from msgspec import structs
from rows import Row, each_row
from workbench import (
    HEAP,
    NAIVE,
    Call,
    cell_of,
    reading_of,
    recorded_run,
    settings_for,
    unruly,
)

from harness.common import cache
from harness.common.comparison import interval
from harness.common.registry import VariantCard
from harness.records import lines as record_file
from harness.records.file import Record, read_records
from harness.records.lines import FILE_NAME
from harness.runs import run, session
from harness.runs.cells import Plan, TrainCell, make_tasks
from harness.runs.resume import RUNNING, blocks_needed, hold, pending, plan_key
from harness.worker.exchange import packed
from variants import heap
from variants.counting.pretokenize import serial

pytestmark = [
    pytest.mark.usefixtures("measured_once", "unruly_trainers"),
    pytest.mark.xdist_group("one after the other"),
]
OTHER = VariantCard("heap_again", "variants.heap:train", family="another")


class Killed(BaseException):
    """Ends a run at a write, as kill -9 would: nothing is done about it."""


def killed_at(
    monkeypatch: pytest.MonkeyPatch, measure: Callable[[], Any], write: int = 2, part: float = 1.0
) -> bool:
    """Measure until a write, of which a part reaches the disk; False if the run finished before."""
    append = record_file.append_whole
    writes = itertools.count()

    def fail(opened: io.FileIO, content: bytes) -> None:
        if next(writes) == write:
            append(opened, content[: int(part * len(content))])
            raise Killed
        append(opened, content)

    with monkeypatch.context() as patched:
        patched.setattr(record_file, "append_whole", fail)
        try:
            measure()
        except Killed:
            return True
    return False


def stored(folder: Path) -> list[Record]:
    return [record for record in read_records([folder / "results"]) if record.trains]


def runs_of(folder: Path) -> Counter[str]:
    """How many trainings each run has stored, the first run first."""
    return Counter(record["run_id"] for record in stored(folder))


def three(folder: Path) -> list[TrainCell]:
    reading = reading_of(folder)
    return [cell_of(reading, variant) for variant in (HEAP, NAIVE, OTHER)]


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0], ids=["before", "within", "after"])
@pytest.mark.parametrize("repeat", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_kill_at_any_write_loses_only_the_measurement_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int, part: float
) -> None:
    cells = three(tmp_path)
    everything = [(cell.variant.name, block) for cell in cells for block in range(repeat)]

    for write in itertools.count():
        folder = tmp_path / str(write)
        folder.mkdir()
        measure = partial(recorded_run, folder, cells, repeat=repeat)
        was_killed = killed_at(monkeypatch, measure, write, part)
        if was_killed and '"kind":"end"' not in (folder / "results" / FILE_NAME).read_text():
            measure()

        # the interrupted block is measured again as a whole, and its earlier records pair with
        # nothing
        found = stored(folder)
        whole = found if repeat == 1 else [record for record in found if record["block_whole"]]
        measured_cells = [(record["variant"], record["block"]) for record in whole]
        assert sorted(measured_cells) == sorted(everything)
        assert len(found) <= len(whole) + 2
        assert {record["identity"]["kind"] for record in found} == {"identical"}
        assert len(runs_of(folder)) == 1 or write == 0
        assert not list((folder / "results").glob(f"{RUNNING}*"))
        if not was_killed:
            assert write > 3 * repeat
            return


def test_runs_of_one_plan_share_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished run starts anew, so does one with rerun=true, and one beside a run that is still
    going on.
    """
    measure = partial(recorded_run, tmp_path, three(tmp_path))
    measure()
    assert killed_at(monkeypatch, measure)
    (plan,) = {record["plan"] for record in stored(tmp_path)}
    with contextlib.ExitStack() as opened:
        assert hold(tmp_path / "results" / f"{RUNNING}{plan}", opened)
        measure()
    assert killed_at(monkeypatch, measure)
    measure(rerun=True)
    assert [*runs_of(tmp_path).values()] == [3, 2, 3, 2, 3]


def test_an_unfinished_run_is_read_and_marked_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    cells = three(tmp_path)
    results, page = tmp_path / "results", tmp_path / "page.html"
    assert killed_at(monkeypatch, lambda: recorded_run(tmp_path, cells))
    (run_id,) = runs_of(tmp_path)
    note = f"un {run_id[:16]} was interrupted: run the same command to finish it"

    for notes in (1, 0):
        call("report --output", page, results)
        shown = call("records check", results).out, call("table", results).out, page.read_text()
        assert [text.count(note) for text in shown] == [notes] * 3
        recorded_run(tmp_path, cells)


def test_an_interrupted_run_is_resumed_after_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = three(tmp_path)
    recorded_run(tmp_path, cells)
    earlier = "2001-01-01T00:00:00.000000+00:00"
    with monkeypatch.context() as patched:
        patched.setattr(session, "now", lambda: earlier)
        assert killed_at(patched, lambda: recorded_run(tmp_path, cells))
    recorded_run(tmp_path, cells)
    assert runs_of(tmp_path)[earlier] == 3
    assert [*runs_of(tmp_path).values()] == [3, 3]


def test_code_that_changes_before_a_run_is_resumed_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    module = tmp_path / "mine.py"
    module.write_text("from variants.heap import train\n")
    cells = [*three(tmp_path), cell_of(reading_of(tmp_path), VariantCard("mine", "mine:train"))]
    measure = partial(recorded_run, tmp_path, cells, repeat=2)

    assert killed_at(monkeypatch, measure, write=5)  # the first block has been measured
    before = runs_of(tmp_path)
    module.write_text("from variants.heap import train  # a change\n")
    measure()
    assert [*(runs_of(tmp_path) - before).values()] == [8]


def test_a_tokenizer_is_saved_at_once_and_another_folder_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saved(name: str) -> int:
        plan = Plan(make_tasks(three(tmp_path)), settings_for(tmp_path, save=tmp_path / name))
        jobs = tmp_path / f"jobs {name}"
        killed_at(monkeypatch, lambda: run.run_plan(plan, jobs, lambda *_: None))
        return len(list((tmp_path / name).iterdir()))

    assert (saved("a"), saved("b")) == (2, 2)
    assert saved("a") == 3
    assert [*runs_of(tmp_path).values()] == [3, 2]


@pytest.mark.parametrize(
    ("repeat", "planted"), [(1, False), (1, True), pytest.param(2, False, marks=pytest.mark.slow)]
)
def test_a_trainer_that_searches_files_and_processes_finds_no_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int, planted: bool
) -> None:
    """The attack: a trainer looks for those of the one before it, in results, cache, temporary
    folders and /proc.
    """
    monkeypatch.setenv("UNRULY_SEARCH", f"{tmp_path}{os.pathsep}{cache.root()}")
    reading = reading_of(tmp_path)
    if planted:
        merges = heap.train(serial(reading.corpus), 10)
        (cache.folder("counts") / "merges").write_bytes(packed(merges))
    cells = [cell_of(reading, HEAP), cell_of(reading, unruly("searches_for_merges"))]
    recorded_run(tmp_path, cells, repeat=repeat)
    searched = [record for record in stored(tmp_path) if record["variant"] != "heap"]
    assert len(searched) == repeat
    for record in searched:
        assert (record["status"], record["tallies"].get("found", 0)) == ("ok", planted)
        assert record["tallies"]["searched"] > 3


# Which cells are pending, and how many blocks a precision needs.


def record_of(cell: TrainCell, block: int, seconds: float = 1.0, **keys: Any) -> Record:
    status = {"reason": "late"} if keys.get("status") == "timeout" else {}
    own = {"run_key": cell.key, "block": block, "cpu_seconds": None, **status, **keys}
    return measured("a", seconds, **own)


@each_row(__file__, "pending.toml")
def test_pending_cells_follow_from_the_records(tmp_path: Path, row: Row) -> None:
    cells = dict(zip("abc", three(tmp_path), strict=True))
    settings = settings_for(tmp_path, repeat=row["repeat"], warm_up=row.get("warm_up", 0))
    records = []
    for record in row["records"]:
        whole = record.pop("whole", False)
        records.append(record_of(cells[record.pop("cell")], **record, block_whole=whole))

    due = []
    for block, pending_cells in pending([*cells.values()], settings.measure, records):
        names = [name for name, cell in cells.items() if cell in pending_cells]
        due.append({"block": block.number, "cells": names})
    assert due == row["due"]


@each_row(__file__, "precision.toml")
def test_the_spread_of_the_first_blocks_says_how_often_each_cell_is_measured(
    tmp_path: Path, row: Row
) -> None:
    """Cell a is the reference: it is measured as often as any of the others needs it."""
    cells = three(tmp_path)
    order = random.Random(0)
    records = []
    for block in range(row["blocks"]):
        spread = math.exp(order.gauss(0, row.get("spread_of_c", 0.0)))
        seconds = (1.0, row.get("times_of_b", 1.0), spread)
        for cell, took in zip(cells, seconds, strict=True):
            records.append(record_of(cell, block, took, block_whole=True))

    settings = settings_for(tmp_path, precision=0.05, repeat=6)
    due = Counter[str]()
    for _, pending_cells in pending(cells, settings.measure, records):
        due.update("abc"[cells.index(cell)] for cell in pending_cells)
    assert due == row["due"]


TRUTH = math.log(1.5)


@pytest.mark.parametrize(
    "noise",
    [
        lambda order: order.gauss(0, 0.01),
        lambda order: order.gauss(0, 0.1),
        lambda order: 0.03 * math.tan(math.pi * (order.random() - 0.5)),
        lambda order: order.uniform(-0.1, 0.1),
        lambda order: order.gauss(0, 0.01) + order.choice((-0.2, 0.2)) * (order.random() < 0.1),
    ],
    ids=["little", "much", "heavy tails", "even", "often disturbed"],
)
def test_intervals_hold_and_ratios_have_no_bias_if_the_spread_decides_the_blocks(
    noise: Callable[[random.Random], float],
) -> None:
    order = random.Random(0)
    held = 0
    ratios = []
    for _ in range(1500):
        logs = [TRUTH + noise(order) for _ in range(6)]
        more = blocks_needed(logs, 0.05, 6, 20) - 6
        logs += [TRUTH + noise(order) for _ in range(more)]
        low, high = interval(logs)
        assert low is not None
        assert high is not None
        held += low <= TRUTH <= high
        ratios.append(statistics.median(logs))

    assert held / len(ratios) >= 0.94
    error = statistics.stdev(ratios) / math.sqrt(len(ratios))
    assert abs(statistics.fmean(ratios) - TRUTH) < 4 * error


def test_other_cells_settings_machines_are_another_plan(tmp_path: Path) -> None:
    cells = three(tmp_path)
    grown = cell_of(reading_of(tmp_path), structs.replace(HEAP, params={"push": "grown"}))

    def key(machine: str = "m", cells: list[TrainCell] = cells, **settings: Any) -> str:
        return plan_key(Plan(make_tasks(cells), settings_for(tmp_path, **settings)), machine)

    keys = [
        key(),
        key(repeat=2),
        key(seed=1),
        key(save=tmp_path),
        key(kind="proof"),
        key(warm_up=1),
        key("n"),
        key(cells=cells[1:]),
        key(cells=[grown, *cells[1:]]),
    ]
    assert len(set(keys)) == len(keys)
    assert key(cells=cells[::-1]) == key() == keys[0]
