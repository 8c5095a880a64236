"""What one command does once its cells are known: measure, prove, record, save, show; or only show the plan."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from harness import alone, resume, tokenizer_files
from harness.command_line import Composed
from harness.environment import environment
from harness.errors import MISMATCH, OK, UNMEASURED, Refusal
from harness.journal import Journal, append_once, open_journal, others
from harness.outcome import Block, Counted, Trained
from harness.plan import CountCell, TrainCell, cells_of
from harness.plan_shown import show_plan
from harness.record import Record, RecordFile
from harness.schedule import Run, distinct, machine, now
from harness.settings import Settings, settings_of
from harness.table import render

WHOLE_COMMAND = "results, save, repeat, measure, seed, counts, plan, rerun, concurrent and affinity"


class PatientConsole(Console):
    """A console whose reader may leave early (`| head`): the exit code is still that of what was measured."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


def run_composed(composed: Sequence[Composed], folder: Path) -> int:
    """Measure all cells of all configurations as one run and show them; returns the exit code."""
    cells, settings = planned(composed)
    console = PatientConsole()
    if settings.plan_only:
        show_plan(distinct(cells), settings, machine(environment()), console)
        return OK
    said: list[str] = []
    with measured(cells, settings, folder) as run:
        records = run.records()
        try:
            record(run, records)
            said = save(run, settings.save)
        finally:  # a full disk must not cost the table as well
            show(run, records, said, console)
    refuse_if_nothing_counted(run)
    return exit_code(records, run.disagreements)


def records_of(composed: Sequence[Composed], folder: Path) -> list[Record]:
    """Measure all cells of all configurations as one run; returns its records, which are stored as well."""
    cells, settings = planned(composed)
    with measured(cells, settings, folder) as run:
        records = run.records()
        record(run, records)
        save(run, settings.save)
    return records


def planned(composed: Sequence[Composed]) -> tuple[list[TrainCell], Settings]:
    """The cells of all configurations, and the settings that they must share."""
    settings = {settings_of(each.config) for each in composed}
    if len(settings) > 1:
        raise Refusal(f"{WHOLE_COMMAND} hold for the whole command; give each one value")
    return [cell for each in composed for cell in cells_of(each.config, each.said)], settings.pop()


@contextlib.contextmanager
def measured(cells: Sequence[TrainCell], settings: Settings, folder: Path) -> Iterator[Run]:
    """Measure and prove, with the machine to itself; whatever breaks in, what was measured up to then is recorded."""
    store = RecordFile(settings.results)
    if settings.save is not None:
        tokenizer_files.check_writable(settings.save)
    with alone.timing(settings.concurrent) if settings.measure.timed else contextlib.nullcontext():
        journal = taken_up(distinct(cells), settings, store)
        try:
            run = Run(cells, settings, folder, journal)
            try:
                run.measure_all()
                run.prove()
            except BaseException:
                run.prove(interrupted=True)
                append_once(store, run.records(), run.run_id)
                raise
            yield run
        finally:
            journal.close()


def taken_up(cells: Sequence[TrainCell], settings: Settings, store: RecordFile) -> Journal:
    """The journal of this plan, with what an unfinished run has left in it unless that is of no use any more.

    What other runs have left is recorded as far as it goes, in case nobody goes on with them.
    """
    key = resume.plan_key(cells, settings, machine(environment()))
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


def record(run: Run, records: Sequence[Record]) -> None:
    """Store the records of a whole run, which is then finished."""
    store = RecordFile(run.settings.results)
    if run.journal is not None and run.journal.continued:
        append_once(store, records, run.run_id)
    else:
        store.append(records)
    if run.journal is not None:
        run.journal.finish()


def show(run: Run, records: Sequence[Record], said: Sequence[str], console: Console) -> None:
    """The table, and below it what its reader should know; nothing where no counter came to any words."""
    if any(counted.words is not None for counted in run.counts.values()):
        render(records, console, work=any(record["tallies"] for record in records if record["cell"] == "train"))
        for note in [*notes(run), *said]:
            console.print(note, soft_wrap=True, markup=False, highlight=False)


