"""Progress of long work: a bar on a terminal, with the time left; in a log a line now and then."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from harness.common.console import say
from harness.common.units import BytesRead, bytes_text, count_text, duration_text

if TYPE_CHECKING:
    from rich.console import Console

FIRST_LINE_SECONDS = 10.0
"""A log has no line about shorter work; from then on one whenever the time has doubled."""
Advance = Callable[..., None]
"""Called with how much is done, and with the total where it becomes known late."""
Report = Callable[[int, int, str], None]
"""Called with how much is done, of how much, and the unit of both; a total of 0 means unknown."""
Show = Callable[[str, str, int, int], None]
"""Called with the stage, its detail, how many things in it are done, and of how many; 0 of 0 means unknown."""


class Display:
    """Shows one measurement after another, and how long those that are expected take, by others of the same label."""

    def __init__(self) -> None:
        self.expected: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {}
        self.done = 0
        self.logged = time.monotonic()

    def expect(self, labels: Iterable[str]) -> None:
        """Set which measurements are still to come; logs get a line about it now and then."""
        self.expected = Counter(labels)
        now = time.monotonic()
        if self.done and now - self.logged >= FIRST_LINE_SECONDS and not sys.stderr.isatty():
            self.logged = now
            say(f"{self.done} of {self.done + self.expected.total()} measured{self.left()}")

    def left(self) -> str:
        """The time that they take; nothing while some label of them has not been measured."""
        if not self.expected.total() or not self.expected.keys() <= self.seconds.keys():
            return ""
        seconds = sum(number * statistics.fmean(self.seconds[label]) for label, number in self.expected.items())
        return f", about {duration_text(seconds)} left"

    def passed(self, label: str, seconds: float = 0.0) -> None:
        self.seconds.setdefault(label, []).append(seconds)
        self.done += 1
        self.expected[label] = max(0, self.expected[label] - 1)

    @contextlib.contextmanager
    def showing(self, label: str, total: int, unit: str, size: int = 0) -> Iterator[Advance]:
        """A bar for one measurement, as `bar`."""
        started, of = time.monotonic(), self.done + max(1, self.expected.total())
        with bar(f"[{self.done + 1}/{of}{self.left()}] {label}", total, unit, size=size) as advance:
            yield advance
        self.passed(label, time.monotonic() - started)


@contextlib.contextmanager
def bar(label: str, total: int, unit: str, console: Console | None = None, *, size: int = 0) -> Iterator[Advance]:
    """A bar for one piece of work; yields the function to call with what is done. A total of 0 means unknown.

    Values of type `BytesRead` are bytes of a file of `size`, whatever the unit of the rest is.
    """
    drawn = sys.stderr.isatty() if console is None else console.is_terminal
    with _drawn(console, label, total) if drawn else contextlib.nullcontext(_logged(label)) as report:

        def advance(done: int, of: int | None = None) -> None:
            if isinstance(done, BytesRead):
                report(done, size, "bytes")
            else:
                report(done, of or total, unit)

        yield advance


@contextlib.contextmanager
def _drawn(console: Console | None, label: str, total: int) -> Iterator[Report]:
    """A bar on a terminal; it is gone when the work is over, because the table comes after it."""
    # Late: rich is slow to import, and a log needs none of it.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    name = TextColumn("{task.description}", markup=False)  # a file may be called [red]
    columns = (name, BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(stderr=True), refresh_per_second=4, transient=True) as progress:
        number = progress.add_task(label, total=total or None)
        yield lambda done, total, _: progress.update(number, completed=done, total=total or None)


def _logged(label: str) -> Report:
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
        # The first merges take longest by far, so nothing is estimated from a few.
        left = f", {duration_text(passed * (total - done) / done)} left" if 0 < total <= 4 * done else ""
        say(f"{label}: {text(done)}{of}{'' if unit == 'bytes' else f' {unit}'} after {duration_text(passed)}{left}")

    return report


def stage_lines() -> Show:
    """A function that prints what a gate is doing: a line for each stage, and now and then one with the time left."""
    started = began = logged = time.monotonic()
    current = ""

    def show(stage: str, detail: str, done: int, of: int) -> None:
        nonlocal current, began, logged
        now = time.monotonic()
        if stage != current:
            began = now
        left = f", about {duration_text((now - began) * (of - done) / done)} left" if done else ""
        position = f" ({done + 1} of {of}{left})" if of > 1 else ""
        if stage != current or now - logged >= FIRST_LINE_SECONDS:
            current, logged = stage, now
            say(f"[{now - started:4.0f} s] {stage}{f': {detail}' if detail else ''}{position}")

    return show
