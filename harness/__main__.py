"""python -m harness: measure trainers, prove their merges, print the series' table."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from harness.errors import INTERRUPTED, OK, UNMEASURED, Refusal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RECORDED = "what was measured before is recorded, run the same command again for the rest"
asked_to_end: list[int] = []


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    return guarded(lambda: command(arguments))


def guarded(do: Callable[[], int], kept: str = RECORDED) -> int:
    """Answer refusals with their sentence and interruptions with one line; survive whoever reads what is printed.

    `kept` says what is not lost.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, and shells for their background jobs, say so
            signal.signal(number, interrupt)
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
    except BrokenPipeError:
        return OK
    except OSError as error:
        say(f"cannot go on ({error}); {kept}")
        return UNMEASURED


def command(arguments: Sequence[str]) -> int:
    if any(argument in ("-h", "--help") for argument in arguments):
        from harness.usage import usage

        print(usage())  # noqa: T201
        return OK
    from harness.command_line import compose

    composed = compose(arguments)
    if composed is None:
        return OK
    from harness.running import run_composed

    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        return run_composed(composed, Path(folder))


def interrupt(number: int, _: FrameType | None) -> None:
    """A request to end is an interruption, whoever asks; those that follow must not cut the tidying up short."""
    asked_to_end.append(number)
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens
        print(sentence, file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
