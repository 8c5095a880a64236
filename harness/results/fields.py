"""What rows can differ in, their figures with how each is written, and the times that may be shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.common.units import (
    bytes_text,
    count_text,
    duration_text,
    floor_to_tenth,
    instructions_text,
    rate_text,
    seconds_text,
    share_text,
)
from harness.records.schema import BY_ITSELF, PHASES
from harness.results.rows import Row, measured_phases
from harness.runs.fields import FIELD, FIELDS, Field, fixed, value_at
from variants.contract import COUNTING_PHASES

QUANTITIES = ("training", "total", "cpu")
"""Seconds that a chart can show: without reading and counting, of the whole way from the file, or of processors."""
MEASURED, UNCONFIRMED, ESTIMATED, AT_LEAST, WRONG, NOTHING = (
    *("measured", "unconfirmed", "estimated", "at least", "wrong", "nothing"),
)
PROVED = (MEASURED, UNCONFIRMED)
"""The forms of a time that was measured to the end."""
SIGNS = {ESTIMATED: "~", AT_LEAST: ">"}
TELLS_NOTHING = 1000
"""If the ends of an estimate differ by more than this factor, only the lower one is shown."""
WORK = (
    "pairs_scanned", "pair_updates", "heap_pushes", "heap_pops", "stale_pops", "words_rewritten", "positions_visited",
)  # fmt: skip
"""The tallies that every variant may have, in the order in which they are shown."""


class Time(NamedTuple):
    """Seconds with their form; `low` and `high` bound them, or are None if nothing is known."""

    form: str
    number: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def numbers(self) -> list[float]:
        return [number for number in self[1:] if number is not None]

    @property
    def text(self) -> str:
        """The number as it is written everywhere; empty if there is none.

        >>> Time(MEASURED, 0.0102).text, Time(ESTIMATED, 3674.0).text, Time(AT_LEAST, 12.0).text, Time(WRONG).text
        ('0.0102 s', '~61 min', '>12.0 s', '')
        """
        if self.number is None:
            return ""
        if self.form in PROVED:
            return seconds_text(self.number)
        return SIGNS[self.form] + duration_text(self.number, floor_to_tenth if self.form == AT_LEAST else float)


def time_of(row: Row, quantity: str = "total") -> Time:
    """The seconds of a row that may be shown. A stopped row has its estimate here, and nowhere another one."""
    if row.status == "mismatch":
        return Time(WRONG)
    if row.status == "ok":
        seconds = seconds_of(row, quantity)
        if not seconds:
            return Time(NOTHING)
        return Time(MEASURED if row.confirmed else UNCONFIRMED, seconds, *_bounds(row, quantity, seconds))
    if quantity == "cpu" or (quantity == "training" and row.record.get("counting") == BY_ITSELF):
        return Time(NOTHING)
    counted = _counting(row) if quantity == "training" else 0.0
    expected = row.extrapolated
    if expected.get("total_seconds") is not None:
        total, low, high = (max(expected[f"{end}_seconds"] - counted, 1e-9) for end in ("total", "low", "high"))
        return Time(AT_LEAST, low) if high > TELLS_NOTHING * low else Time(ESTIMATED, total, low, high)
    limit = (row.record.get("limits") or {}).get("wall_seconds")
    return Time(AT_LEAST, limit) if row.status in ("timeout", "extrapolated") and limit else Time(NOTHING)


def seconds_of(row: Row, quantity: str) -> float | None:
    """Seconds of a quantity; a trainer that reads the file itself has no training seconds of its own."""
    if quantity == "cpu":
        return row.cpu_seconds
    if quantity == "total" or row.counting_only:
        return row.total
    return None if row.record.get("counting") == BY_ITSELF else merge_seconds(row)


def _counting(row: Row) -> float:
    partial = row.record.get("seconds") or {}
    return sum(partial.get(phase) or 0.0 for phase in COUNTING_PHASES)


def _bounds(row: Row, quantity: str, seconds: float) -> tuple[float | None, float | None]:
    """The shortest and the longest of several runs."""
    if len(row.samples) < 2:
        return None, None
    if quantity == "cpu":
        times = [sample.cpu_seconds for sample in row.samples]
    else:
        left_out = COUNTING_PHASES if quantity == "training" and not row.counting_only else ()
        times = [math.fsum(spent for phase, spent in run.items() if phase not in left_out) for run in row.each]
    runs = [spent for spent in times if spent]
    return (min(*runs, seconds), max(*runs, seconds)) if len(runs) > 1 else (None, None)


def fields_of(rows: Sequence[Row]) -> dict[str, Callable[[Row], Any]]:
    """Everything that rows can differ in, by name; the parameters are those that any of the rows has."""
    params = dict.fromkeys(name for row in rows for name in row.record.get("params") or {})
    values = {
        "variant": FIELD["variant"].value,
        **{f"params.{name}": value_at(f"params.{name}") for name in params},
        **{field.name: field.value for field in FIELDS if field.name not in ("variant", "params")},
    }
    readers = {name: lambda row, value=value: fixed(value(row.record)) for name, value in values.items()}
    return {**readers, "status": lambda row: row.status}


def reader_of(field: Field) -> Callable[[Row], Any]:
    """A function that reads a field of a row."""
    return lambda row: field.value(row.record)


@dataclass(frozen=True)
class Figure:
    """One number of a row, None if it is unknown, and how it is written."""

    name: str
    value: Callable[[Row], Any]
    text: Callable[[Any], str]


def figures_of(rows: Sequence[Row]) -> dict[str, Figure]:
    """Every figure that rows like these can have, by its name in `--columns` and `--value`."""
    phases = dict.fromkeys([*PHASES, *measured_phases(rows)])
    tallies = dict.fromkeys([*WORK, *(name for row in rows for name in row.tallies)])
    figures = [
        Figure("total", lambda row: row.total, seconds_text),
        Figure("spread", lambda row: row.spread, share_text),
        Figure("CPU", lambda row: row.cpu_seconds, seconds_text),
        *(Figure(phase, _reader("seconds", phase), seconds_text) for phase in phases),
        Figure("merge", merge_seconds, seconds_text),
        Figure("memory", lambda row: row.peak_rss_bytes, bytes_text),
        Figure("private_memory", lambda row: row.peak_private_bytes, bytes_text),
        Figure("MB/s", megabytes_per_second, rate_text),
        Figure("pre-tokens/s", lambda row: _whole_way(row, "pre_tokens"), rate_text),
        Figure("merges/s", lambda row: row.merges_per_second, rate_text),
        Figure("merges", lambda row: row.merges, count_text),
        Figure("words", lambda row: row.corpus.get("words") if row.status == "ok" else None, count_text),
        Figure("bytes/token", bytes_per_token, "{:.2f}".format),
        Figure("instructions", lambda row: row.instructions, instructions_text),
        *(Figure(tally, _reader("tallies", tally), count_text) for tally in tallies),
    ]
    return {figure.name: figure for figure in figures}


def _reader(attribute: str, name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row, attribute).get(name)


def merge_seconds(row: Row) -> float | None:
    """Everything but reading and counting."""
    return sum(spent for phase, spent in row.seconds.items() if phase not in COUNTING_PHASES) if row.seconds else None


def megabytes_per_second(row: Row) -> float | None:
    """Megabytes of the corpus per second of the total."""
    rate = _whole_way(row, "bytes")
    return None if rate is None else rate / 1e6


def bytes_per_token(row: Row) -> float | None:
    """How much text a token holds on average; None if the tokens were not counted."""
    tokens, size = row.record.get("tokens"), row.corpus.get("bytes")
    return size / tokens if tokens and size else None


def _whole_way(row: Row, unit: str) -> float | None:
    return row.per_second(row.corpus.get(unit), row.seconds) if row.counted else None
