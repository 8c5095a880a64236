"""A plan measured: cells run in blocks; each measurement is proved, saved and recorded before the
next starts.

In each block every counter and then every trainer of a task runs once, each in a fresh process, one
after another and never two at a time. What a counter takes in a block is part of the totals of the
trainers that go on from its words.
"""

from __future__ import annotations

import os
import pstats
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.common.progress import Display
from harness.common.registry import GIVEN
from harness.corpora import CorpusFile, counted_otherwise
from harness.measure.machine import interpreter
from harness.measure.process import Answer, ProcessOptions, measure, measure_instructions
from harness.proof import BY_DESIGN, WRONG
from harness.proof.compiled_replay import Replay
from harness.proof.prove import prove
from harness.records.file import RunLog
from harness.runs import jobs
from harness.runs.cells import (
    Block,
    CountCell,
    Manifest,
    Reading,
    Task,
    TrainCell,
    blocks_of,
    counters_of,
)
from harness.runs.jobs import Counted, Trained
from harness.runs.overrides import Settings
from harness.runs.resume import TIMEOUT, file_changed, pending
from harness.runs.session import Session, folder_name, now
from harness.worker import exchange
from harness.worker.calling import OWN
from variants.contract import TieBreak, WordCounts

SPOILED = "changed or removed"


def measure_task(task: Task, session: Session) -> None:
    """Measure block by block what is pending; each measurement is on disk before the next
    starts.
    """
    session.display = Display()
    while todo := pending(task.cells, session.settings.measure, session.log.records(task.number)):
        for path in session.imported.changed():
            raise file_changed(path)
        session.display.expect(sum(len(counters_of(cells)) + len(cells) for _, cells in todo))
        measure_block(task, *todo[0], session)


def measure_block(
    task: Task, block: Block, due: Sequence[TrainCell], session: Session, beside: int = 1
) -> None:
    """Measure the counters that the cells need, then the cells, in the order of the seed; several
    `beside` each other only where no time is taken.
    """
    settings = session.settings
    order = random.Random(f"{settings.seed} {(not block.warm_up, block.number)}")
    counters, cells = counters_of(due), list(due)
    order.shuffle(counters)
    order.shuffle(cells)
    counted = {cell.key: count(cell, block, task, session) for cell in counters}

    def train_next(cell: TrainCell) -> Trained:
        return train(cell, block, counted[cell.count.key], session)

    for trained in trained_beside(train_next, cells, beside):
        cell = trained.cell
        prove_merges(trained, session)
        if block == Block(0) and trained.answer.status == "ok":
            session.save(trained)
        # A single block that an earlier attempt began was not measured whole by this one.
        closes = cell is cells[-1] and (
            len(blocks_of(settings.measure)) > 1 or len(due) == len(task.cells)
        )
        place = task.cells.index(cell)
        session.add(task, *jobs.train_lines(trained), place, block if closes else None)
        trained.merges = None  # no later trainer can find them in this process


def trained_beside(
    train_next: Callable[[TrainCell], Trained], cells: Sequence[TrainCell], number: int
) -> Iterator[Trained]:
    """Train one cell when the one before has been used, or so many at a time."""
    if number == 1:
        yield from map(train_next, cells)
        return
    threads = ThreadPoolExecutor(number)
    try:
        yield from threads.map(train_next, cells)
    finally:
        threads.shutdown(cancel_futures=True)  # after a failure none starts


# Training.


