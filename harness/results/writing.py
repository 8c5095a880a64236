"""How the figures and the outcome of a row are written, the same in tables, charts and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.common.units import (
    bytes_text,
    count_text,
    instructions_text,
    one_line,
    rate_text,
    ratio_text,
    seconds_text,
    share_text,
)
from harness.proof import BY_DESIGN, UNPROVED, WRONG
from harness.records.schema import PHASES
from harness.results.ratios import Ratio
from harness.results.rows import AT_LEAST, MEASURED, NOTHING, Row, Time
from variants.contract import GREATEST_BYTES

NOT_MEASURED, SAMPLED, UNPROVED_MARK, DESIGN_MARK = "-", "~", "?", "*"
"""The last one marks figures of trainers that make other merges, on purpose."""
DIFFERENT = "≠"  # in place of a figure: merges differ
MOST_NAMED = 4

FIGURES: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("wall", "CPU", "system", "merge", *PHASES), seconds_text),
    **dict.fromkeys(("MB/s", "pre-tokens/s", "merges/s"), rate_text),
    "spread": share_text,
    "memory": bytes_text,
    "bytes/token": "{:.2f}".format,
    "instructions": instructions_text,
}
"""How each figure is written; all others are counts."""


def figure_text(row: Row, figure: str) -> str | None:
    """A figure as it is written everywhere, or None if it is unknown."""
    if figure == "total":
        return time_text(row.time) or None
    number = row.figures.get(figure)
    if number is None:
        return None
    text = FIGURES.get(figure, count_text)(number)
    return SAMPLED + text if figure == "memory" and row.memory_is_sampled else text


def marked(row: Row, text: str | None) -> str:
    """The text of a figure with the mark of the row's merges; without one, why it is missing."""
    return text + mark_of(row) if text else missing(row)


def mark_of(row: Row) -> str:
    """Return the mark of the row's figures: its merges differ on purpose, or are not proved."""
    if row.status == "ok" and row.by_design:
        return DESIGN_MARK
    return UNPROVED_MARK if row.doubtful else ""


def missing(row: Row) -> str:
    """What is written for a figure that there is not.

    A dash means "not measured"; wrong merges were measured, and none of it counts.
    """
    return "" if row.status == "mismatch" else NOT_MEASURED


def outcome_text(row: Row, text: str | None) -> str:
    """The text of a figure with the mark of the row's merges; without one, how the row ended."""
    if row.status == "mismatch":
        return DIFFERENT
    if text:
        return text + mark_of(row)
    return NOT_MEASURED if row.status == "ok" else status_text(row)


def time_text(time: Time, number_text: Callable[[float], str] = ratio_text) -> str:
    """A time, or the limit that it exceeded, as it was set; empty if there is none.

    >>> time_text(Time("measured", 2.0)), time_text(Time("at least", 3600.0))
    ('2.00 s', '> 3,600 s')
    """
    if time.form == NOTHING or time.number is None:
        return ""
    if time.form == AT_LEAST:
        return f"> {number_tick(time.number)} s"
    return seconds_text(time.number, number_text)


def number_tick(number: float) -> str:
    """A number at an axis.

    >>> [number_tick(number) for number in (0.5, 2.0, 1500.0)]
    ['0.5', '2', '1,500']
    """
    return f"{number:,.10f}".rstrip("0").rstrip(".")


def digits_text(number: float) -> str:
    """Two digits, or a whole number, where a table with three is near.

    >>> [digits_text(number) for number in (0.4883, 5.43, 12.9, 129.2, 1550.3)]
    ['0.49', '5.4', '13', '129', '1,550']
    """
    return number_tick(float(f"{number:.2g}") if number < 100 else round(number))


