"""plan=true: what would be measured and what it would cost, and nothing is run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from workbench import HEAP, NAIVE, cell_of, reading_of, settings_for

from harness.measure.process import Limits
from harness.runs import schedule
from harness.runs.cells import TrainCell
from harness.runs.costs import keep_cost
from harness.runs.extrapolation import MEASURED, Estimate
from harness.runs.plan_shown import show_plan
from harness.runs.schedule import Run
from harness.runs.settings import Preset


def shown(folder: Path, cells: Sequence[TrainCell], **settings: Any) -> list[str]:
    console = Console(file=io.StringIO(), width=300)
    show_plan(cells, settings_for(folder, **settings), "m", console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def measured(seconds: float) -> Estimate:
    return Estimate(seconds, seconds, seconds, None, MEASURED)


def test_what_nobody_knows_is_unknown(tmp_path: Path) -> None:
    counting, cell, summary = shown(tmp_path, [cell_of(reading_of(tmp_path))])
    assert counting == "counting text.txt (serial, threads=1): time unknown"
    assert cell == "heap on text.txt (237 bytes), 10 merges, counting=serial, threads=1: time unknown"
    assert summary == "1 cell, 1 block, time unknown; nothing was run (plan=true)"


def test_limits_bound_what_nobody_knows(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    limited = [cell_of(reading, variant, limits=Limits(wall_seconds=60)) for variant in (HEAP, NAIVE)]
    blocks = {"repeat": 2, "measure": Preset("paired", warm_up=1)}
    # For each cell three blocks of a minute, and 6 seconds of slices.
    assert "time unknown, trainers at most 6 min by limits.wall;" in shown(tmp_path, limited, **blocks)[-1]
    # One that reads the file can be run on beginnings of it, for a minute more.
    reader = replace(NAIVE, tags=("from_file",))
    limited[1] = cell_of(reading, reader, limits=Limits(wall_seconds=60))
    assert "time unknown, trainers at most 7 min by limits.wall;" in shown(tmp_path, limited, **blocks)[-1]
    unlimited = [limited[0], cell_of(reading, NAIVE)]
    assert "at most" not in shown(tmp_path, unlimited, **blocks)[-1]


def test_what_earlier_runs_took_is_summed_over_the_blocks(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading), cell_of(reading, NAIVE)]
    keep_cost(cells[0], "m", measured(2.0))
    _, heap, naive, summary = shown(tmp_path, cells, repeat=10, measure=Preset("paired", warm_up=1))
    assert heap.endswith("threads=1: 2.0 s")
    assert naive.endswith(": time unknown")
    assert "10 blocks after 1 of warm-up, about 22 s for the trainers, without the 1 whose time is unknown" in summary
    keep_cost(cells[1], "m", measured(3.0))
    assert "about 55 s for the trainers;" in shown(tmp_path, cells, repeat=10, measure=Preset("p", warm_up=1))[-1]


def test_what_would_be_over_its_limit_costs_the_limit_once(tmp_path: Path) -> None:
    cell = cell_of(reading_of(tmp_path), limits=Limits(wall_seconds=20))
    keep_cost(cell, "m", Estimate(60.0, 45.0, 90.0, 1.1, "slices"))
    _, told, summary = shown(tmp_path, [cell], repeat=10)
    assert told.endswith("60 s (45 s to 90 s); stops at limits.wall=20 s, once")
    assert "about 20 s for the trainers" in summary


def test_a_run_leaves_what_a_plan_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [cell_of(reading_of(tmp_path), HEAP)]
    run = Run(cells, settings_for(tmp_path), tmp_path / "jobs")
    run.machine = "m"
    run.measure_all()
    monkeypatch.setattr(schedule, "measure", lambda *_: pytest.fail("something was run"))
    counting, cell, _ = shown(tmp_path, cells)
    assert "kept, took " in counting
    assert cell.endswith((" ms", " s"))
