"""What commands print: sentences on standard error, text on standard output, and what their parsers say.

Names, messages and exceptions in it may come from anyone, so all of it goes through what a terminal and a log obey not.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any

from harness.common.media import terminal_lines, terminal_text


def say(sentence: object) -> None:
    """One line for who watches."""
    with contextlib.suppress(OSError):  # nobody listens
        print(terminal_text(str(sentence)), file=sys.stderr)  # noqa: T201


def tell(text: str) -> None:
    """Lines for who asked."""
    print(terminal_lines(text), flush=True)  # noqa: T201


class Parser(argparse.ArgumentParser):
    """A parser whose errors repeat what was said, but not for a terminal or a log to obey."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(terminal_lines(message), file)
