"""What commands print: sentences on standard error, text on standard output, and what their parsers say.

Names, messages and exceptions in it may come from anyone, so all of it goes through what a terminal and a log obey not.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from harness.common.media import terminal_lines, terminal_text


def say(sentence: object) -> None:
    """One line for who watches."""
    with contextlib.suppress(OSError):  # nobody listens
        print(terminal_text(str(sentence)), file=sys.stderr)  # noqa: T201


def tell(text: str) -> None:
    """Lines for who asked."""
    print(terminal_lines(text), flush=True)  # noqa: T201


class Paragraphs(argparse.HelpFormatter):
    """Prose is broken as wide as the terminal is; lines that are indented or commands stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts = itertools.groupby(text.splitlines(), key=lambda line: not line or line.startswith((" ", "python -m")))
        kept = (lines if stays else textwrap.wrap(" ".join(lines), width) for stays, lines in parts)
        return "\n".join(f"{indent}{line}" for lines in kept for line in lines)


class Parser(argparse.ArgumentParser):
    """A parser whose errors repeat what was said, but not for a terminal or a log to obey; it knows `--version`."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **{"formatter_class": Paragraphs} | keywords)
        self.add_argument("--version", action=Version, help=argparse.SUPPRESS)

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(terminal_lines(message), file)


class Version(argparse.Action):
    """Prints the version, which takes longer to look up than many a command has."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        import importlib.metadata

        tell(f"bpe-harness {importlib.metadata.version('bpe-harness')}")
        parser.exit()
