"""Escaping for each medium (terminal, Markdown, HTML, CSV), printing, and the progress of long
work.

Names, messages and parameters come from anyone's files and records. In every medium, control
characters (C0 and C1), marks of direction, lone surrogates and the commands of hosted build logs
are escaped: `::name::`, `##[name]`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
import statistics
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, NoReturn

from harness.common.units import BytesRead, bytes_text, count_text, did_you_mean, duration_text

if TYPE_CHECKING:
    import pandas as pd

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_COMMAND = re.compile(r"(?<!\S):(?=:)|#(?=#\[)")
_LINE_ENDS = str.maketrans(dict.fromkeys("\n\r\t\v\f", " "))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def terminal_text(text: str) -> str:
    r"""Text that a terminal shows and does not obey, on one line.

    >>> print(terminal_text("a\x1b[2Jb\u202ec\nd"))
    a\x1b[2Jb\u202ec d
    """
    return _escaped(text.translate(_LINE_ENDS))


def terminal_lines(text: str) -> str:
    r"""The same for text of several lines, which stay lines.

    >>> print(terminal_lines("a\x1b[2J\n  ::stop-commands::b"))
    a\x1b[2J
      \x3a:stop-commands::b
    """
    return "\n".join(map(_escaped, text.split("\n")))


def markdown_text(text: str) -> str:
    r"""Text that Markdown shows unchanged: without emphasis, ends of cells, HTML or mentions of
    people.

    >>> print(markdown_text("seg_status @merge 1:\n'|'+'*'"))
    seg_status &#64;merge 1: '\|'+'\*'
    """
    plain = (
        terminal_text(text)
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace("~", "&#126;")
        .replace("@", "&#64;")
    )
    return re.sub(r"[\\|*`>\[\]]|(?<!\w)_|_(?!\w)", r"\\\g<0>", plain)


def html_text(text: str) -> str:
    """Text between the tags of a page, or in quotes within one."""
    return escape(terminal_text(text))


def html_texts(texts: Iterable[str]) -> list[str]:
    return list(map(html_text, texts))


def csv_text(text: str) -> str:
    r"""Text in a cell of CSV that no spreadsheet takes for a formula; lines stay lines.

    >>> csv_text("=1+1"), csv_text("-"), csv_text("heap"), csv_text("a\nb\x1b")
    ("'=1+1", "'-", 'heap', 'a\nb\\x1b')
    """
    return terminal_lines(f"'{text}" if text.startswith(_FORMULA) else text)


def frame_to_csv(frame: pd.DataFrame) -> str:
    """A data frame as CSV without its index, headings and texts as `csv_text`."""
    harmless = frame.rename(columns=csv_text)
    texts = harmless.select_dtypes(["string", "object"]).map(csv_text, "ignore")
    harmless[texts.columns] = texts
    return str(harmless.to_csv(index=False, lineterminator="\n"))


def well_formed(text: str) -> str:
    """Text that is UTF-8: half of a character, as in the name of a file in another encoding,
    becomes an escape.
    """
    return text.encode(errors="backslashreplace").decode()


def _escaped(text: str) -> str:
    escaped = _OBEYED.sub(lambda match: ascii(match[0])[1:-1], text)
    return _COMMAND.sub(lambda match: f"\\x{ord(match[0]):02x}", escaped)


# Printing


def print_stderr(sentence: object) -> None:
    """Print one line to standard error."""
    with contextlib.suppress(OSError):  # nobody reads it
        print(terminal_text(str(sentence)), file=sys.stderr)  # noqa: T201


def print_stdout(text: str) -> None:
    """Print lines to standard output."""
    print(terminal_lines(text), flush=True)  # noqa: T201


class Paragraphs(argparse.HelpFormatter):
    """Wraps prose to the width of the terminal; lines that are indented or commands stay as they
    are.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = itertools.groupby(
            text.splitlines(), key=lambda line: not line or line.startswith((" ", "python -m"))
        )
        wrapped = (
            lines if stays else textwrap.wrap(" ".join(lines), width) for stays, lines in parts
        )
        return "\n".join(f"{indent}{line}" for lines in wrapped for line in lines)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with its arguments escaped."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **{"formatter_class": Paragraphs} | keywords)

    def error(self, message: str) -> NoReturn:
        """End with 2, the mistake and what may have been meant."""
        options = [option for action in self._actions for option in action.option_strings]
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        meant = did_you_mean(unknown[1], options) if unknown else ""
        self.exit(2, f"{message};{meant} see {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(terminal_lines(message), file)


# Progress: on a terminal a bar with the time left, in a log a line now and then

FIRST_LINE_SECONDS = 10.0
"""A log has no line about shorter work; from then on one whenever the time has doubled."""
# called with how much is done, and with the total where it becomes known late
Advance = Callable[..., None]
Report = Callable[[int, int, str], None]
"""Called with how much is done, of how much, and the unit of both; a total of 0 means unknown."""


class Display:
    """Shows one measurement after another, and how long those that are expected take, by others of
    the same label.
    """

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
            print_stderr(
                f"{self.done} of {self.done + self.expected.total()} measured{self.left()}"
            )

    def left(self) -> str:
        """The time that they take; nothing while some label of them has not been measured."""
        if not self.expected.total() or not self.expected.keys() <= self.seconds.keys():
            return ""
        seconds = sum(
            number * statistics.fmean(self.seconds[label])
            for label, number in self.expected.items()
        )
        return f", about {duration_text(seconds)} left"

    def passed(self, label: str, seconds: float = 0.0) -> None:
        self.seconds.setdefault(label, []).append(seconds)
        self.done += 1
        self.expected[label] = max(0, self.expected[label] - 1)

    @contextlib.contextmanager
    def showing(self, label: str, total: int, unit: str, size: int = 0) -> Iterator[Advance]:
        """A bar for one measurement, as `bar`."""
        started, of = time.monotonic(), self.done + max(1, self.expected.total())
        with bar(f"[{self.done + 1}/{of}{self.left()}] {label}", total, unit, size) as advance:
            yield advance
        self.passed(label, time.monotonic() - started)


@contextlib.contextmanager
def bar(label: str, total: int, unit: str, size: int = 0) -> Iterator[Advance]:
    """A bar for one piece of work; yields the function to call with what is done. A total of 0
    means unknown.

    Values of type `BytesRead` are bytes of a file of `size`, whatever the unit of the rest is.
    """
    with (
        _drawn(label, unit)
        if sys.stderr.isatty()
        else contextlib.nullcontext(_logged(label)) as report
    ):

        def advance(done: int, of: int | None = None) -> None:
            if isinstance(done, BytesRead):
                report(done, size, "bytes")
            else:
                report(done, of or total, unit)

        yield advance


@contextlib.contextmanager
def _drawn(label: str, unit: str) -> Iterator[Report]:
    """A bar on a terminal; it is gone when the work is over, because the table comes after it."""
    # Late: rich is slow to import, and a log needs none of it.
    from rich import progress
    from rich.console import Console

    name = progress.TextColumn("{task.description}", markup=False)  # a file may be called [red]
    times = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    speed = [progress.TransferSpeedColumn()] if unit == "bytes" else []
    columns = name, progress.BarColumn(), progress.TaskProgressColumn(), *speed, *times
    with progress.Progress(
        *columns, console=Console(stderr=True), refresh_per_second=4, transient=True
    ) as shown:
        number = shown.add_task(label, total=None)
        yield lambda done, total, _: shown.update(number, completed=done, total=total or None)


def _logged(label: str) -> Report:
    """A function that prints a line after ten seconds, and whenever the time has doubled."""
    started, due = time.monotonic(), FIRST_LINE_SECONDS

    def report(done: int, total: int, unit: str) -> None:
        nonlocal due
        passed = time.monotonic() - started
        if passed < due:
            return
        due = 2 * passed
        text, unit = (bytes_text, "") if unit == "bytes" else (count_text, f" {unit}")
        of = f" of {text(total)}" if total else ""
        # The first merges take longest by far, so nothing is estimated from a few.
        left = (
            f", {duration_text(passed * (total - done) / done)} left"
            if 0 < total <= 4 * done
            else ""
        )
        speed = f", {bytes_text(int(done / passed))}/s" if not unit else ""
        print_stderr(f"{label}: {text(done)}{of}{unit} after {duration_text(passed)}{speed}{left}")

    return report
