"""A plan measured: cells run in blocks, and each measurement is proved and recorded before the next starts.

In each block every counter and then every trainer of a task runs once, each in a fresh process, one after another and
never two at a time. What a counter takes in a block is part of the totals of the trainers that go on from its words.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.common import registry
from harness.common.progress import Display, bar
from harness.common.registry import CounterCard, VariantCard
from harness.corpora.cards import counted_otherwise
from harness.measure.machine import environment, host, interpreter, machine, python, source_sha256
from harness.measure.process import Answer, measure, timing
from harness.proof import BY_DESIGN
from harness.records.file import Record, RunLog
from harness.runs.cells import Block, CountCell, Plan, Reading, Settings, Task, TrainCell, Words, counters_of
from harness.runs.jobs import (
    Counted,
    Trained,
    count_job,
    count_record,
    counted_from,
    read_merges,
    reads_corpus,
    train_job,
    train_record,
)
from harness.runs.resume import STOPPED, open_log, pending, precision_of
from harness.worker import word_store
from harness.worker.calling import OWN
from harness.worker.merges_bytes import merges_sha256
from variants.contract import Merge, TieBreak

if TYPE_CHECKING:
    from harness.proof.prove import Identity, MergeList


@dataclass
class Session:
    """One start of a run: the log that it continues, a folder for its processes, and what it has noticed."""

    settings: Settings
    log: RunLog
    folder: Path
    outputs: Mapping[str, Path] = field(default_factory=dict)
    """The folder of the tokenizer of each cell, by the cell's key, with save=FOLDER."""
    notes: list[str] = field(default_factory=list)
    display: Display = field(default_factory=lambda: Display(1))
    processes: int = 0
    any_words: bool = False
    uncounted: dict[str, None] = field(default_factory=dict)
    """Why counters counted no words."""
    disagreements: dict[str, None] = field(default_factory=dict)
    """The counters whose words were wrong."""
    sources: dict[str, str | None] = field(default_factory=dict)
    right_words: dict[str, str | None] = field(default_factory=dict)
    judged: dict[tuple[Any, ...], Identity] = field(default_factory=dict)
    left: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.timed = self.settings.measure.kind == "time"
        self.blocks = self.settings.blocks()

    @functools.cached_property
    def facts(self) -> Record:
        """What all records of the run share; read for the first, because looking at every module takes a while."""
        return {
            "repeat": self.settings.repeat,
            "measure": self.settings.measure.name,
            "host": host(machine()),
            "environment": environment(),
        }

    def next_folder(self) -> Path:
        self.processes += 1
        return self.folder / str(self.processes)


@contextlib.contextmanager
def session_of(plan: Plan, folder: Path) -> Iterator[Session]:
    """The machine for this run alone, and its log. Raises Refusal if its results cannot be written."""
    settings = plan.settings
    with contextlib.ExitStack() as opened:
        if settings.measure.kind == "time":
            opened.enter_context(timing(settings.concurrent))
        session = Session(settings, open_log(plan, f"{host(machine())} {python()}", now(), opened), folder)
        if settings.save is not None:
            from harness.runs.saving import output_folders  # late, as few runs save

            session.outputs = output_folders(plan.cells, settings, resumed=session.log.attempt > 1)
        yield session


def measure_task(task: Task, session: Session) -> list[Record]:
    """Measure block by block what is pending; each measurement is on disk before the next starts.

    Returns the records of the task.
    """
    log, rule = session.log, session.settings.measure.precision
    session.display = Display((len(task.cells) + len(counters_of(task.cells))) * len(session.blocks))
    while True:
        records, missing = log.records(task.number), set()
        if session.outputs:
            from harness.runs.saving import missing_tokenizers

            missing = missing_tokenizers(records, session.outputs)
        due = pending(task.cells, session.blocks, rule, records, missing)
        if due is None:
            return records
        measure_block(task, *due, records, session)
        session.display.block_done()


