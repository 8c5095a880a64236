"""The line from a measured process to its parent: how far it is, and the moments at which its call begins and ends.

Standard library only, and Python 3.9's: it runs in the measured process.
"""

from __future__ import annotations

import contextlib
import os
import select

READY, IMPORTED, BEGIN, BEGUN, END = b"ready", b"imported", b"begin", b"begun", b"end"
SECONDS_FOR_A_REPLY = 5.0


class Channel:
    """One end of a pair of sockets; a trainer that closes it, or opens something else in its place, silences it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.file_behind = file_behind(descriptor)

    def say(self, word: bytes) -> bool:
        """Tell the parent something; whether it could be told."""
        with contextlib.suppress(OSError):  # closed, or full because the parent is stopped
            if file_behind(self.descriptor) == self.file_behind:
                return os.write(self.descriptor, word + b"\n") > 0
        return False

    def witnessed(self, moment: bytes) -> None:
        """Tell the parent of a moment, and wait until it has read its own clock and accounts.

        So nothing that the parent does for it happens while the call runs, and nothing of the call while it is done.
        """
        if self.say(moment):
            with contextlib.suppress(OSError):
                select.select([self.descriptor], [], [], SECONDS_FOR_A_REPLY)
                os.read(self.descriptor, 1)


def file_behind(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
