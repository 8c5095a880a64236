"""A board: who takes how long, on which corpus, to which vocabulary, with how much memory and whose merges.

A table for each corpus and vocabulary, ranked by the best time of each trainer, with a verdict in one line that names
what is wrong first, the merges, and then where the time goes. What made other merges is shown and not ranked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.common.comparison import Comparison, compare
from harness.common.sheet import Column, Sheet
from harness.common.units import bytes_text, count_text, counted_text, duration_text, one_line, ratio_text, share_text
from harness.proof import IDENTICAL
from harness.results.charts.race import name_of
from harness.results.charts.values import SIGNS, value_of
from harness.results.columns import proof_text
from harness.results.fairness import given_sheet
from harness.results.legend import NOT_MEASURED, Legend
from harness.results.rows import Row

UNRANKED = NOT_MEASURED
LEAST_SHARE = 0.4
"""A phase with less of the time than this is not where the time goes."""
ABOUT_EQUAL = 1.05
"""What threads gain below this is nothing that one would choose them for."""


@dataclass(frozen=True)
class Place:
    """One trainer in one table: its rows by threads, and the reference's."""

    rows: Mapping[int, Row]
    references: Mapping[int, Row]

    @property
    def first(self) -> Row:
        return self.rows[min(self.rows)]

    @cached_property
    def best(self) -> Row | None:
        """Its fastest row; None where none has a time."""
        timed = [row for row in self.rows.values() if row.total is not None]
        return min(timed, key=lambda row: row.total or 0.0, default=None)

    @property
    def is_ranked(self) -> bool:
        return self.best is not None and (not self.best.by_design or is_right_of_its_own(self.best))

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Ranked by time, then those of other merges, then what has no time, what is extrapolated first."""
        seconds = self.best.total if self.best is not None else self.first.extrapolated.get("total_seconds")
        return self.best is None, not self.is_ranked, math.inf if seconds is None else seconds


@dataclass(frozen=True)
class Section:
    """A corpus and a vocabulary with all that were measured on it, the best first."""

    rows: Sequence[Row]
    programs: Mapping[str, str]
    """The name and version of each trainer's program: a run that was stopped could not tell it, another one has."""

    @cached_property
    def corpus(self) -> str:
        return str(self.rows[0].corpus.get("name"))

    @cached_property
    def vocab_size(self) -> int:
        return int(self.rows[0].record["vocab_size"])

    @property
    def title(self) -> str:
        return f"{self.corpus}, {count_text(self.vocab_size)} tokens"

    @property
    def picture(self) -> str:
        """The name of its picture's file."""
        return f"{self.corpus}-{self.vocab_size}.svg".replace("/", "_").replace(" ", "_")

    def trainer(self, place: Place) -> str:
        return self.programs.get(place.first.name, place.first.name)

    @cached_property
    def widths(self) -> list[int]:
        return sorted({threads_of(row) for row in self.rows})

    @cached_property
    def places(self) -> list[Place]:
        by_name: dict[str, dict[int, Row]] = {}
        for row in self.rows:
            by_name.setdefault(row.name, {})[threads_of(row)] = row
        found = {width: reference_of(self.rows, width) for width in self.widths}
        references = {width: row for width, row in found.items() if row is not None}
        return sorted((Place(rows, references) for rows in by_name.values()), key=lambda place: place.order)


def sections(rows: Sequence[Row]) -> list[Section]:
    """The tables of a board, the corpora in their order and the vocabularies from the smallest up."""
    groups: dict[tuple[Any, int], list[Row]] = {}
    for row in rows:
        if not row.counting_only and row.record.get("vocab_size") is not None:
            groups.setdefault((row.corpus.get("sha256"), row.record["vocab_size"]), []).append(row)
    corpora = list(dict.fromkeys(corpus for corpus, _ in groups))
    ordered = sorted(groups, key=lambda key: (corpora.index(key[0]), key[1]))
    programs = {row.name: name_of(row) for row in rows if row.record.get("feeding")}
    return [Section(groups[key], programs) for key in ordered]


def threads_of(row: Row) -> int:
    return int(row.record.get("threads") or 1)


