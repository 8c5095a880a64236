"""The total of a cell that limits.wall stopped, from runs of the same cell on small parts of its text or its words.

A part of 1/1024 of the input is trained for 1/1024 of the merges, then twice as much, and so on, as long as all parts
together take no more than limits.wall. Through the last three goes a power law. Beyond them its exponent may be off by
0.5, and its level by 30 %: the total was in that interval in some 95 of 100 cases where it could be measured as well.
"""

from __future__ import annotations

import bisect
import math
import statistics
import tempfile
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.measure.process import Answer
from harness.worker import exchange
from variants.contract import WordCounts

PARTS = tuple(2**power for power in range(10, 0, -1))
POINTS = 3
EXPONENT_DOUBT, LEVEL_DOUBT = 0.5, 1.3
SECONDS_TO_START = 0.25
"""What a process takes in addition to the call."""
BYTES_AT_ONCE = 1 << 22

RunPart = Callable[[Path, int, float], Answer]
"""Runs the cell on the part that lies there, for so many merges, for so many seconds at most."""


class Estimate(NamedTuple):
    """Seconds that something would take, with their interval, and the exponent over sizes."""

    total_seconds: float
    low_seconds: float
    high_seconds: float
    exponent: float

    def beyond(self, elapsed: float, before: float = 0.0) -> Estimate:
        """The same, if it has already taken `elapsed` seconds, after another that took those `before`."""
        return Estimate._make([*(before + max(seconds, elapsed) for seconds in self[:3]), self.exponent])


def estimate_total(source: Path, num_merges: int, wall: float, run_part: RunPart) -> Estimate | None:
    """What all of `source`, a text or a folder of words, would take; None if fewer than two parts can be run."""
    times: list[tuple[float, float]] = []
    left = wall
    for divisor in PARTS:
        exponent = exponent_of(times)
        twice_as_large = 0.0 if exponent is None else SECONDS_TO_START + times[-1][1] * 2**exponent
        if divisor > num_merges or twice_as_large > left:
            continue
        with tempfile.TemporaryDirectory() as folder:
            part = make_part(source, divisor, Path(folder) / source.name)
            answer = run_part(part, num_merges // divisor, left)
        left -= SECONDS_TO_START + (answer.get("total") or 0.0)
        if answer["status"] not in ("ok", "rejected"):
            break
        if answer["status"] == "ok" and answer["merges_done"] == num_merges // divisor:
            times.append((1 / divisor, answer["total"]))
    return power_law(times)


def power_law(times: Sequence[tuple[float, float]]) -> Estimate | None:
    """The seconds of the whole, from those of shares of it in their order.

    >>> power_law([(1 / 16, 1.0), (1 / 8, 2.0), (1 / 4, 4.0)])
    Estimate(total_seconds=16.0, low_seconds=6.153846153846153, high_seconds=41.6, exponent=1.0)
    """
    exponent = exponent_of(times)
    if exponent is None:
        return None
    share, seconds = times[-1]
    whole, doubt = seconds * share**-exponent, LEVEL_DOUBT * share**-EXPONENT_DOUBT
    return Estimate(whole, whole / doubt, whole * doubt, exponent)


def exponent_of(times: Sequence[tuple[float, float]]) -> float | None:
    """The slope of least squares through the logarithms of the last points; None for fewer than two."""
    last = times[-POINTS:]
    if len(last) < 2 or min(took for _, took in last) <= 0:
        return None
    shares, seconds = zip(*last, strict=True)
    return statistics.linear_regression(list(map(math.log, shares)), list(map(math.log, seconds))).slope


def make_part(source: Path, divisor: int, place: Path) -> Path:
    """Write the first 1/divisor of a text, or of the bytes of the words in a folder, at `place`."""
    if source.is_dir():
        words = exchange.read_words(source)[0]
        size = max(2, len(words.data) // divisor)
        number = bisect.bisect_left(words.offsets, size)
        offsets = array("q", words.offsets[:number])
        offsets.append(size)  # the last word is cut: a text may be one word
        exchange.write_words(place, WordCounts(words.data[:size], memoryview(offsets), words.counts[:number]))
    else:
        write_beginning(source, source.stat().st_size // divisor, place)
    return place


def write_beginning(text: Path, size: int, place: Path) -> None:
    """Write the first `size` bytes of a text, without a character that they would cut in two."""
    with text.open("rb") as source, place.open("wb") as file:
        source.seek(size)
        while size and b"\x80" <= source.read(1) < b"\xc0":  # what goes on with a character
            size -= 1
            source.seek(size)
        source.seek(0)
        for start in range(0, size, BYTES_AT_ONCE):
            file.write(source.read(min(BYTES_AT_ONCE, size - start)))
