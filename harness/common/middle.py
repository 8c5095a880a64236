"""The middle of numbers: by the standard library, and of very many by NumPy, which need not sort them all."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

FEW = 5000
"""NumPy is not loaded for so few."""


def median(values: Sequence[float]) -> float:
    """
    >>> median([3.0, 1.0, 2.0]), median([float(number) for number in range(10_000)])
    (2.0, 4999.5)
    """
    if len(values) <= FEW:
        return statistics.median(values)
    low, high = (len(values) - 1) // 2, len(values) // 2
    return (_at(values, low) + _at(values, high)) / 2 if low != high else _at(values, low)


def median_low(values: Sequence[int]) -> int:
    """
    >>> median_low([4, 1, 3, 2]), median_low(range(10_000))
    (2, 4999)
    """
    return statistics.median_low(values) if len(values) <= FEW else int(_at(values, (len(values) - 1) // 2))


def medians(columns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Of each column its own."""
    return {name: median(values) for name, values in columns.items()}


def medians_low(columns: Mapping[str, Sequence[int]]) -> dict[str, int]:
    return {name: median_low(values) for name, values in columns.items()}


def _at(values: Sequence[float], rank: int) -> float:
    """The value of this rank, were they sorted."""
    import numpy as np  # only here: most tables are of few

    return np.partition(np.asarray(values), rank)[rank].item()  # type: ignore[no-any-return]
