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
import shutil
import statistics
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from harness.common.units import BytesRead, bytes_text, clock_text, count_text, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_COMMAND = re.compile(r"(?<!\S):(?=:)|#(?=#\[)")
_TWO_COLUMNS = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")
_LINE_ENDS = str.maketrans(dict.fromkeys("\n\r\t\v\f", " "))
MAX_COLUMNS = 80  # of help
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
    """Print one line to standard error; a terminal breaks it between words."""
    with contextlib.suppress(OSError):  # nobody reads it
        print(_fitted(terminal_text(str(sentence)), sys.stderr), file=sys.stderr)  # noqa: T201


def print_stdout(text: str) -> None:
    """Print lines to standard output; a terminal breaks them between words."""
    print(_fitted(terminal_lines(text), sys.stdout), flush=True)  # noqa: T201


def _fitted(text: str, stream: TextIO) -> str:
    """The lines as wide as the terminal at most; a file or a pipe gets them whole."""
    if not stream.isatty():
        return text
    return wrap(text, shutil.get_terminal_size().columns)


def wrap(text: str, width: int) -> str:
    """The lines in parts of this width, broken between words; later parts start below the text of
    their line, which in a line of two columns is the second.

    >>> print(wrap("  naive: 3 of 4 ties\\n  dots   a dot for each", 16))
      naive: 3 of 4
      ties
      dots   a dot
            for each
    """
    parts: list[str] = []
    for line in text.split("\n"):
        columns = _TWO_COLUMNS.match(line)
        start = columns.end() if columns else len(line) - len(line.lstrip())
        parts += textwrap.wrap(
            line,
            width,
            subsequent_indent=" " * min(start, width // 2),
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(parts)


class Paragraphs(argparse.HelpFormatter):
    """Joins the lines of prose and wraps all to the width of the terminal, 80 columns at most;
    lines that are indented or commands stay lines.
    """

    def __init__(self, prog: str) -> None:
        self._columns = min(shutil.get_terminal_size().columns, MAX_COLUMNS)
        super().__init__(prog, width=self._columns)

    def format_help(self) -> str:
        return wrap(super().format_help(), self._columns)

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
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        meant = did_you_mean(unknown[1], self._options()) if unknown else ""
        self.exit(2, f"{message};{meant} see {self.prog} --help\n")

    def _options(self) -> Iterator[str]:
        """Its options and those of its subcommands."""
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    yield from parser._options()

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(terminal_lines(message), file)


# Progress: on a terminal a bar, in a log a line now and then

FIRST_LINE_SECONDS = 10.0
"""A log has no line about shorter work; from then on one whenever the time has doubled."""
# called with how much is done, and with the total where it becomes known late
Advance = Callable[..., None]
Report = Callable[[int, int, str], None]
"""Called with how much is done, of how much, and the unit of both; a total of 0 means unknown."""


def progress_text(done: str, total: str, elapsed: float, left: float | None) -> str:
    """The line about progress that every command shows.

    >>> progress_text("12", "24", 4.2, 33.0), progress_text("3 merges", "", 3725.0, None)
    ('12 of 24, 0:04 elapsed, 0:33 left', '3 merges, 1:02:05 elapsed')
    """
    text = f"{done} of {total}" if total else done
    text += f", {clock_text(elapsed)} elapsed"
    return text if left is None else f"{text}, {clock_text(left)} left"


def work_text(done: int, total: int, unit: str, elapsed: float) -> str:
    """The same about one piece of work, whose time left follows from what is done.

    >>> work_text(300, 1000, "merges", 25.0), work_text(20, 1000, "merges", 12.0)
    ('300 of 1,000 merges, 0:25 elapsed, 0:58 left', '20 of 1,000 merges, 0:12 elapsed')
    """
    text = bytes_text if unit == "bytes" else count_text
    noun = "" if unit == "bytes" else f" {unit}"
    whole = f"{text(total)}{noun}" if total else ""
    left = seconds_left(done, total, elapsed)
    return progress_text(text(done) + ("" if whole else noun), whole, elapsed, left)


def seconds_left(done: int, total: int, elapsed: float) -> float | None:
    """The first merges take longest by far, so nothing is estimated from less than a quarter."""
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
        if self.done and now - self.logged >= FIRST_LINE_SECONDS and not sys.stderr.isatty():
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
            left += number * statistics.fmean(self.seconds[label])
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
        _drawn(label, beside)
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
            return Text(beside() + ("" if left is None else f", {clock_text(left)} for this one"))

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
