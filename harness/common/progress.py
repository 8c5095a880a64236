"""The progress of long work: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from harness.common.printing import print_stderr
from harness.common.units import BytesRead, bytes_text, count_text, seconds_text

FIRST_LINE_SECONDS = 10.0
"""A log has no line about shorter work; from then on one whenever the time has doubled."""
# called with how much is done, and with the total where it becomes known late
Advance = Callable[..., None]
Report = Callable[[int, int, str], None]
"""Called with how much is done, of how much, and the unit of both; a total of 0 means unknown."""


def draws_bars() -> bool:
    """Return whether standard error is a terminal that can redraw a line; Emacs and some CI
    cannot.
    """
    return sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def progress_text(done: str, total: str, elapsed: float, left: float | None) -> str:
    """The line about progress that every command shows.

    >>> progress_text("12", "24", 4.2, 33.0), progress_text("3 merges", "", 3725.0, None)
    ('12 of 24, 4 s elapsed, 33 s left', '3 merges, 62 min elapsed')
    """
    text = f"{done} of {total}" if total else done
    text += f", {_whole(elapsed)} elapsed"
    return text if left is None else f"{text}, {_whole(left)} left"


def _whole(seconds: float) -> str:
    return seconds_text(round(seconds), "{:.0f}".format)


def work_text(done: int, total: int, unit: str, elapsed: float) -> str:
    """The same about one piece of work, whose time left follows from what is done.

    >>> work_text(300, 1000, "merges", 25.0), work_text(20, 1000, "merges", 12.0)
    ('300 of 1,000 merges, 25 s elapsed, 58 s left', '20 of 1,000 merges, 12 s elapsed')
    """
    text = bytes_text if unit == "bytes" else count_text
    noun = "" if unit == "bytes" else f" {unit}"
    whole = f"{text(total)}{noun}" if total else ""
    left = seconds_left(done, total, elapsed)
    return progress_text(text(done) + ("" if whole else noun), whole, elapsed, left)


def seconds_left(done: int, total: int, elapsed: float) -> float | None:
    """The first merges take longest by far, so there is no time left before a quarter is done."""
    return elapsed * (total - done) / done if 0 < total <= 4 * done else None


class Display:
    """Shows one measurement after another, and how long those that are expected take, by others of
    the same label.
    """

    def __init__(self) -> None:
        self.expected: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {}
        self.done = 0
        self.started = self.logged = time.monotonic()

    def expect(self, labels: Iterable[str]) -> None:
        """Set which measurements are still to come; logs get a line about it now and then."""
        self.expected = Counter(labels)
        now = time.monotonic()
        if self.done and now - self.logged >= FIRST_LINE_SECONDS and not draws_bars():
            self.logged = now
            print_stderr(self.text())

    def text(self) -> str:
        """How many were measured, since when, and the time that the others take."""
        total = count_text(self.done + self.expected.total())
        elapsed = time.monotonic() - self.started
        return progress_text(count_text(self.done), total, elapsed, self.left())

    def left(self) -> float | None:
        """The seconds that they take; None while some label of them has not been measured."""
        if not self.expected.total() or not self.expected.keys() <= self.seconds.keys():
            return None
        left = 0.0
        for label, number in self.expected.items():
            spent = self.seconds[label]
            left += number * sum(spent) / len(spent)
        return left

    def passed(self, label: str, seconds: float = 0.0) -> None:
        self.seconds.setdefault(label, []).append(seconds)
        self.done += 1
        self.expected[label] = max(0, self.expected[label] - 1)

    @contextlib.contextmanager
    def showing(self, label: str, total: int, unit: str, size: int = 0) -> Iterator[Advance]:
        """A bar for one measurement, as `bar`, with the progress of all."""
        started = time.monotonic()
        with bar(label, total, unit, size, self.text) as advance:
            yield advance
        self.passed(label, time.monotonic() - started)


@contextlib.contextmanager
def bar(
    label: str, total: int, unit: str, size: int = 0, beside: Callable[[], str] | None = None
) -> Iterator[Advance]:
    """A bar for one piece of work; yields the function to call with what is done. A total of 0
    means unknown.

    Values of type `BytesRead` are bytes of a file of `size`, whatever the unit of the rest is. On a
    terminal the text `beside` the bar is that of the work, unless another is passed; the time left of
    the work then stands behind it.
    """
    with (
        _drawn(label, beside) if draws_bars() else contextlib.nullcontext(_logged(label)) as report
    ):

        def advance(done: int, of: int | None = None) -> None:
            if isinstance(done, BytesRead):
                report(done, size, "bytes")
            else:
                report(done, of or total, unit)

        yield advance


@contextlib.contextmanager
def _drawn(label: str, beside: Callable[[], str] | None) -> Iterator[Report]:
    """A bar on a terminal; it is gone when the work is over, because the table comes after it."""
    # Late: rich is slow to import, and a log needs none of it.
    from rich import progress
    from rich.console import Console
    from rich.text import Text

    unit = ""

    class Beside(progress.ProgressColumn):
        max_refresh = 0.25

        def render(self, task: progress.Task) -> Text:
            done, total = int(task.completed), int(task.total or 0)
            elapsed = task.elapsed or 0.0
            if beside is None:
                return Text(work_text(done, total, unit, elapsed))

            left = seconds_left(done, total, elapsed)
            return Text(beside() + ("" if left is None else f", {_whole(left)} for this one"))

    name = progress.TextColumn("{task.description}", markup=False)  # a file may be called [red]
    columns = name, progress.BarColumn(20), progress.TaskProgressColumn(), Beside()
    with progress.Progress(
        *columns, console=Console(stderr=True), refresh_per_second=4, transient=True
    ) as shown:
        number = shown.add_task(label, total=None)

        def report(done: int, total: int, unit_done: str) -> None:
            nonlocal unit
            unit = unit_done
            shown.update(number, completed=done, total=total or None)

        yield report


def _logged(label: str) -> Report:
    """A function that prints a line after ten seconds, and whenever the time has doubled."""
    started, due = time.monotonic(), FIRST_LINE_SECONDS

    def report(done: int, total: int, unit: str) -> None:
        nonlocal due
        elapsed = time.monotonic() - started
        if elapsed >= due:
            due = 2 * elapsed
            print_stderr(f"{label}: {work_text(done, total, unit, elapsed)}")

    return report
