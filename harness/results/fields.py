"""What rows can be told apart by, their figures and how each is written, and what the name of a column means."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.common.units import bytes_text, count_text, instructions_text, rate_text, share_text
from harness.records.schema import PHASES
from harness.results.rows import Row, decimals_of, measured_phases
from harness.runs.fields import FIELD, FIELDS, Field, fixed, value_at
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


@dataclass(frozen=True)
class Figure:
    """One number of a row, None where it is not known, and how it is written."""

    name: str
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
        Figure("total", lambda row: row.total, seconds),
        *(Figure(phase, _phase(phase), seconds) for phase in phases),
        Figure("merge", merge_seconds, seconds),
        Figure("CPU", lambda row: row.cpu_seconds, seconds),
        Figure("spread", lambda row: row.spread, share_text),
        Figure("memory", lambda row: row.peak_rss_bytes, bytes_text),
        Figure("private_memory", lambda row: row.peak_private_bytes, bytes_text),
        Figure("MB/s", megabytes_per_second, rate_text),
        Figure("pre-tokens/s", pre_tokens_per_second, rate_text),
        Figure("merges/s", lambda row: row.merges_per_second, rate_text),
        Figure("merges", lambda row: row.merges, count_text),
        Figure("instructions", lambda row: row.instructions, instructions_text),
        *(Figure(tally, _tally(tally), count_text) for tally in tallies),
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
    """By the total, where reading the corpus is in it: a table of words is not text."""
    return row.per_second(row.corpus.get(unit), row.seconds) if row.counted else None


def _phase(name: str) -> Callable[[Row], Any]:
    return lambda row: row.seconds.get(name)


def _tally(name: str) -> Callable[[Row], Any]:
    return lambda row: row.tallies.get(name)


class Meaning(NamedTuple):
    """What a column holds, in full, and what a note below a table says of it where its name leaves something open."""

    full: str
    brief: str = ""


_PEAK = "at its peak, 1 MB is 1,000,000 bytes"

MEANINGS: Mapping[str, Meaning] = {
    "total": Meaning("seconds, counting included: the sum of the phases"),
    "spread": Meaning("the longest total less the shortest, by their median"),
    "CPU": Meaning("CPU seconds of counter and trainer", "of processor time"),
    "read": Meaning("seconds of reading the file"),
    "count": Meaning("seconds of counting words"),
    "convert": Meaning("seconds of passing words in and merges out"),
    "init": Meaning("seconds before the first maximum"),
    "copy": Meaning("seconds of copying all pairs before the maximum is looked for"),
    "max": Meaning("seconds of finding the most frequent pair"),
    "update": Meaning("seconds of applying merges and changing counts"),
    "other": Meaning("seconds that no phase covers"),
    "memory": Meaning("the peak of the process", _PEAK),
    "private_memory": Meaning("the peak of what the process shares with no other", _PEAK),
    "MB/s": Meaning("bytes of the corpus by the total", "of the corpus, by total"),
    "pre-tokens/s": Meaning("pre-tokens by the total", "by total"),
    "merges/s": Meaning("merges by the trainer's own seconds", "by all seconds but those of read and count"),
    "words": Meaning("different pre-tokens"),
    "instructions": Meaning("of the trainer's call alone, under callgrind"),
    "proof": Meaning("the digest of the merges, and which other variants learned the same"),
    "identity": Meaning("how far an outside trainer's merges are those that are defined"),
    "ratio": Meaning("times the total of the fastest row of the same task"),
    "interval": Meaning("contains the true ratio with 95 % confidence"),
}
"""By a column's heading."""


def units_note(headings: Iterable[str]) -> str:
    """A sentence for the units of a table's columns.

    >>> units_note(["variant", "total", "max", "memory"])
    'Times are seconds of wall time; memory: at its peak, 1 MB is 1,000,000 bytes.'
    """
    there = list(headings)
    timed = any(name.split()[0] in ("total", "merge", *PHASES) for name in there)
    told = ["Times are seconds of wall time"] if timed else []
    told += [f"{name}: {meaning.brief}" for name, meaning in MEANINGS.items() if meaning.brief and name in there]
    return f"{'; '.join(told)}." if told else ""