def train(cell: TrainCell, block: Block, counted: Counted, session: Session) -> Trained:
    """Measure a trainer on the words of its counter; without words it has the counter's failure."""
    missing = interpreter(cell.interpreter).missing
    trained = Trained(cell, block, now(), Answer("skipped", missing), counted)
    if counted.words is None:
        # Wrong words are the counter's mismatch; its trainers have just not been measured.
        status = counted.answer.status
        reason = f"{cell.count.label} failed: {counted.answer.reason}"
        if status == "timeout":
            reason += "; raise that, take a slice (data.bytes=64MB), or choose another counter"
        trained.answer = Answer("error" if status == "mismatch" else status, reason)
    elif session.words(cell.reading) is None:
        trained.answer = Answer("error", f"its words were {SPOILED} before it ran")
    elif not missing:
        run_trainer(trained, session)

    if trained.answer.status == TIMEOUT and block.warm_up:
        trained.block = Block(0)  # it is not run again, so its record belongs to no warm-up
    return trained


def run_trainer(trained: Trained, session: Session) -> None:
    """Run a trainer under the cell's limits, and take its answer and its merges, if it names
    any.
    """
    cell = trained.cell
    file, output = cell.reading.file, session.next_folder()
    counted = session.settings.measure.kind == "instructions"
    run_job = measure_instructions if counted else measure
    job = jobs.train_job(cell, session.words_folder(cell.reading))
    with session.display.showing(cell.label, cell.num_merges, "merges", file.bytes) as on_progress:
        options = side_options(trained, session)
        answer = run_job(job, output, cell.count.limits, on_progress, options)
    params = cell.variant.params
    answer.source_sha256 = session.imported.add(answer.imported, params, cell.side)
    trained.answer = answer
    # without an answer that names them, merges may be half written
    is_whole = answer.merges_done is not None
    merges = exchange.unpacked((output / "merges").read_bytes()) if is_whole else None
    shutil.rmtree(output)

    wrong = read_otherwise(file, answer) if answer.from_file else None
    if session.words(cell.reading) is None:
        wrong = f"the words that it was given were {SPOILED} while it ran"
    if wrong is not None and answer.status in ("ok", TIMEOUT):
        answer.fail("rejected", wrong)
    elif merges is not None:
        trained.merges = merges
        trained.merges_sha256 = exchange.merges_sha256(merges)


def side_options(trained: Trained, session: Session) -> ProcessOptions:
    """How a process of one side of a comparison is run: both sides of a block have the same seed of
    hashes, and the same layout of memory if instructions are counted.
    """
    side, block = trained.cell.side, trained.block
    if side is None:
        return ProcessOptions()
    seed = random.Random(f"{session.settings.seed} {block}").randrange(1, 1 << 32)
    variables = {**dict(side.variables), "PYTHONHASHSEED": str(seed)}
    return ProcessOptions(
        variables=variables, import_folders=side.import_folders, layout=block.number
    )


# Counting


def count(cell: CountCell, block: Block, task: Task, session: Session) -> Counted:
    """Measure a counter; the words of a table are given, and if no times are wanted, cached ones
    are taken.
    """
    if cell.counter == GIVEN and not cell.reading.file.table:  # the session has counted them
        return Counted(Answer("ok"), session.manifests[cell.reading.key])
    if cell.reading.file.table or not session.timed:
        if (words := cell.reading.words()) is not None:
            session.take_words(cell.reading, cell.reading.folder, words)
            session.display.passed()
            return Counted(Answer("ok"), words)
        if cell.reading.file.table:
            return Counted(Answer("error", "its cached words were damaged; run the same again"))
    started = now()
    counted = run_counter(cell.label, cell, session)
    measurement = jobs.measurement_of([counted.answer], block, started, cell.reading)
    session.add(task, jobs.counted_cell(cell, counted), measurement)
    return counted


def run_counter(label: str, cell: CountCell, session: Session) -> Counted:
    """Run a counter, shown as `label`; its words go into the cache if nothing contradicts them."""
    file, output = cell.reading.file, session.next_folder()
    with session.display.showing(label, file.bytes, "bytes") as on_progress:
        answer = measure(jobs.count_job(cell, cell.counter), output, cell.limits, on_progress)
    answer.source_sha256 = session.imported.add(answer.imported, cell.counter.params)
    if answer.offset is not None:
        answer.reason = file.located(answer.reason or "", answer.offset)

    words = None
    if answer.status == "ok":
        words = checked_words(cell, answer, output / "words", session)
    shutil.rmtree(output)
    return Counted(answer, words)


