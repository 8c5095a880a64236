"""Lines on standard output and standard error, broken between words where a terminal shows them."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import textwrap
from typing import TextIO

from harness.common.escape import terminal_lines, terminal_text

_TWO_COLUMNS = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")


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
