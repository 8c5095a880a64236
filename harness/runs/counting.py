"""The words of a corpus: counted in a measured process, checked, and kept in the cache."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from harness.common import registry
from harness.common.errors import UNMEASURED, Refusal
from harness.common.files import temporary_folder
from harness.corpora import CorpusFile
from harness.corpora.cards import counted_otherwise
from harness.measure.process import Answer, measure
from harness.records.log import RunLog
from harness.runs import jobs
from harness.runs.cells import Block, CountCell, Manifest, Settings, Task, TrainCell
from harness.runs.jobs import Counted
from harness.runs.session import Session, now
from harness.worker import exchange
from variants.contract import WordCounts


def count(cell: CountCell, block: Block, task: Task, session: Session) -> Counted:
    """Measure a counter; the words of a table are given, and if no times are wanted, cached ones
    are taken.
    """
    if (manifest := session.given_words.get(cell.reading.key)) is not None:
        return Counted(Answer("ok"), manifest)
    if cell.reading.file.table or not session.timed:
        if (words := cell.reading.words()) is not None:
            session.take_words(cell.reading, cell.reading.folder, words)
            session.display.passed()
            return Counted(Answer("ok"), words)
        if cell.reading.file.table:
            return Counted(Answer("error", "its cached words were damaged; run the same again"))
    started = now()
    counted = run_counter(cell.label, cell, session)
    session.add(jobs.count_lines(cell, counted, block, started), task)
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
            counted = count(cell.count, Block(0), Task(0, [cell]), session)
        if counted.words is None:
            raise Refusal(f"{cell.count.label} failed: {counted.answer.reason}", UNMEASURED)
    return exchange.read_words(cell.reading.folder)
