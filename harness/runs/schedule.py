"""The measurements of one task: blocks of cells in random order, then the proof, then the records, whatever interrupts.

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
from typing import Any

from harness.common import registry
from harness.common.progress import Display, bar
from harness.common.registry import CounterCard, VariantCard
from harness.corpora.cards import counted_otherwise
from harness.measure import lock
from harness.measure.disturbance import wait_for_quiet
from harness.measure.environment import environment, host, machine
from harness.measure.instructions import RUN_TRAINER, RunJob
from harness.measure.interpreters import interpreter
from harness.measure.process import Answer, Limits, measure
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
    task_key,
    train_job,
)
from harness.runs.estimate import Estimate, estimate_total
from harness.runs.journal import Journal, entry_of_count, entry_of_trained, mark_cut_short, taken_up
from harness.runs.outcome import STOPPED, Block, Counted, CountRun, Trained, stopped_at_the_limit
from harness.runs.precision import Precision
from harness.runs.record_of import by_itself, count_record, train_record
from harness.runs.settings import Settings
from harness.worker import word_store
from variants.contract import Merge

PATIENCE = 10
"""How many times limits.wall counters may take for words that are not measured."""


class Run:
    """The measurements of one task, those of an unfinished run before it among them."""

    def __init__(
        self,
        cells: Sequence[TrainCell],
        settings: Settings,
        folder: Path,
        journal: Journal | None = None,
        number: int = 0,
    ) -> None:
        self.cells = distinct(cells)
        self.task, self.number = task_key(self.cells[0]), number
        self.settings = settings
        self.timed = settings.measure.timed
        self.blocks = [Block(number, warm_up=True) for number in range(settings.measure.warm_up)]
        self.blocks += [Block(number) for number in range(settings.measure.blocks(settings.repeat))]
        self.folder = folder
        self.host = host(machine())
        self.sources: dict[str, str | None] = {}
        self.run_id = journal.run_id if journal is not None else now()
        self.journal = journal
        entries = journal.of_task(self.task) if journal is not None else []
        rule = settings.measure.precision
        self.precision = None if rule is None else Precision(rule, self.cells)
        self.counts, self.counted, self.trained = taken_up(entries, self.cells, self.blocks, self.wanted)
        self.disagreements: list[str] = []
        self.right_words: dict[str, str | None] = {}
        self.without_words: set[str] = set()
        self.restless = 0
        self.jobs = 0
        blocks = settings.measure.warm_up + settings.repeat
        self.display = Display((len(self.cells) + len(count_cells(self.cells))) * blocks)

    def measure_all(self) -> None:
        """Measure every block. What has been measured stays in this object if it is interrupted."""
        for block in self.blocks:
            # Each block has an order of its own, whatever was measured before it by a run that was interrupted.
            order = random.Random(f"{self.settings.seed} {block.place}")
            due = self.due(block)
            if block.number >= self.settings.repeat:  # added for the precision
                self.display.total_cells += len(due) + len(count_cells(due))
            for count_cell in shuffled(count_cells(due), order):
                self.counts[count_key(count_cell)] = self.counted_in(block, count_cell) or self.count(count_cell, block)
            for cell in shuffled(due, order):
                trained = self.train(cell, block)
                begun_before = any(each.cut_short and each.block == block for each in self.trained)
                trained.cut_short = begun_before and not self.several_blocks
                self.trained.append(trained)
                self.note(entry_of_trained(trained), trained.merges, self.record_of_trained(trained))
            self.display.block_done()

    def due(self, block: Block) -> list[TrainCell]:
        """The cells that this block still has to measure: not those that were over the wall limit before."""
        done = {each.cell.key() for each in self.trained if each.block == block and not self.is_redone(each)}
        done |= stopped_at_the_limit(self.trained)
        wanted = self.wanted(block, self.trained) - done
        return [cell for cell in self.cells if cell.key() in wanted]

    def wanted(self, block: Block, trained: Sequence[Trained]) -> set[str]:
        """The keys of the cells that belong into a block: all, or those that the precision still needs."""
        if self.precision is None or block.warm_up:
            return {cell.key() for cell in self.cells}
        return self.precision.wanted(block, trained)

    @property
    def several_blocks(self) -> bool:
        return len(self.blocks) > 1

    def is_redone(self, measured: CountRun | Trained) -> bool:
        """Whether it belongs to a block that is measured again as a whole."""
        return measured.cut_short and self.several_blocks

    def counted_in(self, block: Block, cell: CountCell) -> Counted | None:
        """The counter's result in this block before an interruption, or in any block if it was over the wall limit."""
        for each in self.counted:
            again = each.block == block and not self.is_redone(each)
            if count_key(each.cell) == count_key(cell) and (again or each.counted.answer["status"] == "timeout"):
                return each.counted
        return None

    def note(self, entry: dict[str, Any], merges: Sequence[Merge] | None, record: Record) -> None:
        """Put what was just measured on disk."""
        if self.journal is not None:
            self.journal.add({**entry, "task": self.task, "record": record}, merges)

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
        self.counted.append(measured)
        self.note(entry_of_count(measured), None, self.record_of_count(measured))
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
            lent = replace(cell, counter=checker, threads=os.cpu_count() or 1, limits=patient(cell.limits))
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
        if answer["status"] in STOPPED:
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
        self.restless += not wait_for_quiet(self.settings.measure.quiet_seconds)

    def is_concurrent(self) -> bool:
        """Whether other timed runs are going on beside this one."""
        return self.settings.concurrent or (self.timed and lock.is_concurrent())

    def prove(self, interrupted: bool = False) -> None:
        """Judge the merges of every trained cell; after an interruption they stay unproved."""
        from harness.runs.prove import count_tokens, prove_all  # here: numpy comes with it, and is needed only now

        if interrupted:
            mark_cut_short(self.wanted, self.counted, self.trained, self.blocks)
            return
        prove_all(self.trained, self.count_otherwise)
        if self.settings.tokens:
            count_tokens(self.trained)

    def count_otherwise(self, cell: TrainCell, reading: Reading) -> Path | None:
        """The words of a cell's corpus read in another way, kept ones or counted untimed; None if that fails."""
        words = store.words_of(reading)
        if words is not None:
            return words
        lender = registry.default_counter()
        lent = replace(cell.count, reading=reading, counter=lender, threads=os.cpu_count() or 1)
        lent = replace(lent, limits=patient(cell.limits))
        return self.run_counter(f"words of {reading.file.name} in its own way ({lender.name})", lent)[1]

    def records(self) -> list[Record]:
        """Every record of this run: counters first, then trainers in the order they were asked for."""
        order = {cell.key(): place for place, cell in enumerate(self.cells)}
        listed = sorted(self.trained, key=lambda trained: (trained.block.place, order[trained.cell.key()]))
        return closed([*map(self.record_of_count, self.counted), *map(self.record_of_trained, listed)])

    def record_of_count(self, measured: CountRun) -> Record:
        return self.without_times(count_record(measured, self.common(measured.cell.counter)))

    def record_of_trained(self, trained: Trained) -> Record:
        record = train_record(trained, self.common(trained.cell.variant))
        if self.precision is not None:
            record["precision"] = self.precision.record(trained.cell)
        return self.without_times(record)

    def without_times(self, record: Record) -> Record:
        """The record without its times where times were not what was measured."""
        if self.timed:
            return record
        untimed = {"seconds": dict.fromkeys(record["seconds"]), "cpu_seconds": None}
        return {**record, **untimed, **({"curve": None} if "curve" in record else {})}

    @functools.cached_property
    def environment(self) -> dict[str, Any]:
        """Asked for by the first record: how every module was built takes longer to see than many a job."""
        return environment()

    def common(self, card: CounterCard | VariantCard) -> Record:
        """What every record of this run says, with the digest of the code behind a card as the run first met it."""
        code = f"{card.target} {dict(card.params)}"
        if code not in self.sources:
            self.sources[code] = source_sha256(card.target, card.params)
        return {
            "source_sha256": self.sources[code],
            "run_id": self.run_id,
            "task": self.number,
            "repeat": self.settings.repeat,
            "measure": self.settings.measure.name,
            "host": self.host,
            "environment": self.environment,
        }

    def next_folder(self) -> Path:
        self.jobs += 1
        return self.folder / str(self.jobs)


def closed(records: list[Record]) -> list[Record]:
    """The records, the last of each whole block marked, and a block's interrupted attempts apart from the whole one."""
    last: dict[tuple[bool, int], Record] = {}
    for record in records:
        record["attempt"] = 1 + record["block_whole"]
        if record["block_whole"]:
            last[record["warm_up"], record["block"]] = record
    for record in last.values():
        record["last"] = True
    return records


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


def patient(limits: Limits) -> Limits:
    """The same, for what is not measured."""
    wall = limits.wall_seconds
    return replace(limits, wall_seconds=wall and wall * PATIENCE)


def shuffled(cells: Iterable[Any], order: random.Random) -> list[Any]:
    listed = list(cells)
    order.shuffle(listed)
    return listed


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")
