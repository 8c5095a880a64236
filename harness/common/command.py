"""A command: its parser, with help as wide as the terminal and mistakes in one sentence; and how it
ends, with an exit code and at most one line, after a refusal, an interruption or a full disk too.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

from harness.common.errors import INTERRUPTED, UNMEASURED, Refusal
from harness.common.printing import print_stderr, terminal_lines, wrap
from harness.common.units import did_you_mean
from harness.common.values import unknown_text

MAX_COLUMNS = 80  # of help
STAYS = " |python -m"  # how a line starts that is not prose
PROSE = re.compile(rf"^((?!{STAYS}).+)\n(?!{STAYS}|$)", re.MULTILINE)
"""A line of prose before another one."""
CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)


class Paragraphs(argparse.HelpFormatter):
    """Joins the lines of prose and wraps all to the width of the terminal, 80 columns at most;
    lines that are indented or commands stay lines.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(shutil.get_terminal_size().columns, MAX_COLUMNS))

    def format_help(self) -> str:
        return wrap(super().format_help(), self._width)

    def _fill_text(self, text: str, *_: Any) -> str:
        return PROSE.sub(r"\1 ", text)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with its arguments escaped."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(formatter_class=Paragraphs, **keywords)

    def error(self, message: str) -> NoReturn:
        """End with 2, the mistake and what may have been meant."""
        meant = ""
        if unknown := re.search(r"unrecognized arguments: (\S+)", message):
            meant = did_you_mean(unknown[1], self._options())
        elif chosen := CHOICE.fullmatch(message):
            name, value, choices = chosen.groups()
            kind = name if name[0] == "-" else "command"
            message = unknown_text(kind, value, choices.replace("'", "").split(", "))
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


# How it ends


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WHOLE = "every file that it has written is whole"
RECORDED = "what was measured before is recorded, run the same command again for the rest"
end_signals: list[int] = []


def exit_code_of(do: Callable[[], int], kept: str = WHOLE) -> int:
    """Run a command and return its exit code; a refusal or an interruption prints one line.

    `kept` is what an interruption does not lose.
    """
    open_closed_streams()
    if os.environ.get("COLUMNS") == "0":  # unknown, which rich takes for the width of a table
        del os.environ["COLUMNS"]
    for number in ENDING:
        # as under nohup, and for a shell's background jobs
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or exit codes of children may be lost
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = patient(sys.stdout)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an unprintable name must not end a command

    return answered(do, kept)


def open_closed_streams() -> None:
    """Open the null device in place of standard streams that are closed (`2>&-`): the next file
    that is opened would take their number, and get what is printed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode)  # noqa: PTH123, SIM115 - as long as this process lives
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


class PatientOutput(io.FileIO):
    """Standard output whose reader may leave early (`| head`): the command goes on to its verdict
    and its files, and its exit code says what it decided.
    """

    is_lost = False

    def write(self, content: Any) -> int:
        """Write, or drop what nobody reads. Raises the first other OSError, such as a full disk."""
        try:
            if not self.is_lost:
                return super().write(content)
        except OSError as error:
            self.is_lost = True
            if not isinstance(error, BrokenPipeError):
                raise
        return memoryview(content).nbytes


def patient(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    output = io.BufferedWriter(PatientOutput(stream.fileno(), "w", closefd=False))
    return io.TextIOWrapper(output, stream.encoding, line_buffering=stream.isatty())


def answered(do: Callable[[], int], kept: str = WHOLE) -> int:
    try:
        try:
            code = do()
            sys.stdout.flush()
            return code
        except BaseException:
            if end_signals:  # whatever a library turned it into
                raise KeyboardInterrupt from None
            raise

    except Refusal as refusal:
        print_stderr(f"{refusal}")
        return refusal.exit_code
    except KeyboardInterrupt:
        print_stderr(f"interrupted; {kept}")
        return INTERRUPTED
    except OSError as error:
        print_stderr(f"cannot go on ({error}); {kept}")
        return UNMEASURED


def interrupt(number: int, _: FrameType | None) -> None:
    """Treat any request to end as an interruption; later ones must not interrupt the cleanup."""
    end_signals.append(number)
    for ending in ENDING:
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt
