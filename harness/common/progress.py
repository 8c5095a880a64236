"""The progress of long work: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from harness.common.printing import print_stderr
from harness.common.units import BytesRead, bytes_text, count_text, seconds_text

FIRST_LINE_SECONDS = 10.0
"""A log has no line about shorter work; from then on one whenever the time has doubled."""
Advance = Callable[[int], None]
"""Called with how much is done."""
Report = Callable[[int, int, str], None]
"""Called with how much is done, of how much, and the unit of both; a total of 0 means unknown."""


def draws_bars() -> bool:
    """Return whether standard error is a terminal that can redraw a line; Emacs and some CI
    cannot.
    """
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def amount_text(done: int, total: int, unit: str) -> str:
    """
    >>> amount_text(300, 1000, "merges"), amount_text(3, 0, "merges"), amount_text(9, 1200, "bytes")
    ('300 of 1,000 merges', '3 merges', '9 B of 1.20 kB')
    """
    text = bytes_text if unit == "bytes" else count_text
    noun = "" if unit == "bytes" else f" {unit}"
    return f"{text(done)} of {text(total)}{noun}" if total else f"{text(done)}{noun}"


class Display:
    """Shows one measurement after another, and in a log now and then how many are done."""

    def __init__(self) -> None:
        self.done = self.due = 0
        self.report = _logged("run")
        self.drawing = threading.Lock()

    def expect(self, number: int) -> None:
        """Set how many measurements are still to come."""
        self.due = number
        if self.done and not draws_bars():
            self.report(self.done, self.done + number, "measurements")

    def passed(self) -> None:
        """Count a measurement as done."""
        self.done += 1
        self.due -= 1

    @contextlib.contextmanager
    def showing(self, label: str, total: int, unit: str, size: int = 0) -> Iterator[Advance]:
        """A bar for one measurement, as `bar`, with its number; of measurements beside each other
        the first has it.
        """
        number = f"{self.done + 1} of {self.done + max(1, self.due)}: " if draws_bars() else ""
        with contextlib.ExitStack() as shown:
            advance: Advance = lambda _: None  # noqa: E731
            if self.drawing.acquire(blocking=False):
                shown.callback(self.drawing.release)
                advance = shown.enter_context(bar(number + label, total, unit, size))
            yield advance
        self.passed()


@contextlib.contextmanager
def bar(label: str, total: int, unit: str, size: int = 0) -> Iterator[Advance]:
    """A bar for one piece of work; yields the function to call with what is done. A total of 0
    means unknown.

    Values of type `BytesRead` are bytes of a file of `size`, whatever the unit of the rest is.
    """
    with _drawn(label) if draws_bars() else contextlib.nullcontext(_logged(label)) as report:

        def advance(done: int) -> None:
            if isinstance(done, BytesRead):
                report(done, size, "bytes")
            else:
                report(done, total, unit)

        yield advance


@contextlib.contextmanager
def _drawn(label: str) -> Iterator[Report]:
    """A bar on a terminal; it is gone when the work is over, because the table comes after it."""
    # Late: rich is slow to import, and a log needs none of it.
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", markup=False),  # a file may be called [red]
        progress.BarColumn(20),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[amount]}"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with progress.Progress(*columns, console=console, transient=True) as shown:
        number = shown.add_task(label, total=None, amount="")

        def report(done: int, total: int, unit: str) -> None:
            amount = amount_text(done, total, unit)
            shown.update(number, completed=done, total=total or None, amount=amount)

        yield report


def _logged(label: str) -> Report:
    """A function that prints a line after ten seconds, and whenever the time has doubled. There is
    no time left before a quarter is done: the first merges take longest by far.
    """
    started, due = time.monotonic(), FIRST_LINE_SECONDS

    def report(done: int, total: int, unit: str) -> None:
        nonlocal due
        elapsed = time.monotonic() - started
        if elapsed < due:
            return

        due = 2 * elapsed
        line = f"{label}: {amount_text(done, total, unit)}, {_whole(elapsed)} elapsed"
        if 0 < total <= 4 * done:
            line += f", {_whole(elapsed * (total - done) / done)} left"
        print_stderr(line)

    return report


def _whole(seconds: float) -> str:
    return seconds_text(seconds, "{:.0f}".format)
