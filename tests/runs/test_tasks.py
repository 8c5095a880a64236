"""A run measures task by task: each is recorded when it is done, and an interrupted one goes on where it was."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from workbench import HEAP, NAIVE, cell_of, reading_of, settings_for

from harness.common.errors import OK
from harness.records.file import Record
from harness.records.load import read_records
from harness.runs.cells import TrainCell, tasks_of
from harness.runs.outcome import Trained
from harness.runs.prove import Prover
from harness.runs.resume import Block
from harness.runs.running import Plan, run_plan, task_text
from harness.runs.schedule import Run

moments = itertools.count()


def plan_of(folder: Path, **settings: Any) -> Plan:
    """Two trainers on two sizes of vocabulary."""
    reading = reading_of(folder)
    cells = [
        replace(cell_of(reading, variant), vocab_size=size)
        for variant, size in itertools.product((HEAP, NAIVE), (270, 280))
    ]
    return Plan(cells, settings_for(folder, **settings))


def carried_out(plan: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int = -1) -> list[Record]:
    """What is shown in the end; nothing is really trained, and the trainer `stop_after` is where it is interrupted."""
    begun = itertools.count()
    shown: list[Record] = []

    def train(run: Run, cell: TrainCell, block: Block) -> Trained:
        if next(begun) == stop_after:
            raise KeyboardInterrupt
        answer: dict[str, Any] = {"status": "ok", "reason": None, "total": 1.0, "cpu_seconds": 1.0, "seconds": {}}
        started = datetime.fromtimestamp(next(moments), timezone.utc).isoformat()
        return Trained(cell, block, started, answer, next(iter(run.counts.values())), [])

    def show(records: Sequence[Record], _: Sequence[str]) -> None:
        shown.extend(records)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "train", train)
        patched.setattr(Prover, "prove", lambda *_, **__: None)
        assert run_plan(plan, folder / "jobs", show, Console(quiet=True)) == OK
    return [each for each in shown if each["cell"] == "train"]


def test_what_is_measured_is_not_measured_again_and_all_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        carried_out(plan, tmp_path, monkeypatch, stop_after=3)  # in the second task
    shown = carried_out(plan, tmp_path, monkeypatch, stop_after=1)  # there is one trainer to go
    everything = dict.fromkeys(itertools.product((270, 280), ("heap", "naive")), 1)
    assert Counter((each["vocab_size"], each["variant"]) for each in shown) == everything
    stored = [each for each in read_records([tmp_path / "results"]) if each["cell"] == "train"]
    assert Counter((each["vocab_size"], each["variant"]) for each in stored) == everything
    assert len({each["run_id"] for each in stored}) == 1
    again = carried_out(plan, tmp_path, monkeypatch)
    assert {each["run_id"] for each in again}.isdisjoint(each["run_id"] for each in shown)


def test_a_task_is_recorded_before_the_next_one_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        carried_out(plan_of(tmp_path, repeat=2), tmp_path, monkeypatch, stop_after=4)
    stored = [each for each in read_records([tmp_path / "results"]) if each["cell"] == "train"]
    assert Counter((each["vocab_size"], each["block"], each["block_whole"]) for each in stored) == {
        (270, 0, True): 2,
        (270, 1, True): 2,
    }


def test_cells_that_differ_in_threads_alone_are_of_one_task(tmp_path: Path) -> None:
    cells = plan_of(tmp_path).cells
    two = [replace(cell, count=replace(cell.count, threads=2)) for cell in cells]
    tasks = tasks_of([*cells, *two])
    assert [[(cell.variant.name, cell.threads) for cell in task] for task in tasks] == [
        [("heap", 1), ("naive", 1), ("heap", 2), ("naive", 2)]
    ] * 2
    assert task_text(tasks[1]) == "text.txt, vocabulary 280, 4 trainers"
