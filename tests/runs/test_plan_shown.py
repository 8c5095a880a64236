"""plan=true: what would be measured and how long it may take, and nothing is run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from workbench import HEAP, NAIVE, cell_of, reading_of, settings_for

from harness.measure.process import Limits
from harness.runs.cells import Plan, Preset, Rule, TrainCell
from harness.runs.plan import show_plan


def shown(folder: Path, cells: Sequence[TrainCell], **settings: Any) -> list[str]:
    console = Console(file=io.StringIO(), width=300)
    show_plan(Plan(list(cells), settings_for(folder, **settings)), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_line_for_each_counter_and_trainer_and_one_for_all(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    cells = [cell_of(reading), cell_of(reading, NAIVE), cell_of(reading, num_merges=20)]
    counting, heap, _, _, summary = shown(tmp_path, cells)
    assert counting == "counting text.txt (serial, threads=1), once in every block"
    assert heap == "heap on text.txt (237 bytes), 10 merges, counting=serial, threads=1"
    assert summary == "3 cells in 2 tasks, 1 block; nothing was run (plan=true)"


def test_limits_bound_what_nobody_knows(tmp_path: Path) -> None:
    reading = reading_of(tmp_path)
    limited = [cell_of(reading, variant, limits=Limits(wall_seconds=60)) for variant in (HEAP, NAIVE)]
    blocks = {"repeat": 2, "measure": Preset("paired", warm_up=1)}
    told = "2 cells in 1 task, 2 blocks after 1 of warm-up, trainers at most 6 min by limits.wall;"
    assert told in shown(tmp_path, limited, **blocks)[-1]
    assert "trainers at most 4 min by limits.wall;" in shown(tmp_path, limited)[-1]  # a minute each to estimate it
    assert "at most" not in shown(tmp_path, [limited[0], cell_of(reading, NAIVE)], **blocks)[-1]


def test_a_precision_tells_how_few_and_how_many_blocks(tmp_path: Path) -> None:
    precise: Any = {"measure": Preset("precise", precision=Rule(0.05)), "repeat": 6}
    told = shown(tmp_path, [cell_of(reading_of(tmp_path))], **precise)[-1]
    assert "1 cell in 1 task, 6 to 20 blocks, as many as ratios within 5% need" in told