def measure_block(
    task: Task, block: Block, due: Sequence[TrainCell], records: Sequence[Record], session: Session
) -> None:
    """Measure the counters that the cells need, then the cells, in the order of the seed."""
    order = random.Random(f"{session.settings.seed} {(not block.warm_up, block.number)}")
    several = len(session.blocks) > 1
    counters = counters_of(due)
    counted = {
        cell.key: recorded_count(cell, records, several) or count(cell, block, task, session)
        for cell in shuffled(counters, order)
    }
    for counter in counters:
        note_count(counter, counted[counter.key], session)
    cells = shuffled(due, order)
    resumed = any(record["cell"] == "train" and (record["block"], record["warm_up"]) == block for record in records)
    for cell in cells:
        trained = train(cell, block, counted, task, session)
        prove_merges(trained, task, session)
        if block == Block(0) and cell.key in session.outputs and trained.answer["status"] == "ok":
            from harness.runs.saving import save_tokenizer

            overwrite = session.settings.overwrite or session.log.attempt > 1
            session.notes += save_tokenizer(trained, session.outputs[cell.key], overwrite=overwrite)
        record = train_record(trained, common_facts(cell.variant, task, session))
        record["place"] = task.cells.index(cell)
        if session.settings.measure.precision is not None:
            record["precision"] = precision_of(cell, task.cells, session.settings.measure.precision)
        closes = cell is cells[-1] and (several or not resumed)
        session.log.add(without_times(record, session), block if closes else None)
        trained.merges = None  # no later trainer can find them in this process


def recorded_count(cell: CountCell, records: Sequence[Record], several: bool) -> Counted | None:
    """The counter's result in a single block before an interruption, or in any block if it was over limits.wall."""
    for record in records:
        if record["cell"] == "count" and record["run_key"] == cell.key:
            words = cell.reading.words() if record["status"] == "ok" else None
            failed = record["status"] != "ok"
            if record["status"] == "timeout" or (not several and (words is not None or failed)):
                return counted_from(record, words)
    return None


def note_count(cell: CountCell, counted: Counted, session: Session) -> None:
    """Remember whether there are words, or why there are none; of a counter that was too slow also what to do."""
    reason, what = counted.answer["reason"], f"counting {cell.reading.file.name} with counting={cell.counter.name}"
    if counted.words is not None:
        session.any_words = True
    elif counted.answer["status"] == "timeout":
        session.uncounted[
            f"{what} was {reason}; raise that, take a slice (data.bytes=64MB), or choose another counter"
        ] = None
    elif counted.answer["status"] == "out_of_memory":
        session.uncounted[f"{what}: {reason}"] = None
    else:
        session.uncounted[str(reason)] = None


# Counting.


def count(cell: CountCell, block: Block, task: Task, session: Session) -> Counted:
    """Measure a counter; if no times are wanted, cached words are taken."""
    if cell.reading.file.table:
        return given_words(cell, session)
    if not session.timed and (words := cell.reading.words()) is not None:
        session.display.pass_over()
        if wrong := wrong_facts(cell.reading, words, None):
            return Counted({"status": "error", "reason": wrong})
        return Counted({"status": "ok", "reason": None}, words)
    started = now()
    counted = run_counter(f"counting {cell.reading.file.name} ({cell.counter.name})", cell, session)
    common = {**common_facts(cell.counter, task, session), "concurrent": is_concurrent(counted.answer, session)}
    session.log.add(without_times(count_record(cell, counted, block, started, common), session))
    return counted


def given_words(cell: CountCell, session: Session) -> Counted:
    """The words of a table, which came with their counts."""
    session.display.pass_over()
    words = cell.reading.words()
    if words is None:
        return Counted({"status": "error", "reason": "its cached words were damaged; run the same again"})
    return Counted({"status": "ok", "reason": None, "takes_threads": False}, words)


def run_counter(label: str, cell: CountCell, session: Session) -> Counted:
    """Run a counter, shown as `label`; its words go into the cache if nothing contradicts them."""
    file, output = cell.reading.file, session.next_folder()
    with session.display.showing(label, file.bytes, "bytes") as on_progress:
        answer = measure(count_job(cell), output, cell.limits, on_progress)
    if "offset" in answer:
        answer["reason"] = file.located(answer["reason"], answer["offset"])
    words = checked_words(cell, answer, output / "words", session) if answer["status"] == "ok" else None
    shutil.rmtree(output)
    return Counted(answer, words)


def checked_words(cell: CountCell, answer: Answer, counted: Path, session: Session) -> Words | None:
    """The words, moved into the cache; None if they are wrong, and the answer says why."""
    file, words = cell.reading.file, Words(counted, word_store.read(counted)[1])
    documents = answer["tallies"].get("documents")
    if not file.is_unchanged():
        wrong: str | None = f"{file.name} was changed while it was read; run the same again"
    else:
        wrong = wrong_facts(cell.reading, words, documents)
    if wrong is not None:
        answer.update(status="error", reason=wrong)
    elif are_right(cell, words.manifest["sha256"], answer, session):
        answer["documents"] = documents
        return cell.reading.keep(words)
    return None


def wrong_facts(reading: Reading, words: Words, documents: int | None) -> str | None:
    """How the words contradict the facts on the card of their data set, in a sentence; None if they do not."""
    return counted_otherwise(reading.file, reading.pattern_name, words.manifest, documents)


