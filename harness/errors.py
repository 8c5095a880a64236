"""Refusals and exit codes: every command answers bad input with one sentence and a number people can script against."""

from __future__ import annotations

OK = 0
USAGE = 2
REGRESSION = 20
MISMATCH = 21
UNMEASURED = 22
INCONCLUSIVE = 23
INTERRUPTED = 130


class Refusal(Exception):
    """What was asked cannot be done; the message is one sentence that says what to do instead."""

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code
