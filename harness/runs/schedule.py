"""The measurements of one task: blocks of cells in random order, each recorded with its proof before the next starts.

In each block every counter and then every trainer runs once, each in a fresh process, one after another and never two
at a time. What a counter takes in a block is part of the totals of the trainers that go on from its words.
"""

from __future__ import annotations

import datetime
import functools
import os
import random
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness.common import registry
from harness.common.progress import Display, bar
from harness.common.registry import CounterCard, VariantCard
from harness.corpora.cards import counted_otherwise
from harness.measure import lock
from harness.measure.disturbance import wait_for_quiet
from harness.measure.environment import environment, host, machine
from harness.measure.instructions import RUN_TRAINER, RunJob
from harness.measure.interpreters import interpreter
from harness.measure.process import Answer, measure
from harness.measure.source_digest import source_sha256
from harness.records.file import Record
from harness.runs import store
from harness.runs.cells import (
    CountCell,
    Reading,
    TrainCell,
    count_job,
    count_key,
    distinct,
    read_merges,
    train_job,
)
from harness.runs.estimate import Estimate, estimate_total
from harness.runs.outcome import Counted, CountRun, Trained
from harness.runs.precision import precision_of
from harness.runs.record_of import by_itself, count_record, counted_from, train_record
from harness.runs.resume import STOPPED, Block, RunLog, blocks_of, pending
from harness.runs.settings import Settings
from harness.worker import word_store
from variants.contract import Merge

if TYPE_CHECKING:
    from harness.runs.prove import Prover


class Saves(Protocol):
    """Writes tokenizers as soon as their merges are proved."""

    def save(self, trained: Trained) -> None: ...

    def missing(self, records: Sequence[Record]) -> set[str]:
        """The keys of cells that were measured, and whose tokenizer is gone."""
        ...