def time_tick(seconds: float) -> str:
    """A time at an axis.

    >>> [time_tick(seconds) for seconds in (0.00002, 0.05, 2.5, 10_000.0)]
    ['20 µs', '50 ms', '2.5 s', '10,000 s']
    """
    is_long = seconds >= 999.5
    return f"{number_tick(seconds)} s" if is_long else seconds_text(seconds, number_tick)


def bytes_tick(size: float) -> str:
    """
    >>> bytes_tick(250_000), bytes_tick(2e9)
    ('250 kB', '2 GB')
    """
    text, unit = bytes_text(round(size)).split(" ")
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


class Value(NamedTuple):
    """What a chart shows of each row, the title of its axis, and the text at a tick."""

    name: str
    axis: str
    title: str
    tick: Callable[[float], str]

    def of(self, row: Row) -> Time:
        """The row's time, or its peak of memory in the form of one."""
        if self is TOTAL:
            return row.time
        return Time(MEASURED, row.peak_rss_bytes) if row.peak_rss_bytes else Time()


TOTAL = Value("total", "time", "Time", time_tick)
MEMORY = Value("memory", "peak memory", "Peak memory", bytes_tick)
VALUES = {value.name: value for value in (TOTAL, MEMORY)}


def times_text(
    ratio: Ratio | None,
    sign: str = "× ",
    interval: bool = True,
    number_text: Callable[[float], str] = ratio_text,
) -> str:
    """A ratio with its sign and its interval, or that of a limit; empty if there is none.

    >>> times_text(Ratio(180)), times_text(Ratio(400, AT_LEAST)), times_text(Ratio(1.5, "", 1.4, 1.61), "")
    ('× 180', '> 400', '1.50 (1.40 to 1.61)')
    """
    if ratio is None:
        return ""
    if ratio.form == AT_LEAST:
        return f"> {number_text(ratio.number)}"
    text = sign + number_text(ratio.number)
    if ratio.low is None or ratio.high is None or not interval:
        return text
    return f"{text} ({ratio_text(ratio.low)} to {ratio_text(ratio.high)})"


def status_text(row: Row) -> str:
    return row.status.replace("_", " ")


def proof_text(row: Row) -> str:
    """The verdict on its merges, or how it ended.

    "wrong at merge 12", "identical (raw_bytes)", "unproved", "timeout"
    """
    identity = row.identity
    if row.status == "mismatch":
        merge = identity.merge
        return f"wrong at merge {count_text(merge)}" if merge else WRONG
    if row.status != "ok":
        return status_text(row)
    if row.disputed:
        return f"{row.digest} {UNPROVED_MARK}"

    if row.by_design:
        differs = BY_DESIGN.replace("_", " ")
        return differs if row.other_merges else "identical on its own words"
    if not row.proved:
        return UNPROVED
    kind, tie_break = str(identity.kind).replace("_", " "), identity.tie_break
    return kind if tie_break in (None, GREATEST_BYTES.value) else f"{kind} ({tie_break})"


def failure_text(row: Row) -> str:
    """What happened to a row that has no times, or in which of its blocks it failed.

    "timeout: over limits.wall=20 s, after 311 of 743 merges"
    """
    if row.status == "mismatch":
        reason = row.identity.reason if row.identity.kind == WRONG else row.reason
        return f"wrong merges, so no time is shown: {one_line(reason or '')}"

    if row.status == "ok":
        return one_line(row.reason)
    text = status_text(row)
    if row.reason:
        text += f": {one_line(row.reason)}"
    done, requested = row.record.measurement.merges_done, row.requested_merges
    if done and requested is not None and done < requested:
        text += f", after {count_text(done)} of {count_text(requested)} merges"
    return text


def join_names(names: Sequence[str]) -> str:
    """
    >>> join_names(["a", "b"]), join_names([str(number) for number in range(20)])
    ('a; b', '0; 1; 2; 3; and 16 more')
    """
    rest = len(names) - MOST_NAMED
    return "; ".join([*names[:MOST_NAMED], f"and {rest} more"] if rest > 1 else names)
