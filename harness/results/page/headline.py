"""What a page says first: who is fastest, by how much, and whether all came to the same merges."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.common.units import rate_text, ratio_text
from harness.results.columns import mark_of
from harness.results.notes import told_apart
from harness.results.page.page_rows import PageRows
from harness.results.page.ranking import comparable_groups, from_the_fastest
from harness.results.rows import Row

MOST_TASKS = 3
"""Of more tasks a table says who is fastest."""
MOST_LEVEL = 2


def headlines(page_rows: PageRows) -> list[tuple[str, str]]:
    """For each task its name, empty where there is one alone, and a sentence; nothing for many tasks."""
    groups = comparable_groups(page_rows)
    if not groups or len(groups) > MOST_TASKS:
        return []
    ranked = page_rows.rows
    return [
        (page_rows.tasks[group[0]] if len(groups) > 1 else "", _sentence(page_rows, ranked, group)) for group in groups
    ]


def _sentence(page_rows: PageRows, ranked: Sequence[Row], group: Sequence[int]) -> str:
    ordered = from_the_fastest(ranked, group)
    first, names = ranked[ordered[0]], [_without_runs(name) for name in page_rows.brief]
    least = first.total or 0.0
    level = [place for place in ordered[1:] if not told_apart(first, ranked[place])]
    slower = [place for place in ordered[1:] if place not in level]
    said = f"{names[ordered[0]]} {rate_text(least) if least >= 0.1 else f'{least:.3g}'} s{mark_of(first)}"
    if level:
        others = len(level) - MOST_LEVEL
        beside = [names[place] for place in level[:MOST_LEVEL]] + ([f"{others} more"] if others > 0 else [])
        said += f", level with {_listed(beside)}"
    times = [(ratio_text((ranked[place].total or 0.0) / least), names[place]) for place in slower[:1] + slower[1:][-1:]]
    if times:
        said += f": {times[0][0]} times as fast as {times[0][1]}"
        said += "".join(f", {ratio} times as fast as {name}" for ratio, name in times[1:])
    return f"{said}{_proved(page_rows, group)}."


def _without_runs(name: str) -> str:
    """
    >>> _without_runs("flat x6"), _without_runs("heap x6, threads 2"), _without_runs("max")
    ('flat', 'heap, threads 2', 'max')
    """
    return re.sub(r" x\d+(?=$|,)", "", name)


def _proved(page_rows: PageRows, group: Sequence[int]) -> str:
    """How many of a task's rows have right merges, and what became of the others."""
    first = page_rows.rows[group[0]]
    rows = [row for place, row in enumerate(page_rows.rows) if page_rows.tasks[place] == page_rows.tasks[group[0]]]
    if first.counting_only or len(rows) < 2:
        return ""
    wrong = sum(row.status == "mismatch" or bool(row.disputed) for row in rows)
    stopped = sum(row.status in ("extrapolated", "timeout") for row in rows)
    ended = sum(row.status not in ("ok", "mismatch") for row in rows) - stopped
    proved = [row for row in rows if row.confirmed and row.status == "ok"]
    same = len({row.digest for row in proved}) == 1
    how = "all" if len(proved) == len(rows) else f"{len(proved)} of"
    counted = ((wrong, "wrong"), (stopped, "stopped at the limit"), (ended, "without a time"))
    rest = [f"{number} {text}" for number, text in counted if number]
    return "; ".join(["", f"{how} {len(rows)} {'identical' if same else 'proved'}", *rest])


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed(["a"]), _listed(["a", "b", "2 more"])
    ('a', 'a, b and 2 more')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