def reference_of(rows: Sequence[Row], threads: int) -> Row | None:
    """What others are compared with at a width: what the run itself compared with, else the first that has a time."""
    timed = [row for row in rows if threads_of(row) == threads and row.total is not None]
    named = {(row.record.get("precision") or {}).get("reference") for row in timed}
    return next((row for row in timed if row.name in named), timed[0] if timed else None)


def sheet_of(section: Section) -> Sheet:
    """The table of a section."""
    places = section.places
    ranks = [str(number) if place.is_ranked else UNRANKED for number, place in enumerate(places, 1)]
    columns = [
        Column("rank", ranks),
        Column("trainer", [section.trainer(place) for place in places], figures=False),
        *(
            Column(counted_text(width, "thread"), [time_text(place.rows.get(width)) for place in places])
            for width in section.widths
        ),
        Column("memory", [memory_text(place) for place in places]),
        Column("merges", [merges_text(place.best or place.first) for place in places], figures=False),
        Column("verdict", [verdict(place) for place in places], figures=False),
    ]
    return Sheet([], columns, ["" for _ in places], [])


def time_text(row: Row | None) -> str:
    """Seconds; what a limit ended with the limit or the estimate, and anything else by its name."""
    if row is None:
        return NOT_MEASURED
    if row.total is not None:
        return f"{row.total:.3f} s" if row.total < 10 else duration_text(row.total)
    value = value_of(row, "total")
    if value.number is not None:
        return f"{SIGNS[value.form]}{duration_text(value.number)}"
    return "wrong" if row.status == "mismatch" else row.status.replace("_", " ")


def merges_text(row: Row) -> str:
    return proof_text(row) if row.status in ("ok", "mismatch") else NOT_MEASURED


def limit_of(row: Row) -> float | None:
    return (row.record.get("limits") or {}).get("wall_seconds")


def memory_text(place: Place) -> str:
    peak = place.best.peak_rss_bytes if place.best is not None else None
    return NOT_MEASURED if peak is None else bytes_text(peak)


def verdict(place: Place) -> str:
    """One line: what is wrong with its merges, else how it compares, what threads gain, and where its time goes."""
    wrong = next((row for row in place.rows.values() if row.status == "mismatch"), None)
    if wrong is not None:
        reason = wrong.identity.get("reason") or wrong.reason or "they are not the defined ones"
        return f"wrong merges, so that no time counts: {one_line(reason)}"
    row = next((place.rows[width] for width in sorted(place.rows) if place.rows[width].total is not None), None)
    if row is None:
        return without_time(place)
    parts = [compared(row, place.references.get(threads_of(row))), gain(place), spent_on(row)]
    if is_right_of_its_own(row):
        parts.append(f"of words of its own, on which its merges are {row.identity['of_own_words']}")
    elif row.by_design:
        reason = str(row.identity.get("reason") or "").rpartition("; ")[0] or "it says so itself"
        parts.insert(0, f"not ranked, other merges by design: {one_line(reason)}")
    return "; ".join(filter(None, parts))


def is_right_of_its_own(row: Row) -> bool:
    """Whether its merges are others only because its words are: on its own words they are as right as anybody's."""
    return row.by_design and str(row.identity.get("of_own_words") or "").startswith(IDENTICAL)


def without_time(place: Place) -> str:
    """Why nothing is known of its time, or what is."""
    row = place.first
    reference, limit = place.references.get(threads_of(row)), limit_of(row)
    if row.status not in ("timeout", "extrapolated") or limit is None or reference is None or not reference.total:
        return one_line(row.reason) or row.status
    stopped, seconds = f"it was stopped at {duration_text(limit)}", row.extrapolated.get("total_seconds")
    if seconds is None:
        return f"{stopped}: at least {ratio_text(limit / reference.total)} times the time of {reference.name}"
    low, high = (duration_text(row.extrapolated[f"{end}_seconds"]) for end in ("low", "high"))
    took = f"all of it would take about {duration_text(seconds)} ({low} to {high})"
    return f"{stopped}; {took}, {ratio_text(seconds / reference.total)} times the time of {reference.name}"


