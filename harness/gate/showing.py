"""What a gate is doing right now, and how much of it is left; nothing where standard error is not a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Show = Callable[[str, str, int, int], None]
"""Told the stage, what of it is being done, and how many of how many things in it are done; 0 of 0 is not known."""


@contextlib.contextmanager
def showing() -> Iterator[Show]:
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
            progress.reset(task, total=of or None, description=stage)
            now = stage
        progress.update(task, completed=done, detail=detail)

    return show