def checked_words(
    cell: CountCell, answer: Answer, folder: Path, session: Session
) -> Manifest | None:
    """The words, moved into the cache; None if they are wrong, and the answer says why."""
    file, manifest = cell.reading.file, exchange.read_words(folder)[1]
    documents = (answer.tallies or {}).get("documents")
    status, wrong = "error", read_otherwise(file, answer)
    if wrong is None:
        wrong = counted_otherwise(file, cell.reading.pattern_name, manifest, documents)
    if wrong is None:
        right = right_words(cell, manifest["sha256"], session)
        default = f"counting={registry.default_counter().name}"
        if right is None:
            wrong = f"its words could not be checked by {default}"
        elif right != manifest["sha256"]:
            status, wrong = "mismatch", f"its words are not those of {default}"
        if wrong is not None:
            wrong += f"; check it with python -m harness.conformance {cell.counter.target}"

    if wrong is not None:
        answer.fail(status, wrong)
        return None
    cell.reading.keep(folder, manifest)
    session.take_words(cell.reading, folder, manifest)
    return manifest


def read_otherwise(file: CorpusFile, answer: Answer) -> str | None:
    """Return a sentence unless the process has read this very file, with the bytes of its digest."""
    same_file = answer.text is not None and answer.text == exchange.file_state(file.path)
    if same_file and file.is_unchanged():
        return None
    return f"{file.name} was changed while it was read; run the same again"


def right_words(cell: CountCell, sha256: str, session: Session) -> str | None:
    """The digest that the words of a counter must have; None if that cannot be found out.

    Those of our default counter are right, and of our others those that nothing in the cache
    contradicts. For the rest our default counter is run once for each corpus.
    """
    if cell.counter.name == registry.default_counter().name:
        return sha256
    if cell.counter.name in registry.counters():
        cached = cell.reading.words()
        if cached is None or cached["sha256"] == sha256:
            return sha256
    if cell.reading.key not in session.right_words:
        session.right_words[cell.reading.key] = (
            default_words(cell, "checking the words", session) or {}
        )
    return session.right_words[cell.reading.key].get("sha256")


def default_words(cell: CountCell, purpose: str, session: Session) -> Manifest | None:
    """The words of the cell's reading by the default counter with all CPUs, not timed; None if
    that fails.
    """
    counter = registry.default_counter()
    lent = replace(cell, counter=counter, threads=os.cpu_count() or 1)
    return run_counter(
        f"{purpose} of {cell.reading.file.name} ({counter.name})", lent, session
    ).words


def words_of(cell: TrainCell, settings: Settings) -> tuple[WordCounts, Manifest]:
    """The words that a cell trains on, for other commands: those in the cache, or counted now."""
    if cell.reading.words() is None:
        with temporary_folder() as folder:
            session = Session(settings, RunLog(None, now()), folder)
            counted = run_counter(cell.count.label, cell.count, session)
        if counted.words is None:
            raise Refusal(f"{cell.count.label} failed: {counted.answer.reason}", UNMEASURED)
    return exchange.read_words(cell.reading.folder)


# Proofs


