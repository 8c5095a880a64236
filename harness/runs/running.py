"""What one command does once its cells are known: measure, prove and record task by task, save, show."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from harness.common import errors
from harness.common.console import say
from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal
from harness.common.units import count_text
from harness.measure import lock
from harness.measure.environment import machine, timed_on
from harness.proof import WRONG
from harness.records.file import Record, RecordFile
from harness.runs.cells import CountCell, TrainCell, cells_of, count_key, distinct, tasks_of
from harness.runs.command_line import Composed, compose
from harness.runs.outcome import Counted, Trained
from harness.runs.plan_shown import show_plan
from harness.runs.resume import RunLog, open_log, plan_key, without_folders
from harness.runs.schedule import Run, count_cells, now
from harness.runs.settings import Settings, settings_of
from harness.tokenizers import folder as tokenizer_folder

WHOLE_COMMAND = "results, save, repeat, measure, seed, plan, rerun, overwrite, concurrent and affinity"

LEAST_CPU_SECONDS = 0.1
"""Below this, half of it is nothing that one could speak of."""

Show = Callable[[Sequence[Record], Sequence[str]], None]
"""Called with the records of a run, those of its counters among them, and with notes for their reader."""


class Plan(NamedTuple):
    """What one command measures: its cells, and the settings that they share."""

    cells: list[TrainCell]
    settings: Settings


def planned(overrides: Sequence[str]) -> Plan:
    """From overrides to cells, as `python -m harness` takes them. Raises Refusal for what cannot be meant."""
    composed = compose(overrides)
    if composed is None:
        raise Refusal(f"{' '.join(overrides)} asks for information, so there is nothing to measure; leave that out")
    return plan_of(composed, overrides)


def plan_of(composed: Sequence[Composed], overrides: Sequence[str] = ()) -> Plan:
    """The cells of all configurations that the overrides were composed to."""
    settings = {settings_of(each.config) for each in composed}
    if len(settings) > 1:
        raise Refusal(f"{WHOLE_COMMAND} hold for the whole command; give each one value")
    cells = [cell for each in composed for cell in cells_of(each.config, each.said)]
    return Plan(cells, replace(settings.pop(), overrides=tuple(map(without_folders, overrides))))


def run_plan(plan: Plan, folder: Path, show: Show, console: Console) -> int:
    """Measure all cells task by task, prove, store and show them; returns the exit code.

    `show` is called only if a counter counted any words; a plan is printed on `console`.
    """
    if plan.settings.plan_only:
        show_plan(distinct(plan.cells), plan.settings, console)
        return OK
    results = Results()
    with recording(plan) as log:
        try:
            measure_tasks(plan, folder, log, results)
        finally:  # a full disk must not cost the table as well, nor an interruption that of the tasks before it
            if results.any_words:
                show(results.records, [*remarks(plan.cells), *dict.fromkeys(results.notes)])
        log.finish()
    if not results.any_words and results.uncounted:
        code = MISMATCH if results.disagreements else UNMEASURED
        raise Refusal("; ".join(results.disagreements or sorted(results.uncounted)), code)
    return exit_code(results.records, results.disagreements)


def records_of(plan: Plan, folder: Path) -> list[Record]:
    """Measure all cells as one run; returns its records, which are stored as well."""
    results = Results()
    with recording(plan) as log:
        measure_tasks(plan, folder, log, results)
        log.finish()
    return results.records


class Results:
    """The results of a command's tasks, as far as they are measured."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.notes: list[str] = []
        self.disagreements: list[str] = []
        self.uncounted: set[str] = set()
        self.any_words = False

    def add(self, run: Run) -> None:
        """Take over the results of a task."""
        records = run.records()
        self.records += records
        self.notes += notes(run)
        self.disagreements += run.disagreements
        self.any_words |= any(counted.words is not None for counted in run.counts.values())
        self.any_words |= any(record["cell"] == "train" and record["merges"] is not None for record in records)
        self.uncounted |= reasons_not_counted(run)


def measure_tasks(plan: Plan, folder: Path, log: RunLog, results: Results) -> None:
    """Measure, prove, store and save task by task; `results` fills task by task."""
    tasks = tasks_of(plan.cells)
    saving = Saving(plan, results.notes, resumed=log.attempt > 1)
    for number, task in enumerate(tasks):
        if len(tasks) > 1:
            say(f"task {count_text(number + 1)} of {count_text(len(tasks))}: {task_text(task)}")
        run = Run(task, plan.settings, folder / str(number), log, number, saving)
        try:
            run.measure_all()
        except Refusal:  # of a full disk; what was measured is shown all the same
            results.add(run)
            raise
        results.add(run)
        report_stale_build(run.records())


