"""Measuring, recording and judging. From Python: `from harness import run`."""

from __future__ import annotations

from typing import Any

__all__ = ["run"]


def run(*overrides: str) -> list[dict[str, Any]]:
    """Measure what the overrides say, as `python -m harness` would, and return the records.

    `run("variants=[naive,heap]", "data.path=book.txt")`. Raises harness.errors.Refusal where the command would end with
    a sentence; a variant that fails is a record with its status.
    """
    # Imported late: the measured process imports this package too, and must stay small.
    import tempfile
    from pathlib import Path

    from harness.command_line import compose
    from harness.running import records_of

    with tempfile.TemporaryDirectory(prefix="bpe-harness-") as folder:
        return records_of(compose(overrides) or [], Path(folder))