class Run:
    """The measurements of one task, those of an interrupted attempt included."""

    def __init__(
        self,
        cells: Sequence[TrainCell],
        settings: Settings,
        folder: Path,
        log: RunLog | None = None,
        number: int = 0,
        saving: Saves | None = None,
    ) -> None:
        self.cells = distinct(cells)
        self.settings = settings
        self.folder = folder
        self.log = RunLog(None, now()) if log is None else log
        self.number = number
        self.saving = saving
        self.timed = settings.measure.timed
        self.counts: dict[tuple[str, str], Counted] = {}
        self.trained: list[Trained] = []
        """What this attempt has measured, without the merges."""
        self.sources: dict[str, str | None] = {}
        self.right_words: dict[str, str | None] = {}
        self.disagreements: list[str] = []
        self.busy_starts = 0
        self.jobs = 0
        self.display = Display((len(self.cells) + len(count_cells(self.cells))) * len(blocks_of(settings)))

    @functools.cached_property
    def prover(self) -> Prover:
        from harness.runs.prove import Prover  # late: NumPy comes with it, and is slow to import

        return Prover(self.count_otherwise, tokens=self.settings.tokens)

    def measure_all(self) -> None:
        """Measure block by block what is pending; each measurement is on disk before the next starts."""
        while (block_and_cells := self.pending()) is not None:
            self.measure_block(*block_and_cells)
            self.display.block_done()

    def pending(self) -> tuple[Block, list[TrainCell]] | None:
        records = self.records()
        missing = set() if self.saving is None else self.saving.missing(records)
        return pending(self.cells, self.settings, records, missing)

    def measure_block(self, block: Block, due: Sequence[TrainCell]) -> None:
        """Measure the counters that the cells need, then the cells, in the order of the seed."""
        order = random.Random(f"{self.settings.seed} {(not block.warm_up, block.number)}")
        whole = not any(self.is_of(block, record) for record in self.records()) or len(blocks_of(self.settings)) > 1
        for count_cell in shuffled(count_cells(due), order):
            self.counts[count_key(count_cell)] = self.counted_before(block, count_cell) or self.count(count_cell, block)
        cells = shuffled(due, order)
        for cell in cells:
            trained = self.train(cell, block)
            self.prover.prove(trained)
            if self.saving is not None and block == Block(0):
                self.saving.save(trained)
            self.log.add(self.record_of_trained(trained), block if whole and cell is cells[-1] else None)
            trained.merges = None  # no later trainer can find them in this process
            self.trained.append(trained)

    def is_of(self, block: Block, record: Record) -> bool:
        return record["cell"] == "train" and (record["block"], record["warm_up"]) == block

    def counted_before(self, block: Block, cell: CountCell) -> Counted | None:
        """The counter's result in this block before an interruption, or in any block if it was over limits.wall."""
        several = len(blocks_of(self.settings)) > 1
        for record in self.records():
            if record["cell"] == "count" and record["run_key"] == cell.key():
                again = not several and (record["block"], record["warm_up"]) == block
                words = store.words_of(cell.reading) if record["status"] == "ok" else None
                if record["status"] == "timeout" or (again and (words is not None or record["status"] != "ok")):
                    return counted_from(record, words)
        return None

    def count(self, cell: CountCell, block: Block) -> Counted:
        """Measure a counter; where no times are wanted, words that are in the cache will do."""
        if cell.reading.file.table:
            return self.given(cell)
        if not self.timed and (words := store.words_of(cell.reading)) is not None:
            return self.cached(cell, words)
        self.settle_down()
        started, concurrent = now(), self.is_concurrent()
        answer, words = self.run_counter(f"counting {cell.reading.file.name} ({cell.counter.name})", cell)
        counted = Counted(answer, words, answer["reason"])
        measured = CountRun(cell, block, started, counted, concurrent=concurrent or self.is_concurrent())
        self.log.add(self.record_of_count(measured))
        return counted

    def cached(self, cell: CountCell, words: Path) -> Counted:
        self.display.pass_over()
        if wrong := self.counted_otherwise(cell, words, None):
            return Counted({"status": "error", "reason": wrong}, None, wrong)
        return Counted({"status": "ok", "reason": None}, words)

    def run_counter(self, label: str, cell: CountCell) -> tuple[Answer, Path | None]:
        """Run a counter, shown as `label`; its answer, and its words where they are now kept."""
        showing = self.display.showing(label, cell.reading.file.bytes, "bytes")
        with showing as on_progress:
            answer = measure(count_job(cell), output := self.next_folder(), cell.limits, on_progress)
        if "offset" in answer:
            answer["reason"] = cell.reading.file.located(answer["reason"], answer["offset"])
        words = self.keep(cell, answer, output / "words") if answer["status"] == "ok" else None
        shutil.rmtree(output)
        return answer, words

    def counted_otherwise(self, cell: CountCell, words: Path, documents: int | None) -> str | None:
        reading = cell.reading
        return counted_otherwise(reading.file, reading.pattern_name, store.manifest_of(words), documents)

    def given(self, cell: CountCell) -> Counted:
        """The words of a table, which came with their counts."""
        self.display.pass_over()
        words = store.words_of(cell.reading)
        answer = {"status": "ok", "reason": None, "takes_threads": False}
        if words is None:
            answer.update(status="error", reason="its kept words were damaged meanwhile; run the same again")
            return Counted(answer, None, str(answer["reason"]))
        return Counted({**answer, "words": store.manifest_of(words)}, words)

    def keep(self, cell: CountCell, answer: Answer, counted: Path) -> Path | None:
        """Put the words into the cache, and return where they are; None if these cannot be what was asked for."""
        file = cell.reading.file
        if not file.is_unchanged():
            answer.update(status="error", reason=f"{file.name} was changed while it was read; run the same again")
            return None
        if wrong := self.counted_otherwise(cell, counted, answer["tallies"].get("documents")):
            answer.update(status="error", reason=wrong)
            return None
        if not self.are_right(cell, store.manifest_of(counted)["sha256"], answer):
            return None
        words = store.keep_words(cell.reading, counted)
        answer["documents"] = answer["tallies"].get("documents")
        return words

    def are_right(self, cell: CountCell, sha256: str, answer: Answer) -> bool:
        """Check words of a counter that is not ours, or that differ from the cached ones, against one of ours.

        The check is made once for each corpus; a counter that fails it gets no time.
        """
        checker, cached = registry.default_counter(), store.words_of(cell.reading)
        ours = cell.counter.target in registry.counter_targets()
        differ = cached is not None and store.manifest_of(cached)["sha256"] != sha256
        if cell.counter.target == checker.target or (ours and not differ):
            return True
        name, key = cell.reading.file.name, cell.reading.key
        if key not in self.right_words:
            lent = replace(cell, counter=checker, threads=os.cpu_count() or 1)
            words = self.run_counter(f"checking the words of {name} ({checker.name})", lent)[1]
            self.right_words[key] = None if words is None else store.manifest_of(words)["sha256"]
        if self.right_words[key] is None:
            reason = f"its words could not be checked, for counting={checker.name} failed"
            answer.update(status="error", reason=reason)
        elif self.right_words[key] != sha256:
            answer.update(status="mismatch", reason=f"its words are not those of counting={checker.name}")
            self.disagreements.append(
                f"{name}: the words of counting={cell.counter.name} are not those of counting={checker.name}; check it "
                f"with python -m harness.conformance {cell.counter.target} --counter"
            )
        return self.right_words[key] == sha256

    def train(self, cell: TrainCell, block: Block) -> Trained:
        """Measure a trainer on the words its counter made; without words the counter's failure is its own."""
        started = now()
        counted = self.counts[count_key(cell.count)]
        if counted.words is not None and not word_store.is_whole(counted.words):  # the cache was emptied meanwhile
            counted = self.counts[count_key(cell.count)] = self.count(cell.count, block)
        if counted.words is None:
            # Wrong words are the counter's mismatch; its trainers have just not been measured.
            status = "error" if counted.answer["status"] == "mismatch" else counted.answer["status"]
            failed = {"status": status, "reason": f"counting failed: {counted.failed_by}"}
            return Trained(cell, block, started, failed, counted)
        runs_under = interpreter(cell.interpreter)
        if runs_under.status:
            failed = {"status": runs_under.status, "reason": runs_under.reason}
            return Trained(cell, block, started, failed, counted)
        self.settle_down()
        started, concurrent = now(), self.is_concurrent()
        label = f"{cell.variant.name} on {cell.count.reading.file.name}"
        job = train_job(cell, cell.variant, cell.num_merges, counted.words, cell.interpreter)
        answer, merges = self.run_trainer(label, job, cell, RUN_TRAINER[self.settings.measure.kind])
        if self.timed and answer["status"] == "timeout":
            self.estimate(cell, answer, job)
        if answer["status"] in STOPPED and block.warm_up:
            block = Block(0)  # it is not run again, so what is known of it belongs to no warm-up
        return Trained(cell, block, started, answer, counted, merges, concurrent=concurrent or self.is_concurrent())

    def estimate(self, cell: TrainCell, answer: Answer, job: Mapping[str, Any]) -> None:
        """Estimate the total of a trainer that was stopped at the limit, from runs on parts of its input."""
        wall, reads_text = cell.limits.wall_seconds, by_itself(cell, answer)
        assert wall is not None, "without a limit nothing is stopped"

        def run_part(part: Path, num_merges: int, seconds: float) -> Answer:
            corpus = {**job["corpus"], "path": str(part)} if reads_text else None
            input_of_part = {"words": job["words"] if reads_text else str(part), "corpus": corpus}
            with bar(f"estimating {cell.variant.name}", 0, "merges") as on_progress:
                told = measure(
                    {**job, **input_of_part, "num_merges": num_merges},
                    output := self.next_folder(),
                    replace(cell.limits, wall_seconds=seconds),
                    on_progress,
                )
            shutil.rmtree(output)
            return told

        source = Path(job["corpus"]["path"] if reads_text else job["words"])
        estimate = estimate_total(source, cell.num_merges, wall, run_part)
        if estimate is not None:
            estimate = estimate.beyond(answer.get("total") or wall)
            answer.update(status="extrapolated", extrapolated=extrapolated(estimate, answer))

    def run_trainer(
        self, label: str, job: dict[str, Any], cell: TrainCell, run_job: RunJob
    ) -> tuple[Answer, Sequence[Merge] | None]:
        """Run a trainer's job under the cell's limits, shown as `label`; its answer and its merges."""
        output = self.next_folder()
        showing = self.display.showing(label, job["num_merges"], "merges", cell.reading.file.bytes)
        with showing as on_progress:
            answer = run_job(job, output, cell.limits, on_progress)
        merges = read_merges(output, answer)
        shutil.rmtree(output)
        return answer, merges

    def settle_down(self) -> None:
        """Wait for a quiet machine as long as the preset says, and remember if there was none."""
        self.busy_starts += not wait_for_quiet(self.settings.measure.quiet_seconds)

    def is_concurrent(self) -> bool:
        """Whether other timed runs are going on beside this one."""
        return self.settings.concurrent or (self.timed and lock.is_concurrent())

    def count_otherwise(self, cell: TrainCell, reading: Reading) -> Path | None:
        """The words of a cell's corpus read in another way, kept ones or counted untimed; None if that fails."""
        words = store.words_of(reading)
        if words is not None:
            return words
        lender = registry.default_counter()
        lent = replace(cell.count, reading=reading, counter=lender, threads=os.cpu_count() or 1)
        return self.run_counter(f"words of {reading.file.name} in its own way ({lender.name})", lent)[1]

    def records(self) -> list[Record]:
        """Every record of this task: counters first, then trainers in the order they were asked for."""
        return self.log.records(self.number)

    def record_of_count(self, measured: CountRun) -> Record:
        return self.without_times(count_record(measured, self.common(measured.cell.counter)))

    def record_of_trained(self, trained: Trained) -> Record:
        record = train_record(trained, self.common(trained.cell.variant))
        record["place"] = self.cells.index(trained.cell)
        record["precision"] = precision_of(trained.cell, self.cells, self.settings.measure.precision)
        return self.without_times(record)

    def without_times(self, record: Record) -> Record:
        """The record without its times where times were not what was measured."""
        if self.timed:
            return record
        untimed = {"seconds": dict.fromkeys(record["seconds"]), "cpu_seconds": None}
        return {**record, **untimed, **({"curve": None} if "curve" in record else {})}

    def common(self, card: CounterCard | VariantCard) -> Record:
        """What the records of this run share, with the digest of the code behind a card."""
        return {
            "source_sha256": self.source(card),
            "task": self.number,
            "run_id": self.log.run_id,
            "repeat": self.settings.repeat,
            "measure": self.settings.measure.name,
            "host": host(machine()),
            "environment": self.environment,
        }

    def source(self, card: CounterCard | VariantCard) -> str | None:
        """The digest of the code behind a card as this task first met it."""
        code = f"{card.target} {dict(card.params)}"
        if code not in self.sources:
            self.sources[code] = source_sha256(card.target, card.params)
        return self.sources[code]

    @functools.cached_property
    def environment(self) -> dict[str, Any]:
        """Read for the first record: how every module was built takes longer to see than many a job."""
        return environment()

    def next_folder(self) -> Path:
        self.jobs += 1
        return self.folder / str(self.jobs)


def extrapolated(estimate: Estimate, answer: Answer) -> dict[str, Any]:
    """What a record says of a total that was not measured."""
    return {
        "total_seconds": estimate.seconds,
        "low_seconds": estimate.low,
        "high_seconds": estimate.high,
        "exponent": estimate.exponent,
        "merges_done": answer.get("merges_done", 0),
    }


def count_cells(cells: Iterable[TrainCell]) -> list[CountCell]:
    """The counters that these cells need, each once for each corpus and width."""
    return list({count_key(cell.count): cell.count for cell in cells}.values())


def shuffled(cells: Iterable[Any], order: random.Random) -> list[Any]:
    listed = list(cells)
    order.shuffle(listed)
    return listed


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
