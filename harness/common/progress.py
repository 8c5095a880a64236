"""A bar on a terminal, with rate and time left; nothing at all where standard error is not a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from harness.common.media import terminal_text
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
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),  # a file may be called [red]
        BarColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    # Few pictures a second, and the bar is gone when the work is over: the table comes after it.
    with Progress(*columns, console=console, refresh_per_second=4, transient=True) as progress:
        task = progress.add_task(terminal_text(label), total=total or None, rate="")
        yield lambda done: update(progress, task, done, unit)


def update(progress: Progress, task: TaskID, done: int, unit: str) -> None:
    speed = progress.tasks[0].speed
    progress.update(task, completed=done, rate=f"{rate_text(speed)} {unit}/s" if speed else "")


# How far a download is: a bar with rate and time left on a terminal, nothing in a log.


@contextlib.contextmanager
def download_bar(label: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar for one file; yields the function that is told how many bytes there are, and of how many if it is known."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _total: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console, refresh_per_second=4, transient=True) as progress:
        task = progress.add_task(terminal_text(label), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


# What a gate is doing right now, and how much of it is left; nothing where standard error is not a terminal.

Show = Callable[[str, str, int, int], None]
"""Told the stage, what of it is being done, and how many of how many things in it are done; 0 of 0 is not known."""


@contextlib.contextmanager
def stage_bar() -> Iterator[Show]:
    """A line for the stage that is being run; a new stage begins its own clock."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda *_: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[detail]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, refresh_per_second=4, transient=True) as progress:
        task = progress.add_task("gate", total=None, detail="")
        yield stage_by_stage(progress, task)


def stage_by_stage(progress: Progress, task: TaskID) -> Show:
    now = ""

    def show(stage: str, detail: str, done: int, of: int) -> None:
        nonlocal now
        if stage != now:
            progress.reset(task, total=of or None, description=terminal_text(stage))
            now = stage
        progress.update(task, completed=done, detail=terminal_text(detail))

    return show
