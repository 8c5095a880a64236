"""Progress of long work: a bar on a terminal, with rate and time left; in a log a line now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from harness.common.console import say
from harness.common.units import BytesRead, bytes_text, count_text, duration_text, rate_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Task

FIRST_LINE_SECONDS = 10.0
"""A log has no line about shorter work; from then on one whenever the time has doubled."""
SHARE_FOR_AN_ESTIMATE = {"bytes": 0.02, "merges": 0.25}
"""How much must be done before the rest is estimated: bytes are alike, the first merges take longest by far."""
Advance = Callable[..., None]
"""Called with how much is done, and with the total where it becomes known late."""
Show = Callable[[str, str, int, int], None]
"""Called with the stage, its detail, how many things in it are done, and of how many; 0 of 0 means unknown."""


class Display:
    """Shows one measurement after another."""

    def __init__(self, total_cells: int) -> None:
        self.total_cells = total_cells
        self.cell = 0
        self.started = self.logged = time.monotonic()
        self.seconds_each: float | None = None

    def block_done(self) -> None:
        """Update the average time of a cell: after a block each has been measured equally often. Logs get a line."""
        now = time.monotonic()
        self.seconds_each = (now - self.started) / max(1, self.cell)
        if self.cell < self.total_cells and now - self.logged >= FIRST_LINE_SECONDS and not sys.stderr.isatty():
            self.logged = now
            say(f"{self.cell} of {self.total_cells} measured, about {self.left()} left")

    def left(self) -> str:
        """The time that the cells still take."""
        return duration_text((self.seconds_each or 0.0) * (self.total_cells - self.cell))

    def pass_over(self) -> None:
        """Count one cell, at most to the total."""
        self.cell = min(self.cell + 1, self.total_cells)

    @contextlib.contextmanager
    def showing(self, label: str, total: int, unit: str, size: int = 0) -> Iterator[Advance]:
        """A bar for one measurement, as `bar`."""
        left = "" if self.seconds_each is None else f", about {self.left()} left"
        self.pass_over()
        with bar(f"[{self.cell}/{self.total_cells}{left}] {label}", total, unit, size=size) as advance:
            yield advance


@contextlib.contextmanager
def bar(label: str, total: int, unit: str, console: Console | None = None, *, size: int = 0) -> Iterator[Advance]:
    """A bar for one piece of work; yields the function to call with what is done. A total of 0 means unknown.

    Values of type `BytesRead` are bytes of a file of `size`, whatever the unit of the rest is.
    """
    report: Callable[[int, int, str], None]
    with contextlib.ExitStack() as opened:
        if sys.stderr.isatty() if console is None else console.is_terminal:
            report = opened.enter_context(_drawn(console, label, total, unit))
        else:
            report = _logged(label)

        def advance(done: int, of: int | None = None) -> None:
            if isinstance(done, BytesRead):
                report(done, size, "bytes")
            else:
                report(done, of or total, unit)

        yield advance


@contextlib.contextmanager
def _drawn(console: Console | None, label: str, total: int, unit: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on a terminal; it is gone when the work is over, because the table comes after it."""
    # Late: rich is slow to import, and a log needs none of it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        """The speed of a task in its unit."""

        def render(self, task: Task) -> Text:
            if not task.speed:
                return Text("")
            unit = task.fields["unit"]
            return Text(f"{bytes_text(int(task.speed))}/s" if unit == "bytes" else f"{rate_text(task.speed)} {unit}/s")

    class TimeLeft(TimeRemainingColumn):
        """The time left, once enough is done to estimate it."""

        def render(self, task: Task) -> Text:
            share = SHARE_FOR_AN_ESTIMATE.get(task.fields["unit"], 0.0)
            if not task.total or task.completed < share * task.total:
                return Text("")
            return Text("ETA ").append_text(super().render(task))

    columns = (
        TextColumn("{task.description}", markup=False),  # a file may be called [red]
        BarColumn(),
        Rate(),
        TimeElapsedColumn(),
        TimeLeft(elapsed_when_finished=True),
    )
    shown = Progress(*columns, console=console or Console(stderr=True), refresh_per_second=4, transient=True)
    with shown as progress:
        number = progress.add_task(label, total=total or None, unit=unit)

        def report(done: int, total: int, unit: str) -> None:
            if progress.tasks[0].fields["unit"] != unit:  # the file has been read, now it is merged
                progress.reset(number, total=total or None, unit=unit)
            progress.update(number, completed=done, total=total or None)

        yield report


def _logged(label: str) -> Callable[[int, int, str], None]:
    """A function that prints a line after ten seconds, after twenty, after forty."""
    started = time.monotonic()
    due = FIRST_LINE_SECONDS

    def report(done: int, total: int, unit: str) -> None:
        nonlocal due
        passed = time.monotonic() - started
        if passed < due:
            return
        while due <= passed:
            due *= 2
        text = bytes_text if unit == "bytes" else count_text
        of = f" of {text(total)}" if total else ""
        can_estimate = total and done >= max(1, SHARE_FOR_AN_ESTIMATE.get(unit, 0.0) * total)
        left = f", {duration_text(passed * (total - done) / done)} left" if can_estimate else ""
        say(f"{label}: {text(done)}{of}{'' if unit == 'bytes' else f' {unit}'} after {duration_text(passed)}{left}")

    return report


@contextlib.contextmanager
def stage_bar() -> Iterator[Show]:
    """What a gate is doing right now: a line that changes on a terminal, in a log a line now and then."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    started = logged = time.monotonic()
    current = ""
    with console.status("") if console.is_terminal else contextlib.nullcontext() as status:

        def show(stage: str, detail: str, done: int, of: int) -> None:
            nonlocal current, logged
            now = time.monotonic()
            position = f" ({done + 1} of {of})" if of > 1 and " of " not in detail else ""
            text = f"[{now - started:4.0f} s] {stage}{f': {detail}' if detail else ''}{position}"
            if status is not None:
                status.update(Text(text))
            elif stage != current or now - logged >= FIRST_LINE_SECONDS:
                current, logged = stage, now
                say(text)

        yield show
