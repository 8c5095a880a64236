"""The parser of every command: help as wide as the terminal, mistakes in one sentence."""

from __future__ import annotations

import argparse
import itertools
import re
import shutil
import textwrap
from collections.abc import Iterator
from typing import Any, NoReturn

from harness.common.escape import terminal_lines
from harness.common.printing import wrap
from harness.common.units import did_you_mean

MAX_COLUMNS = 80  # of help
CHOICE = re.compile(r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)


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
        meant = ""
        if unknown := re.search(r"unrecognized arguments: (\S+)", message):
            meant = did_you_mean(unknown[1], self._options())
        elif chosen := CHOICE.fullmatch(message):
            name, value, choices = chosen.groups()
            existing = choices.replace("'", "")
            message = f"unknown {name if name[0] == '-' else 'command'} {value!r}"
            meant = f"{did_you_mean(value, existing.split(', '))} there are: {existing};"
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
