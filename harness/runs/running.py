"""What one command does once its cells are known: measure, prove and record task by task, save, show."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from harness.common import errors
from harness.common.console import say
from harness.common.errors import MISMATCH, OK, UNMEASURED, Refusal
from harness.common.units import count_text
from harness.measure import lock
from harness.measure.environment import machine, timed_on
from harness.measure.process import Answer
from harness.proof import WRONG
from harness.records.file import Record, RecordFile
from harness.runs import journal as resume
from harness.runs.cells import CountCell, TrainCell, cells_of, count_key, distinct, tasks_of
from harness.runs.command_line import Composed, compose
from harness.runs.journal import Journal, open_journal, others
from harness.runs.journal import append_once as append_once
from harness.runs.outcome import Block, Counted, Trained
from harness.runs.plan_shown import show_plan
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
    return plan_of(composed)


def plan_of(composed: Sequence[Composed]) -> Plan:
    """The cells of all configurations that the overrides were composed to."""
    settings = {settings_of(each.config) for each in composed}
    if len(settings) > 1:
        raise Refusal(f"{WHOLE_COMMAND} hold for the whole command; give each one value")
    return Plan([cell for each in composed for cell in cells_of(each.config, each.said)], settings.pop())


def run_plan(plan: Plan, folder: Path, show: Show, console: Console) -> int:
    """Measure all cells task by task and have them shown; returns the exit code.

    `show` is called only if a counter came to any words; a plan is printed on `console`.
    """
    if plan.settings.plan_only:
        show_plan(distinct(plan.cells), plan.settings, console)
        return OK
    results = Results()
    try:
        measure_plan(plan, folder, results)
    finally:  # a full disk must not cost the table as well, nor an interruption that of the tasks before it
        if results.any_words:
            show(results.records, [*remarks(plan.cells), *dict.fromkeys(results.notes)])
    if not results.any_words and results.uncounted:
        code = MISMATCH if results.disagreements else UNMEASURED
        raise Refusal("; ".join(results.disagreements or sorted(results.uncounted)), code)
    return exit_code(results.records, results.disagreements)


def records_of(plan: Plan, folder: Path) -> list[Record]:
    """Measure all cells as one run; returns its records, which are stored as well."""
    results = Results()
    measure_plan(plan, folder, results)
    return results.records


class Results:
    """What the tasks of a command came to, as far as they are done."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.notes: list[str] = []
        self.disagreements: list[str] = []
        self.uncounted: set[str] = set()
        self.any_words = False

    def add(self, run: Run) -> list[Record]:
        """Take over what is known of a task; returns its records."""
        records = run.records()
        self.records += records
        self.notes += notes(run)
        self.disagreements += run.disagreements
        self.any_words |= any(counted.words is not None for counted in run.counts.values())
        self.uncounted |= reasons_not_counted(run)
        return records


def measure_plan(plan: Plan, folder: Path, results: Results) -> None:
    """Measure, prove and record each task, then save what was learned; `results` fills task by task."""
    cells, settings = plan
    learned: list[Trained] = []
    with recording(cells, settings) as (store, journal):
        tasks = tasks_of(cells)
        for number, task in enumerate(tasks, 1):
            if len(tasks) > 1:
                say(f"task {count_text(number)} of {count_text(len(tasks))}: {task_text(task)}")
            run = measured(task, settings, folder / str(number), store, journal, number - 1)
            if journal.continued:  # some of these records may be stored already
                append_once(store, results.add(run), run.run_id)
            else:
                store.append(results.add(run))
            if settings.save is not None:  # else the merges of a task are free to go
                learned += [trained for trained in run.trained if trained.block == Block(0)]
        journal.finish()
        if settings.save is not None:
            results.notes += save(learned, places(distinct(cells), settings.save), settings.overwrite)


@contextlib.contextmanager
def recording(cells: Sequence[TrainCell], settings: Settings) -> Iterator[tuple[RecordFile, Journal]]:
    """The machine for this run alone, and where its records go: the file, and the journal until it is finished."""
    with lock.timing(settings.concurrent) if settings.measure.timed else contextlib.nullcontext():
        store = RecordFile(settings.results)
        if settings.save is not None:
            for place in places(distinct(cells), settings.save).values():
                tokenizer_folder.check_free(place, settings.overwrite)
            tokenizer_folder.check_writable(settings.save)
        journal = taken_up(distinct(cells), settings, store)
        try:
            yield store, journal
        finally:
            journal.close()