def compared(row: Row, reference: Row | None) -> str:
    """How many times the reference's time it takes, with the interval that its run has found."""
    if reference is None or row is reference:
        return "what the others are compared with" if row is reference else ""
    ratio, found = ratio_to(reference, row)
    told = f"{ratio_text(ratio)} times the time of {reference.name} on {counted_text(threads_of(row), 'thread')}"
    if found is not None and found.low is not None and found.high is not None:
        told += f" ({ratio_text(found.low)} to {ratio_text(found.high)}, {found.blocks} blocks)"
    elif found is not None:
        undisturbed = f"{found.blocks} of {found.blocks + found.left_out} blocks undisturbed"
        told += f" ({undisturbed if found.left_out else counted_text(found.blocks, 'block')}, too few for an interval)"
    else:
        told += " (in another run, so without an interval)"
    return told


def ratio_to(reference: Row, row: Row) -> tuple[float, Comparison | None]:
    """How many times the reference's time a row takes, and the comparison within blocks, if they share any."""
    found = compare(row.samples, reference.samples)
    return found.ratio if found is not None else (row.total or 0.0) / (reference.total or 1.0), found


def gain(place: Place) -> str:
    """What more threads bring, where it was measured with more than one; what the spread can explain is no gain."""
    one, more = place.rows.get(1), place.rows.get(max(place.rows))
    if one is None or more is None or one is more or not one.total or not more.total:
        return ""
    ratio, width = one.total / more.total, count_text(threads_of(more))
    if all(sample.kept_waiting for sample in more.samples):
        return f"with {width} threads it had to wait for a processor"
    (fewest, longest), (least, most) = ([pick(_walls(row)) for pick in (min, max)] for row in (one, more))
    if max(ratio, 1 / ratio) < ABOUT_EQUAL or (least <= longest and fewest <= most):
        return f"no clear gain with {width} threads"
    return f"{width} threads make it {ratio:.1f} times as fast" if ratio > 1 else f"{width} threads slow it down"


def _walls(row: Row) -> list[float]:
    return [sample.wall_seconds for sample in row.samples]


def spent_on(row: Row) -> str:
    """The phase that most of the time goes to, of a trainer that tells its phases."""
    if len(row.seconds) < 2 or not row.total:
        return ""
    phase, seconds = max(row.seconds.items(), key=lambda item: item[1])
    share = seconds / row.total
    return f"{share_text(share)} of it in {phase}" if phase != "other" and share >= LEAST_SHARE else ""


def headline(board: Sequence[Section]) -> str:
    """Who is first in how many tables, and how far behind the next one is; nothing where there is nobody to lead."""
    led: dict[str, list[float]] = {}
    for section in board:
        ranked = [place for place in section.places if place.is_ranked]
        if len(ranked) > 1:
            first, second = (place.best for place in ranked[:2])
            assert first is not None
            assert second is not None
            led.setdefault(section.trainer(ranked[0]), []).append(ratio_to(first, second)[0])
    told = []
    for name, ratios in sorted(led.items(), key=lambda item: -len(item[1])):
        least, most = ratio_text(min(ratios)), ratio_text(max(ratios))
        behind = least if least == most else f"{least} to {most}"
        told.append(
            f"**{name}** is fastest in {len(ratios)} of {len(board)} tables; the next one takes {behind} times as long."
        )
    return " ".join(told)


def ratios_sheet(board: Sequence[Section]) -> Sheet:
    """Which ratio holds where: a line for each trainer, a column for each table, of the fewest threads."""
    names = list(dict.fromkeys(section.trainer(place) for section in board for place in section.places))
    columns = [Column("trainer", names, figures=False)]
    for section in board:
        told = {section.trainer(place): ratio_cell(place) for place in section.places}
        columns.append(Column(section.title, [told.get(name, NOT_MEASURED) for name in names]))
    return Sheet([], columns, ["" for _ in names], [])


def ratio_cell(place: Place) -> str:
    """How many times the reference's time at the fewest threads; with a star where its merges are others by design."""
    row = place.first
    reference = place.references.get(threads_of(row))
    if reference is None or not reference.total:
        return NOT_MEASURED
    if row.total is None:
        value = value_of(row, "total")
        if value.number is None:
            return time_text(row)
        return f"{SIGNS[value.form]}{ratio_text(value.number / reference.total)}"
    return ratio_text(ratio_to(reference, row)[0]) + ("*" if row.by_design else "")


def fed_sheet(rows: Sequence[Row]) -> Sheet:
    """What each was given, and in which way."""
    return given_sheet(Legend(rows))
