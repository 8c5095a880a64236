"""Rows as the JSON of hyperfine, which its scripts and Bencher read, and others after one line of jq."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from typing import Any

from harness.results.rows import Row


def hyperfine(rows: Sequence[Row]) -> str:
    """The rows whose time may be shown, each as a result; seconds are totals of its runs."""
    results = [_result(row) for row in rows if row.total is not None]
    return json.dumps({"results": results}, indent=1) + "\n"


def _result(row: Row) -> dict[str, Any]:
    times = [sample.seconds for sample in row.samples]
    cpu, system = row.cpu_seconds, row.system_seconds
    return {
        "command": _name(row),
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        "user": None if cpu is None or system is None else cpu - system,
        "system": system,
        "min": min(times),
        "max": max(times),
        "times": times,
        "memory_usage_byte": row.peak_rss_bytes,
        "exit_codes": [0] * len(times),
    }


def _name(row: Row) -> str:
    """The same in every export, so that a tracker finds it again."""
    params = " ".join(f"{name}={value}" for name, value in row.params.items())
    parts = [f"{row.name} {params}".strip(), row.corpus.name]
    parts += [f"vocabulary {row.record.cell.vocab_size}", f"threads {row.threads}"]
    return ", ".join(map(str, parts))