def prove_merges(trained: Trained, session: Session) -> None:
    """Set the identity of the merges, and how many tokens they leave if that is wanted.

    A list that was judged in this task is not judged again. Merges of a trainer that failed are not
    judged, nor those whose words have lost their seal.
    """
    cell, answer = trained.cell, trained.answer
    whole = answer.status == "ok"
    if trained.merges is None or not (whole or answer.status == TIMEOUT):
        return
    tie_break = TieBreak(ties) if (ties := trained.tie_break) is not None else None
    merges, by_design = trained.merges, excuse(cell)
    key = cell.task_key, trained.merges_sha256, whole, tie_break, by_design

    if key not in session.judged:
        word_counts, tokens = session.words(cell.reading), None
        if word_counts is None:
            return
        asked = merges, cell.num_merges, cell.min_count
        replay = Replay(word_counts, *asked, name=cell.label, **cell.extending())
        identity = prove(replay, tie_break, whole=whole, by_design=by_design)
        if identity.kind == BY_DESIGN and (words := own_words(trained, session)) is not None:
            judged = prove(Replay(words, *asked, name=cell.label), None, whole=whole)
            of_own_words = judged.kind.replace("_", " ")
            if judged.tie_break:
                of_own_words += f" ({judged.tie_break})"
            identity = structs.replace(identity, of_own_words=of_own_words)
        if identity.kind == WRONG and answer.from_file:
            is_tie = identity.got_count == identity.want_count
            of_words = jobs.words_verdict(cell, word_counts, session.next_folder(), is_tie)
            reason = "; ".join(filter(None, [identity.reason, of_words]))
            identity = structs.replace(identity, reason=reason)
        if session.settings.tokens and whole:
            tokens = replay.tokens_left()
        session.judged[key] = identity, tokens
    trained.identity, trained.tokens = session.judged[key]


def excuse(cell: TrainCell) -> str | None:
    """Why the card of a trainer says that its merges are others; None on the very words that it
    counts.
    """
    card, reading = cell.variant, cell.reading
    if card.own_words == reading.pattern_name and not reading.corpus.special_tokens:
        return None
    return card.by_design or None


def own_words(trained: Trained, session: Session) -> WordCounts | None:
    """The words of the trainer's own pattern; None if it has none."""
    cell, name = trained.cell, trained.cell.variant.own_words
    if not name or cell.extension is not None:
        return None
    pattern = registry.patterns()[name]
    reading = Reading(
        cell.reading.file, OWN, replace(cell.reading.corpus, pattern=pattern, special_tokens=())
    )
    if session.words(reading) is None:
        default_words(replace(cell.count, reading=reading), "its own words", session)
    return session.words(reading)


# Profiles: the same call in a fresh process once more, untimed, under cProfile

ROWS = 40


def profile_trainers(task: Task, session: Session) -> bool:
    """Profile every trainer of a task that has succeeded, with a note on where its files are; False
    if one has no profile.
    """
    if session.settings.profile == "none":
        return True
    records, have_profiles = session.log.records(task.number), True
    succeeded = {record.cell.run_key for record in records if record.status == "ok"}
    for cell in task.cells:
        if cell.key in succeeded:
            name = folder_name(f"profile-{cell.variant.name}-{cell.key[:8]}")
            path = Path(session.settings.results, name)
            reason = profile(cell, session, path)
            note = f"profile of {cell.label}: "
            note = f"{note}{path}.txt, {path}.prof" if reason is None else f"no {note}{reason}"
            session.notes.append(note)
            have_profiles = have_profiles and reason is None
    return have_profiles


def profile(cell: TrainCell, session: Session, path: Path) -> str | None:
    """Write cProfile's statistics, and a table of the functions with most time; return why not if
    the trainer fails.
    """
    if session.words(cell.reading) is None:
        return "an earlier command counted its words; set rerun=true"
    output = session.next_folder()
    statistics = path.with_name(f"{path.name}.prof")  # a name may have dots
    job = jobs.train_job(cell, session.words_folder(cell.reading))
    answer = measure(replace(job, profile=str(statistics.absolute())), output, cell.count.limits)
    shutil.rmtree(output)
    if answer.status != "ok":
        statistics.unlink(missing_ok=True)
        return answer.reason or answer.stderr_tail.strip().rpartition("\n")[2]

    with path.with_name(f"{path.name}.txt").open("w") as file:
        found = pstats.Stats(str(statistics), stream=file)
        found.strip_dirs().sort_stats("cumulative").print_stats(ROWS)
    return None