@contextlib.contextmanager
def recording(plan: Plan) -> Iterator[RunLog]:
    """The machine for this run alone, and its log. Raises Refusal if its results cannot be written."""
    cells, settings = distinct(plan.cells), plan.settings
    with lock.timing(settings.concurrent) if settings.measure.timed else contextlib.nullcontext():
        key = plan_key(cells, settings, timed_on(machine()))
        store = RecordFile(settings.results)
        with open_log(store, key, settings.overrides, now(), rerun=settings.rerun) as log:
            yield log


class Saving:
    """`save=FOLDER`: each tokenizer is written as soon as its merges are proved."""

    def __init__(self, plan: Plan, notes: list[str], *, resumed: bool) -> None:
        """Raises Refusal if the folder cannot be written, or holds something else than this run has saved there."""
        self.settings = plan.settings
        self.notes = notes
        self.places: dict[str, Path] = {}
        if plan.settings.save is not None:
            self.places = places(distinct(plan.cells), plan.settings.save)
            for place in self.places.values():
                if not (resumed and (place / tokenizer_folder.MANIFEST).is_file()):
                    tokenizer_folder.check_free(place, plan.settings.overwrite)
            tokenizer_folder.check_writable(plan.settings.save)
        self.overwrite = plan.settings.overwrite or resumed

    def save(self, trained: Trained) -> None:
        """Write a tokenizer, whole or not at all; never merges that are wrong, and none twice in one run."""
        right = trained.identity is None or trained.identity.kind != WRONG
        if self.places and trained.answer["status"] == "ok" and right:
            self.notes += save_one(trained, self.places[trained.cell.key()], self.overwrite)

    def missing(self, records: Sequence[Record]) -> set[str]:
        """The keys of cells that were measured, and whose tokenizer is gone."""
        return {
            record["run_key"]
            for record in records
            if record["run_key"] in self.places
            and record["status"] == "ok"
            and not (self.places[record["run_key"]] / tokenizer_folder.MANIFEST).is_file()
        }


def task_text(task: Sequence[TrainCell]) -> str:
    """What a task is about, for people."""
    cell = task[0]
    trainers = "1 trainer" if len(task) == 1 else f"{count_text(len(task))} trainers"
    return f"{cell.reading.file.name}, vocabulary {count_text(cell.vocab_size)}, {trainers}"


def report_stale_build(records: Sequence[Record]) -> None:
    """Print how to rebuild a compiled part that is older than its sources, if something crashed as it then would."""
    failed = (record["reason"] or "" for record in records if record["status"] == "error")
    if any(map(CALLED_AMISS.search, failed)) and errors.is_build_outdated():
        say(errors.OUTDATED)


CALLED_AMISS = re.compile(r"\b(TypeError|ValueError|AttributeError|ImportError): ")


def save_one(trained: Trained, place: Path, overwrite: bool) -> list[str]:
    cell, reading = trained.cell, trained.cell.reading
    assert trained.merges is not None
    notes = tokenizer_folder.save(
        place,
        trained.merges,
        reading.corpus.special_tokens,
        reading.pattern_name,
        reading.corpus.pattern,
        overwrite=overwrite,
        tie_break=trained.tie_break or cell.tie_break,
        min_count=cell.min_count,
        data_name=reading.file.name,
        data_sha256=reading.file.sha256,
        variant=cell.variant.name,
        vocab_size_asked=cell.vocab_size,
        extended=cell.extension.learned,
    )
    written = ", ".join(name for name in tokenizer_folder.FILES if (place / name).exists())
    return [f"saved {place}: {written}", *notes]


def places(cells: Sequence[TrainCell], folder: Path) -> dict[str, Path]:
    """Where the tokenizer of each cell goes, by the cell's key: a folder each if there are several."""
    if len(cells) == 1:
        return {cells[0].key(): folder}
    return {key: folder / name for key, name in folder_names(cells).items()}


def folder_names(cells: Sequence[TrainCell]) -> dict[str, str]:
    """For each cell the variant's name and what tells it from the others; its key where that is not enough."""
    tellings = (
        lambda cell: cell.reading.file.name,
        lambda cell: str(cell.vocab_size),
        lambda cell: f"threads{cell.threads}",
        lambda cell: cell.tie_break,
    )
    differing = [telling for telling in tellings if len({telling(cell) for cell in cells}) > 1]
    names = {
        cell.key(): folder_name("-".join([cell.variant.name, *(telling(cell) for telling in differing)]))
        for cell in cells
    }
    taken = list(names.values())
    return {key: name if taken.count(name) == 1 else f"{name}-{key[:8]}" for key, name in names.items()}


