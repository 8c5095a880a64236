"""One call of a counter or trainer: its clock, its meter, and what was measured of it.

Standard library only, and Python 3.9's: it runs in the measured process.
"""

from __future__ import annotations

import contextlib
import os
import platform
import select
import sys
import time
from pathlib import Path
from typing import Any

from harness.worker import exchange
from harness.worker.calling import (
    Parameters,
    StoppableMeter,
    arguments_for,
    expect_known_phases,
    expect_word_counts,
)
from harness.worker.job import Job
from variants.contract import Corpus

IMPORTED, BEGIN, END = b"imported", b"begin", b"end"
"""What the process announces to the harness, which answers with a byte."""
SECONDS_FOR_A_REPLY = 5.0


class Channel:
    """A socket to the harness; a trainer that closes or replaces it silences it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.file = os.fstat(descriptor)

    def send(self, word: bytes) -> bool:
        """Write a line to the harness; return False if that is impossible."""
        with contextlib.suppress(OSError):  # closed, or full because the harness is halted
            if os.path.samestat(os.fstat(self.descriptor), self.file):
                return os.write(self.descriptor, word + b"\n") > 0
        return False

    def announce(self, moment: bytes, seconds: float | None = SECONDS_FOR_A_REPLY) -> None:
        """Announce a moment to the harness, and wait until it has read its clock and its
        accounts.
        """
        if self.send(moment):
            with contextlib.suppress(OSError):
                select.select([self.descriptor], [], [], seconds)
                os.read(self.descriptor, 1)


# Taken before the job's code is imported, so nothing it replaces can reach the total.
clock = time.perf_counter


class MeasuredCall:
    """The call of one job, and its state at any moment."""

    def __init__(
        self,
        job: Job,
        parameters: Parameters,
        imported: dict[str, list[int]],
        channel: Channel,
    ) -> None:
        self.job = job
        self.parameters = parameters
        self.imported = imported
        self.channel = channel
        self.meter = StoppableMeter()
        self.from_file = False
        self.text: list[int] | None = None
        """The state of the file that it reads, before it does."""
        self.tie_break: str | None = None
        self.begun = False
        self.started = clock()

    def corpus(self) -> Corpus:
        """Return the corpus to read, and note the state of its file."""
        assert self.job.corpus is not None
        self.text = exchange.file_state(self.job.corpus.path)
        return self.job.corpus

    def begin(self) -> None:
        """Start the clock; importing and mapping are not the trainer's work."""
        self.channel.announce(BEGIN)
        self.started = clock()
        self.meter._mark = time.perf_counter()
        self.begun = True
        self.mark()

    def mark(self) -> None:
        """Enter a function of the C library that nothing else calls: a program that counts
        instructions watches it.
        """
        if self.job.counts_instructions:
            os.ctermid()

    def figures(
        self, takes_threads: bool | None = None, digest: str | None = None
    ) -> dict[str, Any]:
        """Return what has been measured up to now; two clocks may differ, so no phase is less than
        nothing.

        The harness gets the digest of the merges or words with the end of the call, so they cannot
        change later.
        """
        # before the clock is read: a call that is stopped goes on
        spent_in = dict(self.meter.seconds)
        end = END if digest is None else b"%b %b" % (END, digest.encode())

        total = clock() - self.started
        self.channel.announce(end)

        replaced = time.perf_counter is not clock
        return {
            "status": "rejected" if replaced else "ok",
            "reason": "time.perf_counter was replaced while it ran, so its phases mean nothing"
            if replaced
            else None,
            "seconds": {phase: max(float(spent), 0.0) for phase, spent in spent_in.items()},
            "total": total,
            "tallies": {name: int(number) for name, number in self.meter.tallies.items()},
            "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
            "takes_threads": takes_threads,
            "from_file": self.from_file,
            "tie_break": self.tie_break,
            "text": self.text,
            "imported": {**imported_files(), **self.imported},
        }


def imported_files() -> dict[str, list[int]]:
    """Return the files that modules were imported from, each with its state, but for those of the
    standard library, which nobody edits.
    """
    standard = os.__file__.rpartition(os.sep)[0] + os.sep
    states = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if type(path) is not str or path in states:
            continue
        if not path.startswith(standard) or "-packages" in path:
            state = exchange.file_state(path)
            if state is not None:
                states[path] = state
    return states


def count(call: MeasuredCall, counter: Any, output: Path) -> dict[str, Any]:
    """Call a counter; return its figures, and leave its words in `output`.

    Raises ValueError if it returns something else than word counts.
    """
    job = call.job
    positional, keywords = arguments_for(
        call.parameters, [call.corpus()], call.meter, {"threads": job.threads}, job.params
    )
    takes_threads = "threads" in keywords

    call.begin()
    word_counts = counter(*positional, **keywords)
    call.mark()

    if call.meter.refused:  # it has not counted everything
        return {**call.figures(takes_threads), "status": "stopped"}
    expect_word_counts(word_counts)
    expect_known_phases(call.meter.seconds)
    figures = call.figures(takes_threads, exchange.seal(word_counts))
    exchange.write_columns(output / "words", word_counts)
    return {**figures, "words_done": len(word_counts)}
