"""The figures of a row and how each is written, the times that may be shown, the fields in which rows differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from harness.records.fields import FIELDS, fixed, value_at
from harness.records.schema import BY_ITSELF, PHASES
from harness.results.rows import TALLIES, Row, measured_phases
from variants.contract import COUNTING_PHASES

QUANTITIES = ("training", "total", "cpu")
"""Seconds that a chart can show: without reading and counting, of the whole way from the file, or of processors."""
MEASURED, UNCONFIRMED, ESTIMATED, AT_LEAST, NOTHING = "measured", "unconfirmed", "estimated", "at least", "nothing"
FINISHED = (MEASURED, UNCONFIRMED)
"""The forms of a time that was measured to the end."""
SIGNS = {ESTIMATED: "~", AT_LEAST: ">"}
MOST_UNSURE = 1000
"""If the ends of an estimate differ by more than this factor, only the lower one is shown."""


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

        >>> Time(MEASURED, 0.0102).text, Time(ESTIMATED, 3674.0).text, Time(AT_LEAST, 12.0).text, Time(NOTHING).text
        ('0.0102 s', '~61 min', '>12.0 s', '')
        """
        if self.number is None:
            return ""
        if self.form in FINISHED:
            return seconds_text(self.number)
        return SIGNS[self.form] + duration_text(self.number, floor_to_tenth if self.form == AT_LEAST else float)


def time_of(row: Row, quantity: str = "total") -> Time:
    """The seconds of a row that may be shown. A stopped row has its estimate here, and nowhere another one."""
    if row.status == "ok":
        seconds = seconds_of(row, quantity)
        if not seconds:
            return Time(NOTHING)
        form = MEASURED if row.confirmed or row.by_design else UNCONFIRMED
        return Time(form, seconds, *_bounds(row, quantity, seconds))
    without_counting = quantity == "training" and row.record.get("counting") == BY_ITSELF
    if row.status not in ("timeout", "extrapolated") or quantity == "cpu" or without_counting:
        return Time(NOTHING)
    expected = row.extrapolated
    if expected.get("total_seconds") is not None:
        partial = row.record.get("seconds") or {}
        counted = sum(partial.get(phase) or 0.0 for phase in COUNTING_PHASES) if quantity == "training" else 0.0
        total, low, high = (max(expected[f"{end}_seconds"] - counted, 1e-9) for end in ("total", "low", "high"))
        return Time(AT_LEAST, low) if high > MOST_UNSURE * low else Time(ESTIMATED, total, low, high)
    limit = (row.record.get("limits") or {}).get("wall_seconds")
    return Time(AT_LEAST, limit) if limit else Time(NOTHING)


def seconds_of(row: Row, quantity: str) -> float | None:
    """Seconds of a quantity; a trainer that reads the file itself has no training seconds of its own."""
    if quantity == "cpu":
        return row.cpu_seconds
    if quantity == "total" or row.counting_only:
        return row.total
    return None if row.record.get("counting") == BY_ITSELF else merge_seconds(row)


def _bounds(row: Row, quantity: str, seconds: float) -> tuple[float | None, float | None]:
    """The shortest and the longest of several runs."""
    if quantity == "cpu":
        times = [sample.cpu_seconds for sample in row.samples]
    else:
        left_out = COUNTING_PHASES if quantity == "training" and not row.counting_only else ()
        times = [_sum_without(run, left_out) for run in row.phases]
    runs = [spent for spent in times if spent]
    return (min(*runs, seconds), max(*runs, seconds)) if len(runs) > 1 else (None, None)


def merge_seconds(row: Row) -> float | None:
    """Everything but reading and counting."""
    return _sum_without(row.seconds, COUNTING_PHASES) if row.seconds else None


def _sum_without(seconds: Any, left_out: Sequence[str]) -> float:
    return math.fsum(spent or 0.0 for phase, spent in seconds.items() if phase not in (*left_out, "total"))


class Figure(NamedTuple):
    """One number of a row, None if it is unknown, and how it is written."""

    value: Callable[[Row], Any]
    text: Callable[[Any], str]


def figures_of(rows: Sequence[Row]) -> dict[str, Figure]:
    """Every figure that rows like these can have, by its name in `--columns` and `--value`."""
    phases = dict.fromkeys([*PHASES, *measured_phases(rows)])
    tallies = dict.fromkeys([*TALLIES, *(name for row in rows for name in row.tallies)])
    return {
        "total": Figure(lambda row: row.total, seconds_text),
        "spread": Figure(lambda row: row.spread, share_text),
        "CPU": Figure(lambda row: row.cpu_seconds, seconds_text),
        "system": Figure(lambda row: row.system_seconds, seconds_text),
        **{phase: Figure(lambda row, phase=phase: row.seconds.get(phase), seconds_text) for phase in phases},  # type: ignore[misc]
        "merge": Figure(merge_seconds, seconds_text),
        "memory": Figure(lambda row: row.peak_rss_bytes, bytes_text),
        "private_memory": Figure(lambda row: row.peak_private_bytes, bytes_text),
        "MB/s": Figure(lambda row: _whole_way(row, "bytes", 1e6), rate_text),
        "pre-tokens/s": Figure(lambda row: _whole_way(row, "pre_tokens"), rate_text),
        "merges/s": Figure(lambda row: row.merges_per_second, rate_text),
        "merges": Figure(lambda row: row.merges, count_text),
        "words": Figure(lambda row: row.corpus.get("words") if row.status == "ok" else None, count_text),
        "bytes/token": Figure(_bytes_per_token, "{:.2f}".format),
        "instructions": Figure(lambda row: row.instructions, instructions_text),
        **{tally: Figure(lambda row, tally=tally: row.tallies.get(tally), count_text) for tally in tallies},  # type: ignore[misc]
    }


def _whole_way(row: Row, unit: str, scale: float = 1.0) -> float | None:
    """So many units of the corpus per second of the total; None if words were not counted in it."""
    number = row.corpus.get(unit)
    return number / scale / row.total if row.counted and number is not None and row.total else None


def _bytes_per_token(row: Row) -> float | None:
    """How much text a token holds on average; None if the tokens were not counted."""
    tokens, size = row.record.get("tokens"), row.corpus.get("bytes")
    return size / tokens if tokens and size else None


def fields_of(rows: Sequence[Row]) -> dict[str, Callable[[Row], Any]]:
    """Everything that rows can differ in, by name; the parameters are those that any of the rows has."""
    params = dict.fromkeys(name for row in rows for name in row.record.get("params") or {})
    values = {
        **{field.name: field.value for field in FIELDS if field.name == "variant"},
        **{f"params.{name}": value_at(f"params.{name}") for name in params},
        **{field.name: field.value for field in FIELDS if field.name not in ("variant", "params")},
    }
    readers: dict[str, Callable[[Row], Any]] = {
        name: lambda row, value=value: fixed(value(row.record))  # type: ignore[misc]
        for name, value in values.items()
    }
    return {**readers, "status": lambda row: row.status}
