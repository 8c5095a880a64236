"""The rows of a page: what each is called, whose it is, and what it was to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.results.fairness import incomparable
from harness.results.legend import Legend
from harness.results.rows import Row, rows
from harness.runs.fields import WORK


@dataclass(frozen=True)
class PageRows:
    """Rows in the order of the table; every list has an item for each of them.

    `labels` name them, no two alike; `brief` does so beside rows of one task. `tasks` are what they were to do: the
    times of rows of one task are there to be compared. `sets` say whose they are, empty where there is one set alone.
    """

    rows: Sequence[Row]
    legend: Legend
    labels: Sequence[str]
    brief: Sequence[str]
    tasks: Sequence[str]
    sets: Sequence[str]

    def comparable(self, place: int, other: int) -> bool:
        """Whether the times of two rows may be ranked: of the same work, of one set, on machines of one kind."""
        row, beside = self.rows[place], self.rows[other]
        same_host = row.record.get("host") == beside.record.get("host")
        same_work = row.question == beside.question and incomparable(row, beside) is None
        return same_host and same_work and self.sets[place] == self.sets[other]


def rows_of_page(sets: Mapping[str, Sequence[Mapping[str, Any]]]) -> PageRows:
    """The rows of sets of records, by the name of each set; cells of two sets never become one row."""
    named = _beside_each_other([(name, row) for name, records in sets.items() for row in rows(records)])
    everything = [row for _, row in named]
    legend = Legend(everything)
    owners = [name for name, _ in named]
    tasks = [_task(legend, place) for place in range(len(everything))]
    brief = [""] * len(everything)
    by_task: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        by_task.setdefault(task, []).append(place)
    for places in by_task.values():
        labels = Legend([everything[place] for place in places]).short_labels()
        for place, label in zip(places, _owned(labels, [owners[place] for place in places]), strict=True):
            brief[place] = label
    return PageRows(everything, legend, _owned(legend.short_labels(), owners), brief, tasks, owners)


def _beside_each_other(named: Sequence[tuple[str, Row]]) -> list[tuple[str, Row]]:
    """The same cells of several sets one after the other, in the order of the first set."""
    labels = Legend([row for _, row in named]).short_labels()
    first = {label: place for place, label in reversed([*enumerate(labels)])}
    return [named[place] for place in sorted(range(len(named)), key=lambda place: (first[labels[place]], place))]


def _owned(labels: Sequence[str], owners: Sequence[str]) -> list[str]:
    """Labels with whose rows they name, no two alike."""
    return _told_apart([f"{label} · {name}" if name else label for label, name in zip(labels, owners, strict=True)])


def _task(legend: Legend, place: int) -> str:
    """A task in words: its corpus, and what else decides the work where the rows differ in it."""
    row = legend.rows[place]
    corpus = legend.columns["data"][place] if "data" in legend.columns else str(row.corpus.get("name"))
    differing = [field.name for field in WORK if field in legend.differing and field.name in row.words]
    return ", ".join(filter(None, (corpus, *(row.words[name].said for name in differing))))


def _told_apart(labels: Sequence[str]) -> list[str]:
    """The labels with a number behind those that have occurred before.

    >>> _told_apart(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    seen: dict[str, int] = {}
    apart = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        apart.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return apart
