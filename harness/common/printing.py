"""Text for a reader: escaped for each medium (terminal, Markdown, HTML, CSV), and lines on standard
output and standard error, broken between words where a terminal shows them.

Names, messages and parameters come from anyone's files and records. In every medium, control
characters (C0 and C1), marks of direction, lone surrogates and the commands of hosted build logs
are escaped: `::name::`, `##[name]`.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import textwrap
from html import escape
from typing import TYPE_CHECKING, TextIO

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


# Lines

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