def save(run: Run, folder: Path | None) -> list[str]:
    """Write what was learned, a folder for each cell if there are several; never merges that are proved wrong.

    Returns what there is to say about what was written.
    """
    if folder is None:
        return []
    said = []
    learned = [trained for trained in run.trained if trained.block == Block(0) and trained.answer["status"] == "ok"]
    names = folder_names(run.cells)
    for trained in learned:
        if trained.verdict.state != "mismatch":
            said += save_one(trained, folder if len(run.cells) == 1 else folder / names[trained.cell.key()])
    return said


def save_one(trained: Trained, place: Path) -> list[str]:
    cell, reading = trained.cell, trained.cell.reading
    assert trained.merges is not None
    notes = tokenizer_files.save(
        place,
        trained.merges,
        reading.special_tokens,
        reading.pattern_name,
        reading.pattern,
        tie_break=trained.tie_break or cell.tie_break,
        min_count=cell.min_count,
        data_name=reading.file.name,
        data_sha256=reading.file.sha256,
        variant=cell.variant.name,
        vocab_size_asked=cell.vocab_size,
    )
    return [f"saved {place}: vocab.json, merges.txt, manifest.json", *notes]


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
        cell.key(): "-".join([cell.variant.name.replace(":", "."), *(telling(cell) for telling in differing)])
        for cell in cells
    }
    taken = list(names.values())
    return {key: name if taken.count(name) == 1 else f"{name}-{key[:8]}" for key, name in names.items()}


def notes(run: Run) -> list[str]:
    """What a reader of this run's table should know besides what stands in the records."""
    said = list(run.disagreements)
    if run.restless:
        said.append(
            f"{run.restless} of the measurements were begun although something else wanted the processors, or nobody "
            "could tell; wait for a quiet hour, or see python -m harness.doctor"
        )
    for counter in run.counted:
        lent = run.counts[counter.cell.reading.key(), counter.cell.key()].words is not None
        if counter.counted.answer["status"] == "timeout" and lent:
            said.append(
                f"counting={counter.cell.counter.name} was {counter.counted.failed_by} on "
                f"{counter.cell.reading.file.name}; trainers went on with words that another counter made"
            )
    for trained in run.trained:
        if trained.cell.num_merges and trained.counted.answer.get("words", {}).get("words") == 0:
            said.append(f"{trained.cell.reading.file.name} holds no words, so there is nothing to merge")
        if (trained.counted.answer.get("tallies") or {}).get("fell_back_to_regex"):
            said.append(
                f"counting={trained.cell.count.counter.name} has no compiled form of this pattern: "
                f"{trained.cell.reading.file.name} was counted by `regex`, at its speed"
            )
    alone = [
        trained.cell.variant.name
        for trained in run.trained
        if trained.cell.threads > 1
        and trained.answer.get("takes_threads") is False
        and trained.counted.answer.get("takes_threads") is False
    ]
    if alone:
        names = ", ".join(dict.fromkeys(alone))
        said.append(f"threads above 1 change nothing for {names}: neither the counter nor the trainer takes any")
    return list(dict.fromkeys(said))


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr)  # noqa: T201


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
        "take a slice (data.bytes=64MB), or say another counter"
    )


def refuse_if_nothing_counted(run: Run) -> None:
    """One sentence instead of a table of dashes when no words could be had."""
    reasons = {
        why_not_counted(cell, counted)
        for cell in run.count_cells(run.cells)
        if (counted := run.counts.get((cell.reading.key(), cell.key()))) is not None and counted.words is None
    }
    if reasons and all(counted.words is None for counted in run.counts.values()):
        code = MISMATCH if run.disagreements else UNMEASURED
        raise Refusal("; ".join(run.disagreements or sorted(reasons)), code)
