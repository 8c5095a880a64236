"""Which rows of a page may be ranked together, and how many times the fastest one's time each takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.results.page.page_rows import PageRows
from harness.results.rows import Row


def comparable_groups(page_rows: PageRows) -> list[list[int]]:
    """The places of rows with a time, those together whose times may be ranked, in order of first appearance."""
    by_question: dict[Any, list[list[int]]] = {}
    for place, row in enumerate(page_rows.rows):
        if row.total is None:
            continue
        groups = by_question.setdefault(row.question, [])
        group = next((group for group in groups if page_rows.comparable(place, group[0])), None)
        if group is None:
            groups.append([place])
        else:
            group.append(place)
    return sorted(group for groups in by_question.values() for group in groups)


def from_the_fastest(rows: Sequence[Row], group: Sequence[int]) -> list[int]:
    """The places of a group's confirmed rows, or of all where none is: a time may be short as its merges are wrong."""
    proved = [place for place in group if rows[place].confirmed] or group
    return sorted(proved, key=lambda place: rows[place].total or 0.0)


def times_the_fastest(page_rows: PageRows) -> list[float | None]:
    """How many times the fastest row's total each row takes; None beside nothing that it can be compared with."""
    ranked = page_rows.rows
    times: list[float | None] = [None] * len(page_rows.rows)
    for group in comparable_groups(page_rows):
        least = ranked[from_the_fastest(ranked, group)[0]].total
        for place in group:
            times[place] = (ranked[place].total or 0.0) / least if least else None
    return times
