"""What a page is about: the rows of one set of records, or of two side by side, each row with its name and its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.fairness import incomparable
from harness.legend import NOT_MEASURED, Legend
from harness.rows import Row, rows

_OF_THE_TASK = ("data", "vocab size", "pattern", "special tokens", "errors", "min_count")
"""The settings that tell one question from another."""
_SAID = {"vocab size": "vocabulary", "special tokens": "special tokens", "errors": "errors", "min_count": "min_count"}
"""Those whose values say nothing without their name."""


@dataclass(frozen=True)
class Shown:
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


def shown_of(sets: Mapping[str, Sequence[Mapping[str, Any]]]) -> Shown:
    """The rows of sets of records, by the name of each set; cells of two sets never become one row."""
    named = _beside_each_other([(name, row) for name, records in sets.items() for row in rows(records)])
    everything = [row for _, row in named]
    legend = Legend(everything)
    owners = [name for name, _ in named]
    tasks = [_task(legend, place) for place in range(len(everything))]
    brief = [""] * len(everything)
    for task in dict.fromkeys(tasks):
        places = [place for place, each in enumerate(tasks) if each == task]
        labels = Legend([everything[place] for place in places]).short_labels()
        for place, label in zip(places, _owned(labels, [owners[place] for place in places]), strict=True):
            brief[place] = label
    return Shown(everything, legend, _owned(legend.short_labels(), owners), brief, tasks, owners)


def _beside_each_other(named: Sequence[tuple[str, Row]]) -> list[tuple[str, Row]]:
    """The same cells of several sets one after the other, in the order of the first set."""
    labels = Legend([row for _, row in named]).short_labels()
    first = {label: place for place, label in reversed([*enumerate(labels)])}
    return [named[place] for place in sorted(range(len(named)), key=lambda place: (first[labels[place]], place))]


def _owned(labels: Sequence[str], owners: Sequence[str]) -> list[str]:
    """Labels with whose rows they name, no two alike."""
    return _told_apart([f"{label} · {name}" if name else label for label, name in zip(labels, owners, strict=True)])


def _task(legend: Legend, place: int) -> str:
    """A task in words: its corpus, and of other settings those in which the rows differ."""
    row = legend.rows[place]
    parts = [str(row.corpus.get("name"))] if "data" not in legend.columns else []
    for title in _OF_THE_TASK:
        text = legend.columns[title][place] if title in legend.columns else NOT_MEASURED
        if text != NOT_MEASURED:
            parts.append(f"{_SAID[title]} {text}" if title in _SAID else text)
    return ", ".join(parts)


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
