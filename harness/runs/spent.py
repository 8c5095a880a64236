"""Where the time of a command went: counting, predicting, training, proof, and all that is none of these."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from harness.common.units import duration_text

WORTH_A_LINE_SECONDS = 5.0
"""Nobody asks where the time went of a command that took less."""
SHOWN_SHARE = 0.01


class Spent:
    """Seconds by what they were spent on, from the moment when this was made."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.began = clock()
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def on(self, what: str) -> Iterator[None]:
        """All seconds in here are of `what`, but those that a block inside this one has for itself."""
        began, before = self.clock(), sum(self.seconds.values())
        try:
            yield
        finally:
            inside = sum(self.seconds.values()) - before
            self.seconds[what] = self.seconds.get(what, 0.0) + self.clock() - began - inside

    def line(self) -> str | None:
        """One line, the largest first; None where there was little to spend."""
        total = self.clock() - self.began
        if total < WORTH_A_LINE_SECONDS:
            return None
        parts = sorted(self.seconds.items(), key=lambda part: -part[1])
        parts.append(("all else", total - sum(self.seconds.values())))
        told = [f"{what} {duration_text(seconds)}" for what, seconds in parts if seconds >= SHOWN_SHARE * total]
        return f"This command took {duration_text(total)}: {', '.join(told)}."
