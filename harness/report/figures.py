"""Rows as a page's charts take them: plain figures beside the texts that the table has for them.

A row that may show no time has none here either.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.colours import Look, counter_look, look_of
from harness.columns import interval_text
from harness.comparison import Comparison
from harness.frame import WORK
from harness.legend import failure_text
from harness.report.shown import Shown
from harness.rows import Row, measured_phases
from harness.units import bytes_text, decimals_for, rate_text, ratio_text, seconds_texts, share_text

_FAR_APART = 8
"""From this ratio of the longest total to the shortest on, seconds alone do not show what short rows are made of."""
_MOST_POINTS = 48
"""Of a curve: as many as are told apart on a page."""


class Axis(NamedTuple):
    """A size that totals may grow with."""

    label: str
    title: str
    size: Callable[[Row], int | None]
    setting: str
    """The title of the legend's column that holds it."""


AXES = (
    Axis("the corpus' bytes", "bytes of the corpus", lambda row: row.corpus.get("bytes"), "data"),
    Axis("the vocabulary", "size of the vocabulary", lambda row: row.record.get("vocab_size"), "vocab size"),
    Axis("threads", "threads", lambda row: row.record.get("threads"), "threads"),
)


@dataclass(frozen=True)
class Figures:
    """What the charts of one page share: the rows' figures, and the lists that the fields of each refer to."""

    rows: Sequence[Mapping[str, Any]]
    names: Mapping[str, Look]
    phases: Sequence[str]
    tallies: Sequence[str]
    axes: Sequence[int]
    counting_only: bool
    far_apart: bool


def figures_of(shown: Shown, ratios: Mapping[int, Comparison] | None = None) -> Figures:
    """The figures of these rows; `ratios` are those to the row of another set, by the place of the row."""
    rows = shown.rows
    phases = [phase for phase in measured_phases(rows) if any(row.seconds.get(phase) for row in rows)]
    counted = dict.fromkeys(name for row in rows if row.status == "ok" for name in row.tallies)
    tallies = [name for name in WORK if name in counted] + [name for name in counted if name not in WORK]
    decimals = decimals_for(row.total for row in rows if row.total is not None)
    lines = [_lines(shown, axis) for axis in AXES]
    front = _front(shown)
    figures = []
    for place, row in enumerate(rows):
        figures.append(
            {
                "id": place,
                "label": shown.brief[place],
                "name": row.name,
                "task": shown.tasks[place],
                "status": row.status,
                "failure": None if row.status == "ok" else failure_text(row),
                "proof": "unconfirmed" if row.status == "ok" and not row.confirmed else row.status,
                **_seconds(row, phases, decimals),
                "low": row.extrapolated.get("low_seconds"),
                "high": row.extrapolated.get("high_seconds"),
                "in_both": True if row.total is not None and row.peak_rss_bytes is not None else None,
                "bytes_of_memory": row.peak_rss_bytes,
                "memory_text": bytes_text(row.peak_rss_bytes) if row.peak_rss_bytes is not None else "",
                **_throughput(row),
                **_ratio((ratios or {}).get(place)),
                "front": place in front,
                "sizes": [axis.size(row) for axis in AXES],
                "lines": [line.get(place, (None, ""))[0] for line in lines],
                "exponents": [line.get(place, (None, ""))[1] for line in lines],
                "work": [row.tallies.get(name) for name in tallies] if row.status == "ok" else [],
                **_curve(row),
            }
        )
    names = {row.name: counter_look(row.name) if row.counting_only else look_of(row.name) for row in rows}
    return Figures(
        figures,
        names,
        phases,
        tallies,
        [place for place, line in enumerate(lines) if line],
        bool(rows) and all(row.counting_only for row in rows),
        _far_apart(rows),
    )


