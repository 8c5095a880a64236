"""Refusals and exit codes: every command answers bad input with one sentence and a documented exit
code.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

OK = 0
USAGE = 2
REGRESSION = 20
MISMATCH = 21
UNMEASURED = 22
INCONCLUSIVE = 23
INTERRUPTED = 130


class Refusal(Exception):
    """A request that cannot be carried out; the message is one sentence that says what to do
    instead.
    """

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def reason(error: OSError) -> str:
    """The cause of an error, in the system's words or else the library's.

    >>> reason(OSError("no range")), reason(FileNotFoundError(2, "", "x"))
    ('no range', 'No such file or directory')
    """
    return os.strerror(error.errno) if error.errno else str(error)


def wrong_value(error: object) -> tuple[str, str]:
    """Return what msgspec found wrong, and the key of the value; the key is empty for the whole."""
    what, _, path = str(error).partition(" - at `$")
    return what, path.strip("`.")


def extra(module: str, what: str, group: str = "data") -> Any:
    """Import a module of the extra `group`. Raises Refusal, with the command that installs it, if
    it is missing.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        pip = "python -m pip install"
        advice = f"run {pip} 'bpe-harness[{group}]', in a checkout {pip} -e '.[{group}]'"
        raise Refusal(
            f"{what} needs {module}, which is not installed; {advice}", UNMEASURED
        ) from error
