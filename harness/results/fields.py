"""What rows can be told apart by, and the figures that they have: by name, with the unit and how each is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.common.units import bytes_text, count_text, instructions_text, rate_text, share_text
from harness.results.rows import Row, decimals_of, measured_phases
from harness.runs.fields import FIELD, FIELDS, Field, fixed, value_at
from harness.runs.record_keys import PHASES
from variants.contract import COUNTING_PHASES


def fields_of(rows: Sequence[Row]) -> dict[str, Callable[[Row], Any]]:
    """Everything that was asked or given, by name; the parameters are those that any of the rows has."""
    params = dict.fromkeys(name for row in rows for name in row.record.get("params") or {})
    values = {
        "variant": FIELD["variant"].value,
        **{f"params.{name}": value_at(f"params.{name}") for name in params},
        **{field.name: field.value for field in FIELDS if field.name not in ("variant", "params")},
    }
    told_apart = {name: lambda row, value=value: fixed(value(row.record)) for name, value in values.items()}
    return {**told_apart, "status": lambda row: row.status}


def value_of(field: Field) -> Callable[[Row], Any]:
    """What reads a field of a row."""
    return lambda row: field.value(row.record)


SECONDS = "seconds"


@dataclass(frozen=True)
class Figure:
    """One number of a row, None where it is not known. Its unit is a plural, said after the name."""

    name: str
    unit: str
    value: Callable[[Row], Any]
    text: Callable[[Any], str]


def figures_of(rows: Sequence[Row]) -> dict[str, Figure]:
    """Every figure that rows like these can have; seconds with as many decimals as the rows' totals need."""
    decimals = decimals_of(rows)

    def seconds(spent: float) -> str:
        return f"{spent:,.{decimals}f}"

    phases = dict.fromkeys([*PHASES, *measured_phases(rows)])
    tallies = dict.fromkeys(name for row in rows for name in row.tallies)
    found = [
        Figure("total", SECONDS, lambda row: row.total, seconds),
        *(Figure(phase, SECONDS, _phase(phase), seconds) for phase in phases),
        Figure("counting_kept", "seconds in an earlier run", lambda row: row.counting_kept.get("total"), seconds),
        Figure("merge", SECONDS, merge_seconds, seconds),
        Figure("CPU", "seconds of processor time", lambda row: row.cpu_seconds, seconds),
        Figure("spread", "of the median total", lambda row: row.spread, share_text),
        Figure("memory", "bytes at the peak", lambda row: row.peak_rss_bytes, bytes_text),
        Figure("private_memory", "bytes at the peak", lambda row: row.peak_private_bytes, bytes_text),
        Figure("MB/s", "megabytes of the corpus by total", megabytes_per_second, rate_text),
        Figure("pre-tokens/s", "pre-tokens by total", pre_tokens_per_second, rate_text),
        Figure("merges/s", "merges by the seconds after counting", lambda row: row.merges_per_second, rate_text),
        Figure("merges", "merges", lambda row: row.merges, count_text),
        Figure("instructions", "instructions of the trainer's call", lambda row: row.instructions, instructions_text),
        *(Figure(tally, "times", _tally(tally), count_text) for tally in tallies),
    ]
    return {figure.name: figure for figure in found}


def merge_seconds(row: Row) -> float | None:
    """What the series calls merging: everything but reading and counting."""
    return sum(spent for phase, spent in row.seconds.items() if phase not in COUNTING_PHASES) if row.seconds else None


def megabytes_per_second(row: Row) -> float | None:
    """How much of the corpus went through a second of the whole way."""
    rate = _whole_way(row, "bytes")
    return None if rate is None else rate / 1e6


def pre_tokens_per_second(row: Row) -> float | None:
    return _whole_way(row, "pre_tokens")


def _whole_way(row: Row, unit: str) -> float | None:
    """By the total, where reading the corpus is in it: a table of words is no text, and kept words were not read."""
    return row.per_second(row.corpus.get(unit), row.seconds) if row.counted else None


def _phase(name: str) -> Callable[[Row], Any]:
    return lambda row: row.seconds.get(name)


def _tally(name: str) -> Callable[[Row], Any]:
    return lambda row: row.tallies.get(name)


_UNITS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("CPU",), "of processor time"),
    (("memory", "memory left", "private_memory"), "at its peak, 1 MB is 1,000,000 bytes"),
    (("MB/s",), "of the corpus, by total"),
    (("pre-tokens/s",), "by total"),
    (("merges/s",), "by all seconds but those of read and count"),
)


def units_note(headings: Iterable[str]) -> str:
    """A sentence for the units of a table's columns.

    >>> units_note(["variant", "total", "max", "memory"])
    'Times are seconds of wall time; memory: at its peak, 1 MB is 1,000,000 bytes.'
    """
    there = list(headings)
    timed = any(name.split()[0] in ("total", "merge", *PHASES) for name in there)
    told = ["Times are seconds of wall time"] if timed else []
    told += [f"{name.split()[0]}: {unit}" for names, unit in _UNITS for name in there if name in names]
    return f"{'; '.join(told)}." if told else ""