def are_right(cell: CountCell, sha256: str, answer: Answer, session: Session) -> bool:
    """Check words of a counter that is not ours, or that differ from the cached ones, with our default counter.

    The check is made once for each corpus; a counter that fails it gets no time.
    """
    checker, name, key = registry.default_counter(), cell.reading.file.name, cell.reading.key
    if cell.counter.target == checker.target:
        return True
    if cell.counter.target in registry.counter_targets():
        cached = cell.reading.words()
        if cached is None or cached.manifest["sha256"] == sha256:
            return True
    if key not in session.right_words:
        lent = replace(cell, counter=checker, threads=os.cpu_count() or 1)
        words = run_counter(f"checking the words of {name} ({checker.name})", lent, session).words
        session.right_words[key] = None if words is None else words.manifest["sha256"]
    if session.right_words[key] is None:
        answer.update(status="error", reason=f"its words could not be checked, for counting={checker.name} failed")
    elif session.right_words[key] != sha256:
        answer.update(status="mismatch", reason=f"its words are not those of counting={checker.name}")
        session.disagreements[
            f"{name}: the words of counting={cell.counter.name} are not those of counting={checker.name}; check it "
            f"with python -m harness.conformance {cell.counter.target}"
        ] = None
    return session.right_words[key] == sha256


# Training.


def train(cell: TrainCell, block: Block, counted_by: dict[str, Counted], task: Task, session: Session) -> Trained:
    """Measure a trainer on the words of its counter; without words it has the counter's failure."""
    started, counted = now(), counted_by[cell.count.key]
    if counted.words is not None and word_store.whole(counted.words.folder) is None:  # the cache was emptied
        counted = counted_by[cell.count.key] = count(cell.count, block, task, session)
    runs_under = interpreter(cell.interpreter)
    if counted.words is None:
        # Wrong words are the counter's mismatch; its trainers have just not been measured.
        status = "error" if counted.answer["status"] == "mismatch" else counted.answer["status"]
        failed = {
            "status": status,
            "reason": f"counting with {cell.count.counter.name} failed: {counted.answer['reason']}",
        }
        return Trained(cell, block, started, failed, counted)
    if runs_under.status:
        failed = {"status": runs_under.status, "reason": runs_under.reason}
        return Trained(cell, block, started, failed, counted)
    started = now()
    job = train_job(cell, cell.variant, counted.words.folder, cell.interpreter)
    answer, merges = run_trainer(cell, job, session)
    if session.timed and answer["status"] == "timeout":
        estimate(cell, answer, job, session)
    if answer["status"] in STOPPED and block.warm_up:
        block = Block(0)  # it is not run again, so its record belongs to no warm-up
    sha256 = None if merges is None else merges_sha256(merges)
    return Trained(cell, block, started, answer, counted, merges, sha256, is_concurrent(answer, session))


def run_trainer(cell: TrainCell, job: dict[str, Any], session: Session) -> tuple[Answer, Sequence[Merge] | None]:
    """Run a trainer's job under the cell's limits; its answer and its merges, None if it names none."""
    file, output = cell.reading.file, session.next_folder()
    run_job: Callable[..., Answer] = measure
    if session.settings.measure.kind == "instructions":
        from harness.measure.callgrind import measure_instructions  # late, as few runs count them

        run_job = measure_instructions
    label = f"{cell.variant.name} on {file.name}"
    with session.display.showing(label, cell.num_merges, "merges", file.bytes) as on_progress:
        answer = run_job(job, output, cell.limits, on_progress)
    merges = read_merges(output, answer)
    shutil.rmtree(output)
    return answer, merges


def estimate(cell: TrainCell, answer: Answer, job: Mapping[str, Any], session: Session) -> None:
    """Estimate the total of a trainer that was stopped at the limit, from runs on parts of its input."""
    from harness.runs.estimate import estimate_total  # late, as few runs are stopped

    wall, reads_text = cell.limits.wall_seconds, reads_corpus(cell, answer)
    assert wall is not None, "without a limit nothing is stopped"

    def run_part(part: Path, num_merges: int, seconds: float) -> Answer:
        corpus = {**job["corpus"], "path": str(part)} if reads_text else None
        job_of_part = {**job, "words": job["words"] if reads_text else str(part), "corpus": corpus}
        output, limits = session.next_folder(), cell.limits._replace(wall_seconds=seconds)
        with bar(f"estimating {cell.variant.name}", 0, "merges") as on_progress:
            part_answer = measure({**job_of_part, "num_merges": num_merges}, output, limits, on_progress)
        shutil.rmtree(output)
        return part_answer

    source = Path(job["corpus"]["path"] if reads_text else job["words"])
    total = estimate_total(source, cell.num_merges, wall, run_part)
    if total is not None:
        seconds, low, high, exponent = total.beyond(answer.get("total") or wall)
        bounds = {"total_seconds": seconds, "low_seconds": low, "high_seconds": high, "exponent": exponent}
        answer.update(status="extrapolated", extrapolated={**bounds, "merges_done": answer.get("merges_done", 0)})


