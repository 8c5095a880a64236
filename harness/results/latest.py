"""Which of many records are the latest: of each cell, or of one run."""

from __future__ import annotations

from collections.abc import Sequence

from harness.runs.fields import Record, cell_of, together

_UNTIMED = ("proof", "instructions")
"""The presets of conf/measure whose records hold no times."""


def latest(records: Sequence[Record]) -> list[Record]:
    """Those records of each cell that its latest run made; of times and of what is no time, the latest of each.

    >>> [record["run_id"] for record in latest([
    ...     {"variant": "a", "run_id": "first", "started": "2026-01-01T09:00:00+00:00"},
    ...     {"variant": "b", "run_id": "first", "started": "2026-01-01T09:01:00+00:00"},
    ...     {"variant": "a", "run_id": "second", "started": "2026-01-02T09:00:00+00:00"},
    ...     {"variant": "a", "run_id": "third", "started": "2026-01-03T09:00:00+00:00", "measure": "instructions"},
    ... ])]
    ['first', 'second', 'third']
    """
    older: set[int] = set()
    for cell in together(records, cell_of):
        newest: dict[str, Record] = {}
        for record in cell:
            what = _measured(record)
            if (record.get("started") or "") >= (newest.setdefault(what, record).get("started") or ""):
                newest[what] = record
        runs = {what: record.get("run_id") for what, record in newest.items()}
        older.update(id(record) for record in cell if record.get("run_id") != runs[_measured(record)])
    return [record for record in records if id(record) not in older]


def latest_run(records: Sequence[Record]) -> list[Record]:
    """Those records that the run made which was begun last.

    >>> [record["variant"] for record in latest_run([
    ...     {"variant": "a", "run_id": "first", "started": "2026-01-01T09:00:00+00:00"},
    ...     {"variant": "b", "run_id": "second", "started": "2026-01-02T09:00:00+00:00"},
    ...     {"variant": "c", "run_id": "second", "started": "2026-01-02T09:01:00+00:00"},
    ... ])]
    ['b', 'c']
    """
    newest = max((str(record.get("run_id") or "") for record in records), default="")
    return [record for record in records if str(record.get("run_id") or "") == newest]


def _measured(record: Record) -> str:
    """What was measured of a cell, as far as one does not replace the other."""
    measure = record.get("measure")
    return measure if measure in _UNTIMED else "time"
