"""The measured process's end of a pair of sockets, by which it reports to the harness.

Standard library only, and Python 3.9's: it runs in the measured process.
"""

from __future__ import annotations

import contextlib
import os
import select

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