def _seconds(row: Row, phases: Sequence[str], decimals: int) -> dict[str, Any]:
    total, texts = seconds_texts(list(row.seconds.values()), decimals) if row.seconds else ("", [])
    written = dict(zip(row.seconds, texts, strict=True))
    spent = [phase for phase in phases if row.seconds.get(phase)]
    runs = [sample.wall_seconds for sample in row.samples]
    several = len(runs) > 1
    return {
        "total": row.total,
        "total_text": total + ("" if row.confirmed else "?") if total else "",
        "phases": spent,
        "seconds": [max(row.seconds[phase], 0.0) for phase in spent],
        "texts": [written[phase] for phase in spent],
        "places": [phases.index(phase) for phase in spent],
        "runs": runs if several else [],
        "least": min(runs, default=None),
        "most": max(runs, default=None),
        "range_text": f"{min(runs):,.{decimals}f} to {max(runs):,.{decimals}f} ({len(runs)} runs)" if several else "1",
        "spread_text": share_text(row.spread) if row.spread is not None else "-",
    }


def _throughput(row: Row) -> dict[str, Any]:
    rate = row.per_second(row.corpus.get("bytes"), row.seconds) if row.counting_only else None
    megabytes = rate / 1e6 if rate is not None else None
    return {"megabytes": megabytes, "megabytes_text": rate_text(megabytes) if megabytes is not None else ""}


def _ratio(comparison: Comparison | None) -> dict[str, Any]:
    if comparison is None:
        return {"ratio": None, "ratio_low": None, "ratio_high": None, "ratio_text": "", "interval_text": ""}
    return {
        "ratio": comparison.ratio,
        "ratio_low": comparison.low,
        "ratio_high": comparison.high,
        "ratio_text": ratio_text(comparison.ratio),
        "interval_text": interval_text(comparison),
    }


def _curve(row: Row) -> dict[str, Any]:
    """Merges made and seconds of training so far, of the row's first record."""
    points = [point for point in row.record.get("curve") or () if row.status == "ok"]
    step = max(1, math.ceil(len(points) / _MOST_POINTS))
    kept = points[::-1][::step][::-1]  # the last point is that of all merges
    return {
        "curve_merges": [point["merges"] for point in kept],
        "curve_seconds": [
            round(math.fsum(spent for spent in point["seconds"].values() if spent is not None), 9) for point in kept
        ],
    }


def _front(shown: Shown) -> set[int]:
    """The places of rows that no row that they compare with beats both in time and in memory."""
    known = [
        (place, row.total, row.peak_rss_bytes)
        for place, row in enumerate(shown.rows)
        if row.total is not None and row.peak_rss_bytes is not None and row.confirmed
    ]
    front = set()
    for place, total, memory in known:
        rivals = [each for each in known if shown.comparable(place, each[0])]
        if not any(
            (seconds, size) != (total, memory) and seconds <= total and size <= memory for _, seconds, size in rivals
        ):
            front.add(place)
    return front


def _lines(shown: Shown, axis: Axis) -> dict[int, tuple[str, str]]:
    """For the places of rows that differ in this size alone: the name of their line, and its exponent."""
    lines: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(shown.rows):
        if row.total is None or not axis.size(row):
            continue
        others = [texts[place] for title, texts in shown.legend.columns.items() if title != axis.setting]
        # Slices of one corpus have one name; those of another are another line.
        lines.setdefault(
            (shown.sets[place], shown.legend.names[place], str(row.corpus.get("name")), *others), []
        ).append(place)
    named: dict[int, tuple[str, str]] = {}
    for key, places in lines.items():
        points = [(axis.size(shown.rows[place]) or 0, shown.rows[place].total or 0.0) for place in places]
        if len({size for size, _ in points}) > 1:
            name = ", ".join(dict.fromkeys(part for part in key if part not in ("", "-")))
            named |= dict.fromkeys(places, (name, _exponent(points)))
    return named


def _exponent(points: Sequence[tuple[int, float]]) -> str:
    slope = statistics.linear_regression([math.log(size) for size, _ in points], [math.log(s) for _, s in points]).slope
    return f"{slope:.2f}"


def _far_apart(rows: Sequence[Row]) -> bool:
    totals = [row.total for row in rows if row.total]
    return bool(totals) and max(totals) > _FAR_APART * min(totals)
