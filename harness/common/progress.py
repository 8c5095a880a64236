"""How far a piece of work is: a bar on a terminal, with rate and time left; in a log a line now and then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from harness.common.console import say
from harness.common.units import BytesRead, bytes_text, count_text, duration_text, rate_text

FIRST_LINE_SECONDS = 10.0
"""What takes no longer is not told in a log; from then on a line comes whenever the time has doubled."""
SHARE_THAT_TELLS = {"bytes": 0.02, "merges": 0.25}
"""How much must be done before the rest can be foretold: bytes are alike, the first merges the dearest by far."""


class Display:
    """Shows one measurement after another."""

    def __init__(self, total_cells: int) -> None:
        self.console = Console(stderr=True)
        self.total_cells = total_cells
        self.cell = 0
        self.began = time.monotonic()
        self.seconds_each: float | None = None

    def block_done(self) -> None:
        """Every cell has been measured equally often: now the average says what is left."""
        self.seconds_each = (time.monotonic() - self.began) / max(1, self.cell)

    def pass_over(self) -> None:
        """One cell more, of those there are."""
        self.cell = min(self.cell + 1, self.total_cells)

    @contextlib.contextmanager
    def showing(self, label: str, total: int, unit: str, size: int = 0) -> Iterator[Callable[[int], None]]:
        """A bar for one measurement; yields the function that is told how much is done.

        `size` is that of the file, for a trainer that reads it before it merges.
        """
        self.pass_over()
        waiting = self.total_cells - self.cell + 1
        left = "" if self.seconds_each is None else f", all of it {duration_text(self.seconds_each * waiting)} more"
        numbered = f"[{self.cell}/{self.total_cells}{left}] {label}"
        with bar(numbered, total, unit, self.console, size=size) as on_progress:
            yield on_progress


@contextlib.contextmanager
def bar(
    label: str, total: int, unit: str, console: Console | None = None, *, size: int = 0
) -> Iterator[Callable[[int], None]]:
    """A bar for one piece of work; yields the function that is told how much is done. A total of 0 is not known.

    What it is told as `BytesRead` are bytes of a file of `size`, whatever the unit of the rest is.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield told_in_a_log(label, total, unit, size)
        return
    rate = TextColumn("{task.fields[rate]}", markup=False)
    with _on_a_terminal(label, (BarColumn(), rate), console, total=total or None, rate="", unit=unit) as shown:
        yield lambda done: update(*shown, done, total, unit, size) if shown else None


def update(progress: Progress, task: TaskID, done: int, total: int, unit: str, size: int) -> None:
    if isinstance(done, BytesRead):
        total, unit = size, "bytes"
    if progress.tasks[0].fields["unit"] != unit:  # it has read its file, and begins to merge
        progress.reset(task, total=total or None, unit=unit, rate="")  # all fields: it forgets the others
    speed = progress.tasks[0].speed
    rate = "" if not speed else f"{bytes_text(int(speed))}/s" if unit == "bytes" else f"{rate_text(speed)} {unit}/s"
    progress.update(task, completed=done, total=total or None, rate=rate)


def told_in_a_log(label: str, total: int, unit: str, size: int = 0) -> Callable[[int], None]:
    """The function that is told how much is done, and says so after ten seconds, after twenty, after forty."""
    began = time.monotonic()
    due = FIRST_LINE_SECONDS

    def on_progress(done: int) -> None:
        nonlocal due
        passed = time.monotonic() - began
        if passed < due:
            return
        while due <= passed:
            due *= 2
        read = isinstance(done, BytesRead)
        whole, what = (size, "bytes") if read else (total, unit)
        text = bytes_text if what == "bytes" else count_text
        of = f" of {text(whole)}" if whole else ""
        say(f"{label}: {text(done)}{of}{'' if what == 'bytes' else f' {what}'} after {duration_text(passed)}")

    return on_progress


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
        yield stage_by_stage(*shown) if shown else stages_in_a_log()


def stage_by_stage(progress: Progress, task: TaskID) -> Show:
    now = ""

    def show(stage: str, detail: str, done: int, of: int) -> None:
        nonlocal now
        if stage != now:
            progress.reset(task, total=of or None, description=stage)
            now = stage
        progress.update(task, completed=done, detail=detail)

    return show


def stages_in_a_log() -> Show:
    """A line where a stage begins, and in a long one a line now and then."""
    began = time.monotonic()
    now, due = "", 0.0

    def show(stage: str, detail: str, done: int, of: int) -> None:
        nonlocal now, due
        passed = time.monotonic() - began
        if stage == now and passed < due:
            return
        now, due = stage, passed + FIRST_LINE_SECONDS
        much = f" ({done + 1} of {of})" if of > 1 and " of " not in detail else ""
        say(f"[{passed:4.0f} s] {stage}{f': {detail}' if detail else ''}{much}")

    return show


class TimeLeft(TimeRemainingColumn):
    """The time left, from when it can be told."""

    def render(self, task: Task) -> Text:
        share = SHARE_THAT_TELLS.get(task.fields.get("unit", ""), 0.0)
        if not task.total or task.completed < share * task.total:
            return Text("")
        return Text("ETA ").append_text(super().render(task))


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
    times = TimeElapsedColumn(), TimeLeft(elapsed_when_finished=True)
    # Few pictures a second, and the bar is gone when the work is over: the table comes after it.
    with Progress(described, *columns, *times, console=console, refresh_per_second=4, transient=True) as progress:
        yield progress, progress.add_task(label, **task)