def folder_name(text: str) -> str:
    """One name for one folder: an outside package names its entry points, and files their corpora, as they like.

    >>> folder_name("my.package:train-owt"), folder_name("../../etc"), folder_name("..")
    ('my.package.train-owt', '.._.._etc', '_')
    """
    name = re.sub(r"[/\\\x00-\x1f\x7f]", "_", text.replace(":", "."))
    return name if name.strip(".") else "_"


def remarks(cells: Sequence[TrainCell]) -> list[str]:
    """What there is to say of the corpora, of which two that were asked for may have become one."""
    return list(dict.fromkeys(remark for cell in cells for remark in cell.reading.file.remarks))


def notes(run: Run) -> list[str]:
    """What a reader of this run's table should know that is not in the table."""
    notes = list(run.disagreements)
    if run.busy_starts:
        notes.append(
            f"{run.busy_starts} of the measurements were begun although something else wanted the processors, or "
            "nobody could tell; wait for a quiet hour, or see python -m harness.doctor"
        )
    records = run.records()
    trained = [record for record in records if record["cell"] == "train"]
    name = run.cells[0].reading.file.name
    if any(cell.num_merges for cell in run.cells) and any(record["data"].get("words") == 0 for record in trained):
        notes.append(f"{name} holds no words, so there is nothing to merge")
    notes += [
        f"counting={record['counting']} has no compiled form of this pattern: {name} was counted by `regex`, which "
        "takes some fifty times as long"
        for record in records
        if record["cell"] == "count" and (record["tallies"] or {}).get("fell_back_to_regex")
    ]
    notes += [sentence for cell in run.cells if (sentence := quicker_later(cell, trained)) is not None]
    wide = {record["counting"] for record in records if record["cell"] == "count" and record["takes_threads"]}
    narrow = [
        record["variant"]
        for record in trained
        if (record["threads"] or 1) > 1 and record["takes_threads"] is False and record["counting"] not in wide
    ]
    if narrow:
        names = ", ".join(dict.fromkeys(narrow))
        notes.append(f"threads above 1 change nothing for {names}: neither the counter nor the trainer takes any")
    return list(dict.fromkeys(notes))


def quicker_later(cell: TrainCell, trained: Sequence[Record]) -> str | None:
    """A word on a trainer that used far less CPU time in a later block than in its first; None if it did not."""
    own = [record for record in trained if record["run_key"] == cell.key() and record["status"] == "ok"]
    counted_too = [(record["seconds"].get("read") or 0) + (record["seconds"].get("count") or 0) for record in own]
    spent = [
        record["cpu_seconds"] - counting
        for record, counting in zip(own, counted_too, strict=True)
        if record["cpu_seconds"] is not None
    ]
    if len(spent) < 2 or spent[0] < LEAST_CPU_SECONDS or min(spent[1:]) >= spent[0] / 2:
        return None
    return (
        f"{cell.variant.name} used {spent[0]:.2f} s of CPU time in its first block and {min(spent[1:]):.2f} s in a "
        "later one; it may keep results between its processes"
    )


def exit_code(records: Sequence[Record], disagreements: Sequence[str]) -> int:
    """MISMATCH before UNMEASURED before OK.

    A variant that cannot run here, and one whose total is extrapolated, is no fault unless it was all there was.
    """
    trained = [record for record in records if record["cell"] == "train"]
    statuses = {record["status"] for record in trained}
    if "mismatch" in statuses or disagreements:
        return MISMATCH
    if statuses - {"ok", "skipped", "extrapolated"} or "ok" not in statuses:
        return UNMEASURED
    return OK


def why_not_counted(cell: CountCell, counted: Counted) -> str:
    """The counter's own reason; of one that was too slow also what could be done."""
    if counted.answer["status"] != "timeout":
        return str(counted.failed_by)
    return (
        f"counting {cell.reading.file.name} with counting={cell.counter.name} was {counted.failed_by}; raise that, "
        "take a slice (data.bytes=64MB), or choose another counter"
    )


def reasons_not_counted(run: Run) -> set[str]:
    """One sentence for each counter that came to no words."""
    return {
        why_not_counted(cell, counted)
        for cell in count_cells(run.cells)
        if (counted := run.counts.get(count_key(cell))) is not None and counted.words is None
    }
