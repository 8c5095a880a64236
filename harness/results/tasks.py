"""One table for each task: times of different corpora, sizes or vocabularies never stand under each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.common.errors import Refusal
from harness.common.sheet import Sheet
from harness.results.fairness import given_sheet, outside
from harness.results.legend import Legend
from harness.results.rows import Row
from harness.results.tables import main_sheet, work_sheet
from harness.runs.fields import Key


def by_task(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each task together, in order of first appearance.

    Rows of one variant alone stay together whatever they were asked: there a task is compared with another, and a
    variant with nobody.
    """
    tasks: dict[Key, list[Row]] = {}
    for row in rows:
        tasks.setdefault(row.question, []).append(row)
    compared = {(row.name, *sorted(row.params.items())) for row in rows}
    return list(tasks.values()) if len(compared) > 1 else [list(rows)]


def sheets_of(
    rows: Sequence[Row], work: bool = False, relative_to: str | None = None, every_run: bool = False
) -> list[Sheet]:
    """A table for each task, with `work` one of how often each row did what, and what outside trainers were given."""

    def of(task: Sequence[Row], baseline: str | None) -> list[Sheet]:
        times = main_sheet(task, baseline, every_run)
        return [times, work_sheet(task)] if work else [times]

    sheets = task_by_task(rows, of, relative_to)
    if outside(rows):
        sheets.insert(len(sheets) - work, given_sheet(Legend(rows)))
    return sheets


def task_by_task(
    rows: Sequence[Row], sheets: Callable[[Sequence[Row], str | None], list[Sheet]], relative_to: str | None = None
) -> list[Sheet]:
    """The sheets of each task, one after the other; what they share is said once.

    A task in which `relative_to` has no time has no ratios. Raises Refusal where none has.
    """
    tasks = by_task(rows)
    if len(tasks) == 1:
        return sheets(tasks[0], relative_to)
    made: list[Sheet] = []
    refused: list[Refusal] = []
    for task in tasks:
        try:
            made += sheets(task, relative_to)
        except Refusal as refusal:
            refused.append(refusal)
            made += sheets(task, None)
    if len(refused) == len(tasks):
        raise refused[0]
    return _said_once(made)


def _said_once(sheets: Sequence[Sheet]) -> list[Sheet]:
    """The sheets with a line of a caption where it first appears, and a note where it last does."""
    made, above, below = list(sheets), set[str](), set[str]()
    for place, sheet in enumerate(made):
        made[place] = replace(sheet, caption=[line for line in sheet.caption if line not in above])
        above.update(sheet.caption)
    for place, sheet in reversed([*enumerate(made)]):
        made[place] = replace(sheet, notes=[note for note in sheet.notes if note not in below])
        below.update(sheet.notes)
    return made
