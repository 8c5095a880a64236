"""A plan measured: cells run in blocks; each measurement is proved, saved and recorded before the
next starts.

In each block every counter and then every trainer of a task runs once, each in a fresh process, one
after another and never two at a time. What a counter takes in a block is part of the totals of the
trainers that go on from its words.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import structs

from harness.common.progress import Display
from harness.measure.machine import interpreter
from harness.measure.process import Answer, ProcessOptions, measure
from harness.runs import jobs
from harness.runs.cells import (
    Block,
    Task,
    TrainCell,
    counters_of,
)
from harness.runs.counting import count, read_otherwise
from harness.runs.jobs import Counted, Trained
from harness.runs.proving import prove_merges
from harness.runs.resume import TIMEOUT, pending
from harness.runs.saving import save_outputs
from harness.runs.session import Session, now
from harness.worker.exchange import merges_sha256
from variants.contract import Merge

SPOILED = "changed or removed"


def measure_task(task: Task, session: Session) -> None:
    """Measure block by block what is pending; each measurement is on disk before the next
    starts.
    """
    session.display = Display()
    while todo := pending(task.cells, session.settings, session.log.records(task.number)):
        session.imported.check()
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

    for trained in trained_beside(cells, block, counted, session, beside):
        cell = trained.cell
        prove_merges(trained, session)
        if block == Block(0) and trained.answer.status == "ok":
            overwrite = settings.overwrite or session.log.attempt > 1
            session.notes += save_outputs(trained, session.outputs, session.words, overwrite)
        lines = jobs.train_lines(trained)
        cell_line = structs.replace(lines.cell, place=task.cells.index(cell))
        # A single block that an earlier attempt began was not measured whole by this one.
        closes = cell is cells[-1] and (len(settings.blocks()) > 1 or len(due) == len(task.cells))
        lines = lines._replace(cell=cell_line)
        session.add(lines, task, block if closes else None)
        trained.merges = None  # no later trainer can find them in this process


def trained_beside(
    cells: Sequence[TrainCell],
    block: Block,
    counted: Mapping[str, Counted],
    session: Session,
    number: int,
) -> Iterator[Trained]:
    """Train one cell when the one before has been used, or so many at a time."""

    def trained(cell: TrainCell) -> Trained:
        return train(cell, block, counted[cell.count.key], session)

    if number == 1:
        yield from map(trained, cells)
        return
    threads = ThreadPoolExecutor(number)
    try:
        yield from threads.map(trained, cells)
    finally:
        threads.shutdown(cancel_futures=True)  # after a failure none starts


# Training.


def train(cell: TrainCell, block: Block, counted: Counted, session: Session) -> Trained:
    """Measure a trainer on the words of its counter; without words it has the counter's failure."""
    started, runs_under, merges = now(), interpreter(cell.interpreter), None
    answer = Answer(runs_under.status, runs_under.reason)
    if counted.words is None:
        # Wrong words are the counter's mismatch; its trainers have just not been measured.
        status = counted.answer.status
        reason = f"{cell.count.label} failed: {counted.answer.reason}"
        if status == "timeout":
            reason += "; raise that, take a slice (data.bytes=64MB), or choose another counter"
        answer = Answer("error" if status == "mismatch" else status, reason)
        answer.limits = counted.answer.limits
    elif session.words(cell.reading) is None:
        answer = Answer("error", f"its words were {SPOILED} before it ran")
    elif not runs_under.status:
        answer, merges = run_trainer(cell, block, session)

    if answer.status == TIMEOUT and block.warm_up:
        block = Block(0)  # it is not run again, so its record belongs to no warm-up
    digest = None if merges is None else merges_sha256(merges)
    return Trained(cell, block, started, answer, counted, merges, digest)


def run_trainer(
    cell: TrainCell, block: Block, session: Session
) -> tuple[Answer, Sequence[Merge] | None]:
    """Run a trainer under the cell's limits; its answer and its merges, None if it names none."""
    file, output = cell.reading.file, session.next_folder()
    run_job: Callable[..., Answer] = measure
    if session.settings.kind == "instructions":
        from harness.measure.callgrind import measure_instructions  # late, as few runs count them

        run_job = measure_instructions
    job = jobs.train_job(cell, cell.variant, session.words_folder(cell.reading))
    with session.display.showing(cell.label, cell.num_merges, "merges", file.bytes) as on_progress:
        options = side_options(cell, block, session)
        answer = run_job(job, output, cell.count.limits, on_progress, options)
    params = cell.variant.params
    answer.source_sha256 = session.imported.add(answer.imported, params, cell.side)
    merges = jobs.read_merges(output, answer)
    shutil.rmtree(output)

    wrong = read_otherwise(file, answer) if answer.from_file else None
    if session.words(cell.reading) is None:
        wrong = f"the words that it was given were {SPOILED} while it ran"
    if wrong is not None and answer.status in ("ok", TIMEOUT):
        answer.fail("rejected", wrong)
        merges = None
    return answer, merges


def side_options(cell: TrainCell, block: Block, session: Session) -> ProcessOptions:
    """How a process of one side of a comparison is run: both sides of a block have the same seed of
    hashes, and the same layout of memory if instructions are counted.
    """
    if cell.side is None:
        return ProcessOptions()
    seed = random.Random(f"{session.settings.seed} {block}").randrange(1, 1 << 32)
    variables = {**dict(cell.side.variables), "PYTHONHASHSEED": str(seed)}
    return ProcessOptions(
        variables=variables, import_folders=cell.side.import_folders, layout=block.number
    )