def measured(
    task: Sequence[TrainCell],
    settings: Settings,
    folder: Path,
    store: RecordFile,
    journal: Journal | None = None,
    number: int = 0,
) -> Run:
    """Measure and prove one task; if it is interrupted, what was measured up to then is recorded."""
    run = Run(task, settings, folder, journal, number)
    try:
        run.measure_all()
        run.prove()
        counted = [measurement.counted.answer for measurement in run.counted]
        tell_of_stale_build(counted + [trained.answer for trained in run.trained])
    except BaseException:
        run.prove(interrupted=True)
        append_once(store, run.records(), run.run_id)
        raise
    return run


def task_text(task: Sequence[TrainCell]) -> str:
    """What a task is about, for people."""
    cell = task[0]
    trainers = "1 trainer" if len(task) == 1 else f"{count_text(len(task))} trainers"
    return f"{cell.reading.file.name}, vocabulary {count_text(cell.vocab_size)}, {trainers}"


def tell_of_stale_build(answers: Sequence[Answer]) -> None:
    """Say how to mend a compiled part that is older than its sources, where something crashed as it then would."""
    failed = (answer["reason"] or "" for answer in answers if answer["status"] == "error")
    if any(map(CALLED_AMISS.search, failed)) and errors.is_build_outdated():
        say(errors.OUTDATED)


CALLED_AMISS = re.compile(r"\b(TypeError|ValueError|AttributeError|ImportError): ")


def taken_up(cells: Sequence[TrainCell], settings: Settings, store: RecordFile) -> Journal:
    """The journal of this plan, with what an unfinished run has left in it unless that is of no use any more.

    What other runs have left is recorded as far as it goes, in case nobody goes on with them.
    """
    key = resume.plan_key(cells, settings, timed_on(machine()))
    journal = open_journal(settings.results, key, now())
    if journal.entries and (settings.rerun or not resume.words_are_there(cells, journal.entries)):
        leave(journal, store)
        journal.finish()
        journal.close()
        journal = open_journal(settings.results, key, now())
    for other in others(settings.results, journal.folder):
        leave(other, store)
    if journal.entries:
        trained = sum(entry.head["cell"] == "train" for entry in journal.entries)
        say(
            f"continuing the run of {journal.run_id[:16]}, {trained} trainer runs were measured; rerun=true starts anew"
        )
    return journal


def leave(journal: Journal, store: RecordFile) -> None:
    """Record what an unfinished run has measured, each measurement by itself."""
    cut_short = [{**entry.record, "block_whole": False} for entry in journal.entries]
    append_once(store, cut_short, journal.run_id)


def save(learned: Sequence[Trained], place_of: dict[str, Path], overwrite: bool) -> list[str]:
    """Write what was learned, a folder for each cell if there are several; never merges that are proved wrong.

    Returns what there is to say about what was written.
    """
    said = []
    for trained in learned:
        right = trained.identity is None or trained.identity.kind != WRONG
        if trained.answer["status"] == "ok" and right:
            said += save_one(trained, place_of[trained.cell.key()], overwrite)
    return said


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
    """What a reader of this run's table should know besides what stands in the records."""
    said = list(run.disagreements)
    if run.restless:
        said.append(
            f"{run.restless} of the measurements were begun although something else wanted the processors, or nobody "
            "could tell; wait for a quiet hour, or see python -m harness.doctor"
        )
    for trained in run.trained:
        if trained.cell.num_merges and trained.counted.answer.get("words", {}).get("words") == 0:
            said.append(f"{trained.cell.reading.file.name} holds no words, so there is nothing to merge")
        if (trained.counted.answer.get("tallies") or {}).get("fell_back_to_regex"):
            said.append(
                f"counting={trained.cell.count.counter.name} has no compiled form of this pattern: "
                f"{trained.cell.reading.file.name} was counted by `regex`, which takes some fifty times as long"
            )
    said += [sentence for cell in run.cells if (sentence := quicker_later(cell, run)) is not None]
    narrow = [
        trained.cell.variant.name
        for trained in run.trained
        if trained.cell.threads > 1
        and trained.answer.get("takes_threads") is False
        and trained.counted.answer.get("takes_threads") is False
    ]
    if narrow:
        names = ", ".join(dict.fromkeys(narrow))
        said.append(f"threads above 1 change nothing for {names}: neither the counter nor the trainer takes any")
    return list(dict.fromkeys(said))


def quicker_later(cell: TrainCell, run: Run) -> str | None:
    """A word on a trainer that used far less CPU time in a later block than in its first; None if it did not."""
    blocks = [trained for trained in run.trained if trained.cell.key() == cell.key()]
    spent = [
        cpu
        for trained in sorted(blocks, key=lambda trained: trained.block.place)
        if trained.answer["status"] == "ok" and (cpu := trained.answer.get("cpu_seconds")) is not None
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
