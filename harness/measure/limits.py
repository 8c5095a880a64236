"""The limits of a measured process."""

from __future__ import annotations

from typing import NamedTuple


class WorkerLimits(NamedTuple):
    """What one measured process may take: seconds of wall time, bytes of memory of its whole group.
    None: no limit.
    """

    wall_seconds: float | None = None
    memory_bytes: int | None = None