# Proof.


def prove_merges(trained: Trained, task: Task, session: Session) -> None:
    """Set the identity of the merges, and how many tokens they leave if that is wanted.

    A list that was judged in this task is not judged again. Merges of a trainer that failed are not judged, nor those
    whose words are gone from the cache.
    """
    if trained.answer["status"] not in ("ok", *STOPPED) or trained.merges is None:
        return
    words = trained.cell.reading.words()
    if words is None:
        return
    from harness.proof.prove import prove, tokens_left  # late: NumPy comes with it, and is slow to import

    merges = merge_list(trained)
    key = (task.number, trained.merges_sha256, merges.num_merges, merges.whole, merges.tie_break, merges.by_design)
    if key not in session.judged:
        extending = trained.cell.extending()
        (identity,) = prove(word_store.read(words.folder)[0], [merges], trained.cell.min_count, **extending)
        if identity.kind == BY_DESIGN:
            identity = replace(identity, of_own_words=kind_on_own_words(trained, session))
        session.judged[key] = identity
    trained.identity = session.judged[key]
    if session.settings.tokens and trained.answer["status"] == "ok":
        if key[:2] not in session.left:
            session.left[key[:2]] = tokens_left(word_store.read(words.folder)[0], trained.merges)
        trained.tokens = session.left[key[:2]]


def merge_list(trained: Trained) -> MergeList:
    from harness.proof.prove import MergeList

    cell, tie_break = trained.cell, trained.tie_break
    return MergeList(
        f"{cell.variant.name} on {cell.reading.file.name}",
        trained.merges or [],
        cell.num_merges,
        None if tie_break is None else TieBreak(tie_break),
        trained.answer["status"] == "ok",
        (trained.answer.get("feeding") or {}).get("by_design"),
    )


def kind_on_own_words(trained: Trained, session: Session) -> str | None:
    """The kind of merges on the words of the trainer's own pattern; None if it has none."""
    from harness.proof.prove import prove

    cell, pattern = trained.cell, (trained.answer.get("feeding") or {}).get("own_words")
    if pattern is None or cell.extension is not None:
        return None
    reading = Reading(cell.reading.file, OWN, replace(cell.reading.corpus, pattern=pattern, special_tokens=()))
    words = reading.words() or words_untimed(replace(cell.count, reading=reading), session)
    if words is None:
        return None
    merges = replace(merge_list(trained), tie_break=None, by_design=None)
    (identity,) = prove(word_store.read(words.folder)[0], [merges], cell.min_count)
    tie_break = f" ({identity.tie_break})" if identity.tie_break else ""
    return identity.kind.replace("_", " ") + tie_break


def words_untimed(cell: CountCell, session: Session) -> Words | None:
    """The words of a reading, counted by the default counter with all cores; None if that fails."""
    counter = registry.default_counter()
    lent = replace(cell, counter=counter, threads=os.cpu_count() or 1)
    return run_counter(f"words of {cell.reading.file.name} in its own way ({counter.name})", lent, session).words


# What records share.


def common_facts(card: CounterCard | VariantCard, task: Task, session: Session) -> Record:
    """The facts of the run, the number of the task, and the digest of the card's code as this run first met it."""
    code = f"{card.target} {dict(card.params)}"
    if code not in session.sources:
        session.sources[code] = source_sha256(card.target, card.params)
    return {"source_sha256": session.sources[code], "task": task.number, **session.facts}


def without_times(record: Record, session: Session) -> Record:
    """The record without its times if times were not what was measured."""
    if session.timed:
        return record
    untimed = {"seconds": dict.fromkeys(record["seconds"]), "cpu_seconds": None, "system_seconds": None}
    return {**record, **untimed, **({"curve": None} if "curve" in record else {})}


def is_concurrent(answer: Answer, session: Session) -> bool:
    """Whether other timed runs went on at the same time."""
    return session.settings.concurrent or (session.timed and bool(answer.get("concurrent")))


def shuffled(cells: Iterable[Any], order: random.Random) -> list[Any]:
    cells = list(cells)
    order.shuffle(cells)
    return cells


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
