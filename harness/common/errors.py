"""Refusals and exit codes: every command answers bad input with one sentence and a number people can script against."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from harness.common.streams import say

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


def extra(module: str, what: str, group: str = "data") -> Any:
    """A module of an extra, `group`. Raises Refusal, with the command that installs it, if it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise not_installed(module, what, group) from error


def check_extra(module: str, what: str, group: str) -> None:
    """Raise what `extra` would, without importing what is there."""
    if importlib.util.find_spec(module) is None:
        raise not_installed(module, what, group)


def not_installed(module: str, what: str, group: str) -> Refusal:
    return Refusal(
        f"{what} needs {module}, which is not installed; run python -m pip install 'bpe-harness[{group}]', in "
        f"a checkout python -m pip install -e '.[{group}]'",
        UNMEASURED,
    )


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
UNCHANGED = "nothing was changed"
WHOLE_FILES = "the files that were written are whole"
RECORDED = "what was measured before is recorded, run the same command again for the rest"
asked_to_end: list[int] = []


def guarded(do: Callable[[], int], kept: str = RECORDED) -> int:
    """Answer refusals with their sentence and interruptions with one line; survive whoever reads what is printed.

    `kept` says what is not lost.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, and shells for their background jobs, say so
            signal.signal(number, interrupt)
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:  # or nobody would learn how a child has ended
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name or sign that the terminal cannot show is no reason to end
    code = answered(do, kept)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:  # nobody reads on; the interpreter would say so once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def answered(do: Callable[[], int], kept: str = RECORDED) -> int:
    try:
        try:
            return do()
        except BaseException:
            if asked_to_end:  # whatever a library made of it on the way
                raise KeyboardInterrupt from None
            raise
    except Refusal as refusal:
        say(f"{refusal}")
        return refusal.exit_code
    except KeyboardInterrupt:
        say(f"interrupted; {kept}")
        return INTERRUPTED
    except (TypeError, ValueError, AttributeError, ImportError) as error:
        from harness.common.stale_build import REMEDY, is_outdated

        if is_outdated():  # one of two halves may call what the other has no more
            error.add_note(REMEDY)
        raise
    except BrokenPipeError:
        return OK
    except OSError as error:
        say(f"cannot go on ({error}); {kept}")
        return UNMEASURED


def interrupt(number: int, _: FrameType | None) -> None:
    """A request to end is an interruption, whoever asks; those that follow must not cut the tidying up short."""
    asked_to_end.append(number)
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
