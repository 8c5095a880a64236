"""What the measured process hands to a trainer as its meter. Standard library only, and Python 3.9's."""

from __future__ import annotations

from collections.abc import Sequence

from variants.contract import Merge, Meter


class StoppableMeter(Meter):
    """A meter that can ask a native trainer to stop, and knows whether the trainer asks and has been told."""

    stopping = False
    asked = False
    told = False

    def progress(self, done: int) -> bool:
        self.asked = True
        self.told = self.told or self.stopping
        super().progress(int(done))
        return not self.stopping

    def follow(self, merges: Sequence[Merge]) -> None:
        len(merges)  # what has no length fails here, in the call that is wrong, and not in the watching thread
        super().follow(merges)

    def settle(self) -> None:
        """Everything has been counted."""


class PhasedMeter(StoppableMeter):
    """A meter whose tallies bear the phase that the next lap ends, as in `update/pair_updates`.

    What is counted after the last lap is the whole call's: compiled trainers tell their counts at the end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pending: dict[str, int] = {}

    def tally(self, name: str, n: int) -> None:
        self.pending[name] = self.pending.get(name, 0) + n

    def lap(self, phase: str) -> None:
        super().lap(phase)
        self.settle(f"{phase}/")

    def settle(self, before: str = "") -> None:
        for name, n in self.pending.items():
            super().tally(f"{before}{name}", n)
        self.pending = {}


class RecordingMeter(Meter):
    """A meter that also remembers how it was used."""

    def __init__(self) -> None:
        super().__init__()
        self.follow_calls = 0
        self.lengths_at_update: list[int] = []

    def lap(self, phase: str) -> None:
        super().lap(phase)
        if phase == "update":
            self.lengths_at_update.append(len(self.followed))

    def follow(self, merges: Sequence[Merge]) -> None:
        super().follow(merges)
        self.follow_calls += 1


class RefusingMeter(RecordingMeter):
    """A meter that answers every question whether to go on with no."""

    def progress(self, done: int) -> bool:
        super().progress(done)
        return False
