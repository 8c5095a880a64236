"""Bytes put together from pieces of different lengths, a whole block at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.corpora.generators.numbers import Integers

Bytes: TypeAlias = NDArray[np.uint8]


class Pieces:
    """Pieces known by their places.

    >>> Pieces([b"", b"a", b"bcd"]).joined(np.array([2, 0, 1])).tobytes()
    b'bcda'
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.data = np.frombuffer(b"".join(pieces), dtype=np.uint8)
        self.lengths = np.array([len(piece) for piece in pieces], dtype=np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths

    def joined(self, places: Integers) -> Bytes:
        """The pieces at these places, end to end."""
        lengths = self.lengths[places]
        stops = np.cumsum(lengths)
        total = int(stops[-1]) if len(stops) else 0
        joined: Bytes = self.data[np.arange(total) + np.repeat(self.starts[places] - (stops - lengths), lengths)]
        return joined
