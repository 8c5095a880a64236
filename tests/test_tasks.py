"""task_by_task=true: what is finished is not measured again, and all of it is shown in the end."""

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

from harness.common.errors import OK, Refusal
from harness.runs.cells import TrainCell
from harness.runs.outcome import Block, Trained
from harness.runs.record import Record
from harness.runs.running import Plan, run_plan
from harness.runs.schedule import Run
from harness.runs.spent import Spent
from harness.runs.tasks import task_text, tasks_of

moments = itertools.count()


def plan_of(folder: Path, **settings: Any) -> Plan:
    """Two trainers on two sizes of vocabulary."""
    reading = reading_of(folder)
    cells = [
        replace(cell_of(reading, variant), vocab_size=size)
        for size, variant in itertools.product((270, 280), (HEAP, NAIVE))
    ]
    return Plan(cells, settings_for(folder, task_by_task=True, **settings))


def carried_out(plan: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int = -1) -> list[Record]:
    """What is shown in the end; nothing is really trained, and the trainer `stop_after` is where it is interrupted."""
    begun = itertools.count()
    shown: list[Record] = []
    folders: dict[Path, str] = {}

    def train(run: Run, cell: TrainCell, block: Block) -> Trained:
        if next(begun) == stop_after:
            raise KeyboardInterrupt
        assert folders.setdefault(run.folder, run.run_id) == run.run_id, "two tasks work in one folder"
        answer: dict[str, Any] = {"status": "ok", "reason": None, "total": 1.0, "cpu_seconds": 1.0, "seconds": {}}
        started = datetime.fromtimestamp(next(moments), timezone.utc).isoformat()
        return Trained(cell, block, started, answer, next(iter(run.counts.values())), [])

    def show(records: Sequence[Record], _: Sequence[str]) -> None:
        shown.extend(records)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "train", train)
        patched.setattr(Run, "prove", lambda *_, **__: None)
        assert run_plan(plan, folder / "jobs", show, Console(quiet=True), Spent()) == OK
    return [each for each in shown if each["cell"] == "train"]


def test_a_task_that_is_finished_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        carried_out(plan, tmp_path, monkeypatch, stop_after=3)  # in the second task
    shown = carried_out(plan, tmp_path, monkeypatch, stop_after=1)  # there is one trainer to go
    assert "1 of 2 tasks were finished before" in capsys.readouterr().err
    assert Counter((each["vocab_size"], each["variant"]) for each in shown) == dict.fromkeys(
        itertools.product((270, 280), ("heap", "naive")), 1
    )
    assert not (tmp_path / "results" / "unfinished").exists()
    again = carried_out(plan, tmp_path, monkeypatch)
    assert {each["run_id"] for each in again}.isdisjoint(each["run_id"] for each in shown)


def test_a_task_is_what_cells_are_compared_within(tmp_path: Path) -> None:
    tasks = tasks_of(plan_of(tmp_path).cells)
    assert [[cell.variant.name for cell in task] for task in tasks] == [["heap", "naive"], ["heap", "naive"]]
    assert task_text(tasks[1][0]) == "text.txt, vocabulary 280, 1 thread"


def test_tokenizers_of_many_tasks_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refusal, match="leave one out"):
        carried_out(plan_of(tmp_path, save=tmp_path / "saved"), tmp_path, monkeypatch)
