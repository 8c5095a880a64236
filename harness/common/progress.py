"""A bar on a terminal, with rate and time left; nothing at all where standard error is not a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from harness.common.units import duration_text, rate_text


class Display:
    """Shows one measurement after another."""

    def __init__(self, total_cells: int) -> None:
        self.console = Console(stderr=True)
        self.total_cells = total_cells
        self.cell = 0
        self.seconds_left: float | None = None

    def pass_over(self) -> None:
        """One cell more, of those there are: runs for a reference come after the last and are no cells."""
        self.cell = min(self.cell + 1, self.total_cells)

    @contextlib.contextmanager
    def showing(self, label: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
        """A bar for one measurement; yields the function that is told how much is done."""
        self.pass_over()
        left = "" if self.seconds_left is None else f", all of it {duration_text(self.seconds_left)} more"
        with bar(f"[{self.cell}/{self.total_cells}{left}] {label}", total, unit, self.console) as on_progress:
            yield on_progress


@contextlib.contextmanager
def bar(label: str, total: int, unit: str, console: Console | None = None) -> Iterator[Callable[[int], None]]:
    """A bar for one piece of work; yields the function that is told how much is done. A total of 0 is not known."""
    rate = TextColumn("{task.fields[rate]}", markup=False)
    with _on_a_terminal(label, (BarColumn(), rate), console, total=total or None, rate="") as shown:
        yield lambda done: update(*shown, done, unit) if shown else None


def update(progress: Progress, task: TaskID, done: int, unit: str) -> None:
    speed = progress.tasks[0].speed
    progress.update(task, completed=done, rate=f"{rate_text(speed)} {unit}/s" if speed else "")


@contextlib.contextmanager
def download_bar(label: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar for one file; yields the function that is told how many bytes there are, and of how many if it is known."""
    with _on_a_terminal(label, (BarColumn(), DownloadColumn(), TransferSpeedColumn()), total=None) as shown:
        yield lambda done, total: shown[0].update(shown[1], completed=done, total=total) if shown else None


Show = Callable[[str, str, int, int], None]
"""Told the stage, what of it is being done, and how many of how many things in it are done; 0 of 0 is not known."""


@contextlib.contextmanager
def stage_bar() -> Iterator[Show]:
    """What a gate is doing right now, and how much of it is left: a new stage begins its own clock."""
    detail = TextColumn("{task.fields[detail]}", markup=False)
    with _on_a_terminal("gate", (BarColumn(bar_width=20), detail), total=None, detail="") as shown:
        yield stage_by_stage(*shown) if shown else lambda *_: None


def stage_by_stage(progress: Progress, task: TaskID) -> Show:
    now = ""

    def show(stage: str, detail: str, done: int, of: int) -> None:
        nonlocal now
        if stage != now:
            progress.reset(task, total=of or None, description=stage)
            now = stage
        progress.update(task, completed=done, detail=detail)

    return show


@contextlib.contextmanager
def _on_a_terminal(
    label: str, columns: Sequence[ProgressColumn], console: Console | None = None, **task: Any
) -> Iterator[tuple[Progress, TaskID] | None]:
    """A task shown by its label, these columns and the time left; None where standard error is no terminal."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    described = TextColumn("{task.description}", markup=False)  # a file may be called [red]
    times = TimeElapsedColumn(), TextColumn("ETA"), TimeRemainingColumn(elapsed_when_finished=True)
    # Few pictures a second, and the bar is gone when the work is over: the table comes after it.
    with Progress(described, *columns, *times, console=console, refresh_per_second=4, transient=True) as progress:
        yield progress, progress.add_task(label, **task)
