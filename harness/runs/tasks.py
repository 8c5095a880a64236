"""task_by_task=true: each task of a long plan is a run of its own, and what is finished stays finished.

A task is what its cells are compared within: a corpus, a vocabulary, a tie-break, a number of threads. A plan of hours
so has results after minutes, and an interruption costs one block of one task. Which tasks are finished stands in
`<results>/unfinished/tasks-KEY.jsonl` until all of them are.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Hashable, Sequence

from harness.common.errors import Refusal
from harness.common.streams import say
from harness.common.units import count_text, counted_text
from harness.measure.environment import machine, timed_on
from harness.runs.cells import TrainCell
from harness.runs.journal import UNFINISHED, plan_key
from harness.runs.known import question_of
from harness.runs.record import Record, read_records, unwritable
from harness.runs.schedule import distinct
from harness.runs.settings import Settings


def tasks_of(cells: Sequence[TrainCell]) -> list[list[TrainCell]]:
    """The cells by what is asked of them, in the order in which they were."""
    tasks: dict[Hashable, list[TrainCell]] = {}
    for cell in distinct(cells):
        tasks.setdefault(question_of(cell), []).append(cell)
    return list(tasks.values())


def task_text(cell: TrainCell) -> str:
    """What a task is about, for people."""
    threads = counted_text(cell.threads, "thread")
    return f"{cell.reading.file.name}, vocabulary {count_text(cell.vocab_size)}, {threads}"


class Finished:
    """The tasks of a plan that are done, each with the run that did it: on disk as soon as it is."""

    def __init__(self, cells: Sequence[TrainCell], settings: Settings) -> None:
        """Take up what an earlier command of the same plan has finished, unless rerun=true."""
        self.settings = settings
        self.machine = timed_on(machine())
        self.path = settings.results / UNFINISHED / f"tasks-{plan_key(distinct(cells), settings, self.machine)}.jsonl"
        self.runs: dict[str, str] = {}
        if settings.rerun:
            self.forget()
        with contextlib.suppress(FileNotFoundError):
            self.runs = dict(map(json.loads, self.path.read_text().splitlines()))

    def key(self, task: Sequence[TrainCell]) -> str:
        return plan_key(task, self.settings, self.machine)

    def add(self, task: Sequence[TrainCell], run_id: str) -> None:
        """Note that a task is done. Raises Refusal if the disk is full."""
        self.runs[self.key(task)] = run_id
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps([self.key(task), run_id]) + "\n")
        except OSError as error:
            raise unwritable(self.settings.results, error) from error

    def forget(self) -> None:
        """All tasks are done, or none is to count as done."""
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another run is unfinished, or there is no folder
            self.path.parent.rmdir()

    def waiting(self, tasks: Sequence[list[TrainCell]]) -> list[list[TrainCell]]:
        """The tasks that are still to be done; who goes on is told how many were."""
        left = [task for task in tasks if self.key(task) not in self.runs]
        if len(left) < len(tasks):
            say(
                f"{count_text(len(tasks) - len(left))} of {count_text(len(tasks))} tasks were finished before; "
                "rerun=true starts anew"
            )
        return left

    def records(self) -> list[Record]:
        """Those of all tasks that are done, from the file of records."""
        return [
            record for record in read_records([self.settings.results]) if record.get("run_id") in self.runs.values()
        ]


def refuse_to_save(settings: Settings) -> None:
    if settings.save is not None:
        raise Refusal("save=FOLDER takes the tokenizers of one run, and task_by_task=true makes many; leave one out")


def announce(number: int, of: int, task: Sequence[TrainCell]) -> None:
    say(f"task {count_text(number)} of {count_text(of)}: {task_text(task[0])}, {len(task)} trainers")
