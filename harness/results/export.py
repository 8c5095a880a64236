"""Rows as the JSON of hyperfine, which its scripts and Bencher read, and others after one line of jq."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.results.fields import COLUMNS
from harness.results.rows import Row

NAMED = ("data", "vocab_size", "threads", "interpreter", "host")
"""Fields that have their own part in a name, or only if names would be equal."""


def hyperfine(rows: Sequence[Row]) -> str:
    """The rows whose time may be shown, each as a result; seconds are totals of its runs."""
    timed = [row for row in rows if row.total is not None]
    names = names_of_benchmarks(timed)
    results = [_result(row, name) for row, name in zip(timed, names, strict=True)]
    return json.dumps({"results": results}, indent=1) + "\n"


def _result(row: Row, name: str) -> dict[str, Any]:
    times = [sample.seconds for sample in row.samples]
    cpu, system = row.cpu_seconds, row.system_seconds
    return {
        "command": name,
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


def names_of_benchmarks(rows: Sequence[Row]) -> list[str]:
    """A name for each row, the same in every export, so that a tracker finds it again: whatever is
    not the default is in it. Machines and bytes are named only if names would be equal.
    """
    names = list(map(_name, rows))
    number = Counter(names)
    for index, row in enumerate(rows):
        if number[names[index]] > 1:
            names[index] += (
                f", {row.texts['interpreter']}, {row.texts['host']}, {row.corpus.sha256}"
            )
    return names


def _name(row: Row) -> str:
    cell = row.record.cell
    params = " ".join(f"{name}={value}" for name, value in row.params.items())
    parts = [f"{row.name} {params}".strip(), str(row.corpus.name)]
    parts += [f"vocabulary {cell.vocab_size}", f"threads {row.threads}"]
    for field in COLUMNS:
        is_chosen = field.name != "counting" or cell.counting_chosen
        if field.name not in NAMED and is_chosen and field.value(row.record) != field.default:
            parts.append(field.phrase(row.record))
    return ", ".join(filter(None, parts))
