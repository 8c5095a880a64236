"""How far a download is: a bar with rate and time left on a terminal, nothing in a log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


@contextlib.contextmanager
def showing(label: str) -> Iterator[Callable[[int, int | None], None]]:
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
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
